// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* loader/perfbuf.c with perf buffers in memory as the kernel writes them, and loader/tracefs.c. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "bpf/event.h"
#include "loader/perfbuf.h"
#include "loader/tracefs.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define CPUS		5
#define SIZE		4096u
#define RECORDS		20000
#define PAYLOAD_MAX	900

/* The state of the kernel: its position in each buffer. */
struct kernel {
	struct perfbuf perf;
	struct perfbuf_cpu cpus[CPUS];
	uint64_t head[CPUS];
};

/* The data of a record. */
struct payload {
	uint64_t number, time_ns;
	unsigned char fill[PAYLOAD_MAX];
};

struct seen {
	uint64_t next, records;
	int refuse;
};

static struct perf_event_mmap_page *meta(struct kernel *k, int cpu)
{
	return (void *)k->cpus[cpu].page;
}

static void kernel_init(struct kernel *k)
{
	*k = (struct kernel){ .perf = { .fd = -1, .size = SIZE, .ncpus = CPUS,
					  .spill_size = sizeof(struct payload) + 8 } };
	k->perf.cpus = k->cpus;
	k->perf.spill = malloc(k->perf.spill_size);
	for (int i = 0; i < CPUS; i++)
		k->cpus[i].page = calloc(1, (size_t)sysconf(_SC_PAGESIZE) + SIZE);
}

static void kernel_free(struct kernel *k)
{
	for (int i = 0; i < CPUS; i++)
		free(k->cpus[i].page);
	free(k->perf.spill);
}

static void put(struct kernel *k, int cpu, const void *from, size_t size)
{
	unsigned char *data = k->cpus[cpu].page + sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < size; i++)
		data[(k->head[cpu] + i) % SIZE] = ((const unsigned char *)from)[i];
	k->head[cpu] += size;
}

static bool fits(struct kernel *k, int cpu, size_t size)
{
	return k->head[cpu] - meta(k, cpu)->data_tail + size <= SIZE;
}

/* Write a sample of @size bytes, in the layout of PERF_RECORD_SAMPLE; perf_event_open(2). */
static bool put_sample(struct kernel *k, int cpu, uint64_t time_ns, const void *data, uint32_t size)
{
	uint32_t raw = ((size + 4 + 7) & ~7u) - 4, pad = raw - size;
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE,
					    .size = (uint16_t)(8 + 8 + 4 + raw) };

	if (!fits(k, cpu, header.size))
		return false;
	put(k, cpu, &header, sizeof(header));
	put(k, cpu, &time_ns, sizeof(time_ns));
	put(k, cpu, &raw, sizeof(raw));
	put(k, cpu, data, size);
	put(k, cpu, "\xee\xee\xee\xee\xee\xee\xee", pad);
	return true;
}

static void put_lost(struct kernel *k, int cpu, uint64_t lost)
{
	struct perf_event_header header = { .type = PERF_RECORD_LOST, .size = 24 };
	uint64_t id = 77;

	if (!fits(k, cpu, header.size))
		return;
	put(k, cpu, &header, sizeof(header));
	put(k, cpu, &id, sizeof(id));
	put(k, cpu, &lost, sizeof(lost));
}

static void publish(struct kernel *k)
{
	for (int i = 0; i < CPUS; i++)
		meta(k, i)->data_head = k->head[i];
}

static int see(void *arg, const void *data, size_t size)
{
	const struct payload *p = data;
	struct seen *seen = arg;
	size_t want = size >= 16 ? 16 + p->number % PAYLOAD_MAX : 0;

	CHECK((uintptr_t)data % 8 == 0, "%p", data);
	CHECK(size >= want && size < want + 8, "%zu bytes, not %zu", size, want);
	CHECK(p->number == seen->next, "%llu came, not %llu", (unsigned long long)p->number,
	      (unsigned long long)seen->next);
	for (size_t i = 16; i < want; i++) {
		if (p->fill[i - 16] == (unsigned char)(p->number + i))
			continue;
		CHECK(false, "byte %zu of record %llu", i, (unsigned long long)p->number);
		break;
	}
	seen->next = p->number + 1;
	seen->records++;
	return seen->refuse && seen->records % 7 == 0 ? -EPIPE : 0;
}

static void drain(struct kernel *k, struct seen *seen)
{
	int64_t n;

	publish(k);
	do {
		n = perfbuf_drain(&k->perf, see, seen);
	} while (n == -EPIPE);
	CHECK(n >= 0 && n <= SIZE, "%lld", (long long)n);
}

/* Records of all lengths on all CPUs, with drains between, arrive all and in order of time. */
static void all_in_order(int refuse)
{
	struct kernel k;
	struct seen seen = { .refuse = refuse };

	kernel_init(&k);
	for (uint64_t n = 0; n < RECORDS && check_failures < 5;) {
		int cpu = (int)random_below(CPUS);
		struct payload p = { .number = n, .time_ns = n * 3 };
		uint32_t size = (uint32_t)(16 + n % PAYLOAD_MAX);

		for (size_t i = 16; i < size; i++)
			p.fill[i - 16] = (unsigned char)(n + i);
		if (n % 11 == 0)
			put_lost(&k, cpu, n);
		if (n % 13 == 0)
			put_sample(&k, cpu, n * 3, "wake up!", WAKE_BYTES);
		if (put_sample(&k, cpu, n * 3, &p, size))
			n++;
		else
			drain(&k, &seen);
	}
	drain(&k, &seen);
	CHECK(seen.records == RECORDS, "%llu records", (unsigned long long)seen.records);
	CHECK(perfbuf_drain(&k.perf, see, &seen) == 0);
	for (int i = 0; i < CPUS; i++)
		CHECK(meta(&k, i)->data_tail == k.head[i]);
	kernel_free(&k);
}

static void perf_in_order(void)
{
	all_in_order(0);
}

static void perf_refused_counts_as_read(void)
{
	all_in_order(1);
}

/* A record that is later than the start of the drain waits for the next one, as do later ones. */
static void perf_later_waits(void)
{
	struct payload p = { .number = 0 };
	struct seen seen = { .next = 0 };
	struct kernel k;

	kernel_init(&k);
	put_sample(&k, 0, 1, &p, 16);
	p.number = 1;
	put_sample(&k, 1, UINT64_MAX, &p, 17);
	put_sample(&k, 1, 2, &p, 17);
	publish(&k);
	CHECK(perfbuf_drain(&k.perf, see, &seen) > 0);
	CHECK(seen.records == 1, "%llu", (unsigned long long)seen.records);
	CHECK(perfbuf_drain(&k.perf, see, &seen) > 0, "a record remains");
	CHECK(seen.records == 1, "%llu", (unsigned long long)seen.records);
	CHECK(!meta(&k, 1)->data_tail);
	kernel_free(&k);
}

static int touch(void *arg, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		*(uint64_t *)arg += ((const unsigned char *)data)[i];
	return 0;
}

/* Any content of the buffers is read within bounds and in bounded time. */
static void perf_survives_garbage(void)
{
	struct kernel k;

	kernel_init(&k);
	for (int round = 0; round < 3000; round++) {
		uint64_t sum = 0;
		int64_t n;

		for (int cpu = 0; cpu < CPUS; cpu++) {
			for (int i = 0; i < 32; i++) {
				uint64_t word = random_next();

				/* Mostly valid types and sizes, so that parsing continues. */
				if (word >> 60 < 12)
					word = (word & (uint64_t)0x7f << 48) |
					       (word & 8 ? PERF_RECORD_SAMPLE : PERF_RECORD_LOST);
				put(&k, cpu, &word, sizeof(word));
			}
		}
		publish(&k);
		n = perfbuf_drain(&k.perf, touch, &sum);
		CHECK(n >= 0 && n <= SIZE, "%lld", (long long)n);
		n = perfbuf_drain(&k.perf, touch, &sum);
		CHECK(n >= 0 && n <= SIZE, "%lld", (long long)n);
		for (int cpu = 0; cpu < CPUS; cpu++)
			k.cpus[cpu].tail = meta(&k, cpu)->data_tail = k.head[cpu];
	}
	kernel_free(&k);
}

#define HEAD	"name: sched_wakeup\nID: 374\nformat:\n"					\
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"	\
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FIELD	"\tfield:pid_t pid;"

/* The format of Linux 6.18, and invalid ones. */
static void tracefs_formats(void)
{
	static const struct {
		const char *format;
		int id;
		uint64_t offset;
	} cases[] = {
		{ HEAD "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n" FIELD
		  "\toffset:24;\tsize:4;\tsigned:1;\n"
		  "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		  "\nprint fmt: \"comm=%s pid=%d prio=%d\", REC->comm, REC->pid, REC->prio\n",
		  374, 24 },
		/* Some PREEMPT_RT kernels have more before it; a long, and no newline. */
		{ HEAD FIELD "\toffset:32;\tsize:8;\tsigned:1;", 374, 32 },
		{ HEAD FIELD "\toffset:8;\tsize:4;\n", 374, 8 },
		{ HEAD FIELD "\toffset:8188;\tsize:4;\n", 374, 8188 },
		{ HEAD, -ENOENT, 0 }, { "", -ENOENT, 0 }, { "\n", -ENOENT, 0 },
		{ "\tfield:", -ENOENT, 0 },
		{ HEAD "\tfield:pid;\toffset:8;\tsize:4;\n", -ENOENT, 0 },
		{ HEAD "\tfield:pid_t ppid;\toffset:8;\tsize:4;\n", -ENOENT, 0 },
		{ HEAD "\tfield:pid_t pid[2];\toffset:8;\tsize:8;\n", -ENOENT, 0 },
		{ HEAD "print fmt: \tfield:pid_t pid;\toffset:8;\tsize:4;\n", -ENOENT, 0 },
		{ FIELD "\toffset:8;\tsize:4;\n", -EINVAL, 0 },
		{ "ID: 0\n" FIELD "\toffset:8;\tsize:4;\n", -EINVAL, 0 },
		{ "ID: 4294967296\n" FIELD "\toffset:8;\tsize:4;\n", -EINVAL, 0 },
		{ "ID: -1\n" FIELD "\toffset:8;\tsize:4;\n", -EINVAL, 0 },
		{ HEAD FIELD "\n\toffset:8;\tsize:4;\n", -EINVAL, 0 },
		{ HEAD FIELD "\toffset:4;\tsize:4;\n", -EINVAL, 0 },
		{ HEAD FIELD "\toffset:8;\tsize:2;\n", -EINVAL, 0 },
		{ HEAD FIELD "\toffset:8;\tsize:64;\n", -EINVAL, 0 },
		{ HEAD FIELD "\toffset:8189;\tsize:4;\n", -EINVAL, 0 },
		{ HEAD FIELD "\toffset:-8;\tsize:4;\n", -EINVAL, 0 },
		{ HEAD FIELD "\toffset:99999999999999999999999;\tsize:4;\n", -EINVAL, 0 },
		{ HEAD FIELD, -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = strdup(cases[i].format);
		uint64_t offset = 0;
		int id = tracefs_format(text, "pid", &offset);

		CHECK(id == cases[i].id && (id < 0 || offset == cases[i].offset), "%s: %d %llu",
		      text, id, (unsigned long long)offset);
		free(text);
	}
}

int main(void)
{
	RUN(perf_in_order);
	RUN(perf_refused_counts_as_read);
	RUN(perf_later_waits);
	RUN(perf_survives_garbage);
	RUN(tracefs_formats);
	return check_done();
}
