// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/stream.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bpf/event.h"
#include "loader/sys.h"

#define RECORD_TIME	8	/* where a sample has its time, ns .. */
#define RECORD_LOST	16	/* .. a lost record its number of records .. */
#define RECORD_SIZE	16	/* .. and a sample its size, 32 bits, behind which are the data */
#define RECORD_DATA	20

/*
 * The data are mapped once, not twice in a row as the kernel would allow: its pages count
 * as ours as often as they are mapped, and putting a record together once a
 * lap costs less.
 */
int stream_open(struct stream *stream, int ring, uint64_t size, int control, size_t record_max)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p;
	int err;

	*stream = (struct stream){ .fd = ring, .ring = ring, .size = size,
				   .spill_size = record_max };
	stream->spill = malloc(record_max);
	if (!stream->spill)
		return -ENOMEM;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
	if (p == MAP_FAILED)
		goto fail;
	stream->consumer = p;
	p = mmap(NULL, page + size, PROT_READ, MAP_SHARED, ring, (off_t)page);
	if (p == MAP_FAILED)
		goto fail;
	stream->producer = p;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, control, 0);
	if (p == MAP_FAILED)
		goto fail;
	stream->control = p;
	return 0;
fail:
	err = -errno;
	stream_close(stream);
	return err;
}

static void stream_close_perf(struct stream *stream)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (uint32_t i = 0; i < stream->ncpus; i++) {
		struct stream_cpu *cpu = &stream->cpus[i];

		if (cpu->page)
			munmap(cpu->page, page + stream->size);
		if (cpu->waker >= 0)
			close(cpu->waker);
		close(cpu->event);
	}
	free(stream->cpus);
	stream->cpus = NULL;
	if (stream->fd >= 0)
		close(stream->fd);
}

void stream_close(struct stream *stream)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (stream->control)
		munmap(stream->control, page);
	if (stream->producer)
		munmap((void *)(uintptr_t)stream->producer, page + stream->size);
	if (stream->consumer)
		munmap(stream->consumer, page);
	if (stream->cpus)
		stream_close_perf(stream);
	free(stream->spill);
	*stream = (struct stream){ .fd = -1, .ring = -1 };
}

/* Adds the buffer of CPU @number. 0; -ENODEV: it is offline; 1: it is beyond the last one. */
static int stream_open_cpu(struct stream *stream, const struct stream_perf *perf, uint32_t number)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct epoll_event epoll = { .events = EPOLLIN };
	struct stream_cpu *cpus, *cpu;
	int event = sys_perf_output((int)number, (uint32_t)(perf->size / 4)), err;
	void *p;

	if (event < 0)
		return event == -EINVAL && number ? 1 : event;
	cpus = realloc(stream->cpus, (stream->ncpus + 1) * sizeof(*cpus));
	if (!cpus) {
		close(event);
		return -ENOMEM;
	}
	stream->cpus = cpus;
	cpu = &cpus[stream->ncpus++];
	*cpu = (struct stream_cpu){ .event = event, .waker = sys_perf_output((int)number, 0) };
	if (cpu->waker < 0)
		return cpu->waker;
	p = mmap(NULL, page + perf->size, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	if (p == MAP_FAILED)
		return -errno;
	cpu->page = p;
	err = sys_perf_redirect(cpu->waker, event);
	if (!err)
		err = sys_map_update(perf->ring, &number, &event);
	if (!err)
		err = sys_map_update(perf->wakers, &number, &cpu->waker);
	if (!err && epoll_ctl(stream->fd, EPOLL_CTL_ADD, event, &epoll))
		err = -errno;
	return err;
}

int stream_open_perf(struct stream *stream, const struct stream_perf *perf)
{
	int err = -ENOMEM;

	*stream = (struct stream){ .fd = -1, .ring = perf->ring, .size = perf->size,
				   .control_map = perf->control, .ahead_ns = perf->ahead_ns,
				   .spill_size = perf->record_max + 8 };
	stream->cpus = calloc(1, sizeof(*stream->cpus));
	stream->spill = malloc(stream->spill_size);
	if (!stream->cpus || !stream->spill)
		goto fail;
	stream->fd = epoll_create1(EPOLL_CLOEXEC);
	if (stream->fd < 0) {
		err = -errno;
		goto fail;
	}
	/* Where /sys is not mounted, only the kernel tells how many there are: by refusing one. */
	err = 0;
	for (uint32_t number = 0; !err || err == -ENODEV; number++)
		err = stream_open_cpu(stream, perf, number);
	if (err > 0)
		return 0;
fail:
	stream_close(stream);
	return err;
}

static uint64_t stream_position(const unsigned char *page)
{
	return __atomic_load_n((const uint64_t *)(const void *)page, __ATOMIC_ACQUIRE);
}

static const unsigned char *stream_data(const struct stream *stream, uint64_t position)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return stream->producer + page + (position & (stream->size - 1));
}

/* @size bytes at @position, in one piece. NULL: more than any record has. */
static const void *stream_record(struct stream *stream, uint64_t position, size_t size)
{
	uint64_t to_end = stream->size - (position & (stream->size - 1));

	if (size > stream->spill_size)
		return NULL;
	if (size <= to_end)
		return stream_data(stream, position);
	memcpy(stream->spill, stream_data(stream, position), to_end);
	memcpy(stream->spill + to_end, stream_data(stream, position + to_end), size - to_end);
	return stream->spill;
}

static int64_t stream_drain_ring(struct stream *stream, stream_handler *handler, void *arg)
{
	uint64_t start = stream_position(stream->consumer), position = start;
	uint64_t end = stream_position(stream->producer);
	int stop = 0;

	while (!stop && position < end) {
		uint32_t head = __atomic_load_n(
			(const uint32_t *)(const void *)stream_data(stream, position),
			__ATOMIC_ACQUIRE);
		uint32_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		const void *record;

		if (head & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			record = stream_record(stream, position + BPF_RINGBUF_HDR_SZ, size);
			stop = record ? handler(arg, record, size) : 0;
		}
		position += (BPF_RINGBUF_HDR_SZ + (uint64_t)size + 7) & ~7ULL;
		__atomic_store_n((uint64_t *)(void *)stream->consumer, position, __ATOMIC_RELEASE);
	}
	return stop ? stop : (int64_t)(position - start);
}

static struct perf_event_mmap_page *cpu_meta(const struct stream_cpu *cpu)
{
	return (struct perf_event_mmap_page *)(void *)cpu->page;
}

/* Copies @size bytes at @position of a CPU's data, which may go round the end. */
static void cpu_copy(const struct stream *stream, const struct stream_cpu *cpu, uint64_t position,
		     void *to, size_t size)
{
	const unsigned char *data = cpu->page + sysconf(_SC_PAGESIZE);
	uint64_t at = position & (stream->size - 1), to_end = stream->size - at;

	if (size <= to_end) {
		memcpy(to, data + at, size);
		return;
	}
	memcpy(to, data + at, to_end);
	memcpy((unsigned char *)to + to_end, data, size - to_end);
}

/* Leaves the record of @size bytes at the tail behind. */
static void cpu_skip(struct stream_cpu *cpu, uint16_t size)
{
	cpu->tail += size;
	__atomic_store_n(&cpu_meta(cpu)->data_tail, cpu->tail, __ATOMIC_RELEASE);
}

/* Goes to the next sample, @record, of a time up to @until_ns. False: there is none. */
static bool cpu_next(struct stream *stream, struct stream_cpu *cpu, uint64_t until_ns,
		     struct perf_event_header *record)
{
	uint64_t lost;

	while (cpu->tail < cpu->head) {
		cpu_copy(stream, cpu, cpu->tail, record, sizeof(*record));
		/* No record of the kernel's: nothing behind it can be told. */
		if (record->size < sizeof(*record) || record->size > cpu->head - cpu->tail) {
			cpu->tail = cpu->head;
			break;
		}
		if (record->type == PERF_RECORD_SAMPLE) {
			cpu_copy(stream, cpu, cpu->tail + RECORD_TIME, &cpu->time_ns,
				 sizeof(cpu->time_ns));
			return cpu->time_ns <= until_ns;
		}
		if (record->type == PERF_RECORD_LOST) {
			cpu_copy(stream, cpu, cpu->tail + RECORD_LOST, &lost, sizeof(lost));
			stream->lost += lost;
		}
		cpu_skip(cpu, record->size);
	}
	return false;
}

static int cpu_sample(struct stream *stream, struct stream_cpu *cpu, stream_handler *handler,
		      void *arg)
{
	struct perf_event_header record;
	uint32_t size;
	bool fits;

	cpu_copy(stream, cpu, cpu->tail, &record, sizeof(record));
	cpu_copy(stream, cpu, cpu->tail + RECORD_SIZE, &size, sizeof(size));
	fits = size <= stream->spill_size && size + RECORD_DATA <= record.size;
	if (fits)
		cpu_copy(stream, cpu, cpu->tail + RECORD_DATA, stream->spill, size);
	cpu_skip(cpu, record.size);
	return fits && size > WAKE_BYTES + 7 ? handler(arg, stream->spill, size) : 0;
}

/*
 * Takes what lies in the buffers in the order of its times, up to the time of the call. Where
 * record A led to B on another CPU, A was in its buffer before B got its time. So if B's time is
 * before the call's, A is there when the buffers are looked at, whichever of them is looked at
 * first.
 */
static int64_t stream_drain_perf(struct stream *stream, stream_handler *handler, void *arg)
{
	struct perf_event_header record;
	struct timespec now;
	uint64_t now_ns, most = 0;
	int stop = 0;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec -
		 (uint64_t)stream->ahead_ns;
	for (uint32_t i = 0; i < stream->ncpus; i++) {
		struct stream_cpu *cpu = &stream->cpus[i];

		cpu->head = __atomic_load_n(&cpu_meta(cpu)->data_head, __ATOMIC_ACQUIRE);
		most = cpu->head - cpu->tail > most ? cpu->head - cpu->tail : most;
		if (!cpu_next(stream, cpu, now_ns, &record))
			cpu->head = cpu->tail;
	}
	while (!stop) {
		struct stream_cpu *first = NULL;

		for (uint32_t i = 0; i < stream->ncpus; i++) {
			struct stream_cpu *cpu = &stream->cpus[i];

			if (cpu->tail < cpu->head && (!first || cpu->time_ns < first->time_ns))
				first = cpu;
		}
		if (!first)
			break;
		stop = cpu_sample(stream, first, handler, arg);
		if (!cpu_next(stream, first, now_ns, &record))
			first->head = first->tail;
	}
	return stop ? stop : (int64_t)most;
}

int64_t stream_drain(struct stream *stream, stream_handler *handler, void *arg)
{
	if (stream->cpus)
		return stream_drain_perf(stream, handler, arg);
	return stream_drain_ring(stream, handler, arg);
}

/*
 * A program publishes its record and then looks whether we sleep, without a barrier between:
 * that is for us to make on its CPU, or each could miss the other.
 */
static bool stream_sleep_perf(struct stream *stream)
{
	const struct control control = { .asleep = 1 };
	uint32_t zero = 0;

	if (sys_map_update(stream->control_map, &zero, &control) ||
	    syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return false;
	for (uint32_t i = 0; i < stream->ncpus; i++)
		if (__atomic_load_n(&cpu_meta(&stream->cpus[i])->data_head, __ATOMIC_ACQUIRE) !=
		    stream->cpus[i].tail)
			return false;
	return true;
}
bool stream_sleep(struct stream *stream)
{
	if (stream->cpus)
		return stream_sleep_perf(stream);
	__atomic_store_n(&stream->control->asleep, 1, __ATOMIC_SEQ_CST);
	return stream_position(stream->consumer) == stream_position(stream->producer);
}
