// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/perfbuf.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/event.h"
#include "host/clock.h"
#include "loader/sys.h"

/* Offsets in records, in bytes. */
#define RECORD_TIME	8	/* of a sample: its time, ns */
#define RECORD_SIZE	16	/* of a sample: the size of its data, 32 bits */
#define RECORD_DATA	20

void perfbuf_close(struct perfbuf *perf)
{
	size_t page = (size_t)getauxval(AT_PAGESZ);

	if (!perf->cpus)
		return;
	for (uint32_t i = 0; i < perf->ncpus; i++) {
		struct perfbuf_cpu *cpu = &perf->cpus[i];

		if (cpu->page)
			munmap(cpu->page, page + perf->size);
		if (cpu->waker >= 0)
			close(cpu->waker);
		close(cpu->event);
	}
	free(perf->cpus);
	free(perf->spill);
	if (perf->fd >= 0)
		close(perf->fd);
	*perf = (struct perfbuf){ .fd = -1 };
}

/*
 * Add the buffer of CPU @number. Return 0, -ENODEV if it is offline, 1 after the last, or -errno.
 */
static int perfbuf_add(struct perfbuf *perf, const struct perfbuf_config *config, uint32_t number)
{
	size_t page = (size_t)getauxval(AT_PAGESZ);
	struct epoll_event epoll = { .events = EPOLLIN };
	struct perfbuf_cpu *cpus, *cpu;
	int event = sys_perf_output((int)number, (uint32_t)(config->size / 4)), err;
	void *p;

	if (event < 0)
		return event == -EINVAL && number ? 1 : event;
	cpus = realloc(perf->cpus, (perf->ncpus + 1) * sizeof(*cpus));
	if (!cpus) {
		close(event);
		return -ENOMEM;
	}
	perf->cpus = cpus;
	cpu = &cpus[perf->ncpus++];
	*cpu = (struct perfbuf_cpu){ .event = event, .waker = sys_perf_output((int)number, 0) };
	if (cpu->waker < 0)
		return cpu->waker;
	p = mmap(NULL, page + config->size, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	if (p == MAP_FAILED)
		return -errno;
	cpu->page = p;
	err = sys_perf_redirect(cpu->waker, event);
	if (!err)
		err = sys_map_update(config->ring, &number, &event);
	if (!err)
		err = sys_map_update(config->wakers, &number, &cpu->waker);
	if (!err && epoll_ctl(perf->fd, EPOLL_CTL_ADD, event, &epoll))
		err = -errno;
	return err;
}

int perfbuf_open(struct perfbuf *perf, const struct perfbuf_config *config)
{
	int err = -ENOMEM;

	*perf = (struct perfbuf){ .fd = -1, .control_map = config->control, .size = config->size,
				  .ahead_ns = config->ahead_ns,
				  .spill_size = config->record_max + 8 };
	perf->cpus = calloc(1, sizeof(*perf->cpus));
	perf->spill = malloc(perf->spill_size);
	if (!perf->cpus || !perf->spill)
		goto fail;
	perf->fd = epoll_create1(EPOLL_CLOEXEC);
	if (perf->fd < 0) {
		err = -errno;
		goto fail;
	}
	/* Without /sys, the first CPU that the kernel does not know ends the list. */
	err = 0;
	for (uint32_t number = 0; number < SYS_CPUS_MAX && (!err || err == -ENODEV); number++)
		err = perfbuf_add(perf, config, number);
	if (err >= 0 || err == -ENODEV)
		return 0;
fail:
	if (!perf->cpus)
		free(perf->spill);
	perfbuf_close(perf);
	return err;
}

/* Return the control page of a buffer. */
static struct perf_event_mmap_page *cpu_meta(const struct perfbuf_cpu *cpu)
{
	return (struct perf_event_mmap_page *)(void *)cpu->page;
}

/* Copy @size bytes at @position of a CPU's data, which may wrap around. */
static void cpu_copy(const struct perfbuf *perf, const struct perfbuf_cpu *cpu, uint64_t position,
		     void *to, size_t size)
{
	const unsigned char *data = cpu->page + getauxval(AT_PAGESZ);
	uint64_t at = position & (perf->size - 1), to_end = perf->size - at;

	if (size <= to_end) {
		memcpy(to, data + at, size);
		return;
	}
	memcpy(to, data + at, to_end);
	memcpy((unsigned char *)to + to_end, data, size - to_end);
}

/* Release the record of @size bytes at the tail. */
static void cpu_skip(struct perfbuf_cpu *cpu, uint16_t size)
{
	cpu->tail += size;
	__atomic_store_n(&cpu_meta(cpu)->data_tail, cpu->tail, __ATOMIC_RELEASE);
}

/*
 * Advance to the next sample and store its header in *@record. Return false if there is none with a
 * time up to @until_ns.
 */
static bool cpu_next(struct perfbuf *perf, struct perfbuf_cpu *cpu, uint64_t until_ns,
		     struct perf_event_header *record)
{
	while (cpu->tail < cpu->head) {
		cpu_copy(perf, cpu, cpu->tail, record, sizeof(*record));
		/* Malformed: nothing after it can be read. */
		if (record->size < sizeof(*record) || record->size > cpu->head - cpu->tail) {
			cpu->tail = cpu->head;
			break;
		}
		if (record->type == PERF_RECORD_SAMPLE) {
			cpu_copy(perf, cpu, cpu->tail + RECORD_TIME, &cpu->time_ns,
				 sizeof(cpu->time_ns));
			return cpu->time_ns <= until_ns;
		}
		cpu_skip(cpu, record->size);
	}
	return false;
}

/* Pass the sample at the tail to @handler, unless it is only a wake-up, and release it. */
static int cpu_sample(struct perfbuf *perf, struct perfbuf_cpu *cpu,
		      int (*handler)(void *arg, const void *data, size_t size), void *arg)
{
	struct perf_event_header record;
	uint32_t size;
	bool fits;

	cpu_copy(perf, cpu, cpu->tail, &record, sizeof(record));
	cpu_copy(perf, cpu, cpu->tail + RECORD_SIZE, &size, sizeof(size));
	fits = size <= perf->spill_size && size + RECORD_DATA <= record.size;
	if (fits)
		cpu_copy(perf, cpu, cpu->tail + RECORD_DATA, perf->spill, size);
	cpu_skip(cpu, record.size);
	return fits && size > WAKE_BYTES + 7 ? handler(arg, perf->spill, size) : 0;
}

/*
 * Merge the buffers in the order of time, up to the time of the call. If record A caused B on
 * another CPU, A was in its buffer before B got its time. So if B's time is before the call, A is
 * visible when the heads are read, in any order.
 */
int64_t perfbuf_drain(struct perfbuf *perf,
		      int (*handler)(void *arg, const void *data, size_t size), void *arg)
{
	struct perf_event_header record;
	uint64_t now_ns = clock_kernel_ns(perf->ahead_ns), most = 0;
	int stop = 0;

	for (uint32_t i = 0; i < perf->ncpus; i++) {
		struct perfbuf_cpu *cpu = &perf->cpus[i];

		cpu->head = __atomic_load_n(&cpu_meta(cpu)->data_head, __ATOMIC_ACQUIRE);
		most = cpu->head - cpu->tail > most ? cpu->head - cpu->tail : most;
		if (!cpu_next(perf, cpu, now_ns, &record))
			cpu->head = cpu->tail;
	}
	while (!stop) {
		struct perfbuf_cpu *first = NULL;

		for (uint32_t i = 0; i < perf->ncpus; i++) {
			struct perfbuf_cpu *cpu = &perf->cpus[i];

			if (cpu->tail < cpu->head && (!first || cpu->time_ns < first->time_ns))
				first = cpu;
		}
		if (!first)
			break;
		stop = cpu_sample(perf, first, handler, arg);
		if (!cpu_next(perf, first, now_ns, &record))
			first->head = first->tail;
	}
	return stop ? stop : (int64_t)most;
}

/*
 * A program publishes its record and then reads ->asleep without a barrier between. membarrier(2)
 * executes one on its CPU; without it, each side could miss the other.
 */
bool perfbuf_sleep(struct perfbuf *perf)
{
	const struct control control = { .asleep = 1 };
	uint32_t zero = 0;

	if (sys_map_update(perf->control_map, &zero, &control) ||
	    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return false;
	for (uint32_t i = 0; i < perf->ncpus; i++)
		if (__atomic_load_n(&cpu_meta(&perf->cpus[i])->data_head, __ATOMIC_ACQUIRE) !=
		    perf->cpus[i].tail)
			return false;
	return true;
}
