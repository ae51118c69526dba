/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Resources that a statement uses: I/O, page faults, memory, bytes on sockets. Each is the growth,
 * from the statement's start to its end, of a counter that the kernel or the server keeps.
 */
#ifndef BPF_RESOURCE_H
#define BPF_RESOURCE_H

#include "bpf/record.h"

CONSTANT(want_use);
CONSTANT(want_bytes);		/* the tracepoints of sockets exist (6e6eda44b939, 6.3) */
/* Offsets in the kernel's struct task_struct; 0: no such member. */
CONSTANT(task_read_bytes);
CONSTANT(task_write_bytes);
CONSTANT(task_syscr);
CONSTANT(task_syscw);
CONSTANT(task_min_flt);
CONSTANT(task_maj_flt);
CONSTANT(task_mm);
/* Offsets in struct mm_struct, whose counters are in pages. */
CONSTANT(mm_hiwater);
CONSTANT(mm_total);
CONSTANT(mm_data);

#define USE_SOCKET_BYTES	(1u << USE_SENT | 1u << USE_RECEIVED)

/* Add @sign times the kernel's counter at @offset of @task to t->use[@which]; @offset 0: none. */
static __attribute__((noinline)) void use_count(struct event_breakdown *t, __u64 sign, __u64 task,
						__u64 offset, __u32 which)
{
	__u64 now;

	which &= 7;	/* a bound for the verifier */
	if (!offset || bpf_probe_read_kernel(&now, sizeof(now), (const void *)(task + offset)))
		return;
	t->use[which] += sign * now;
	t->used |= 1u << which;
}

static __attribute__((noinline)) __u64 use_word(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const void *)address);
	return word;
}

/*
 * Add the peak size of the process's private memory, in pages: VmPeak of /proc/PID/status without
 * the mappings that exist now and are not private and writable, such as shared memory and
 * libraries. Resident memory is of no use, as it grows with each shared buffer that is touched.
 */
static __attribute__((noinline)) void use_peak(struct event_breakdown *t, __u64 sign, __u64 task)
{
	__u64 mm = use_word(task + VALUE(task_mm)), peak = use_word(mm + VALUE(mm_hiwater));
	__u64 total = use_word(mm + VALUE(mm_total));

	if (!mm)
		return;
	peak = (peak > total ? peak : total) - total + use_word(mm + VALUE(mm_data));
	t->use[USE_PEAK_GROWTH] += sign * peak;
	t->used |= 1u << USE_PEAK_GROWTH;
}

/*
 * Add @sign (1 or -1) times the current values of all counters to t->use. The server's own are
 * arrays in its memory, in the order of enum use.
 */
static __attribute__((noinline)) void use_read(struct event_breakdown *t, __u64 sign)
{
	__u64 task = bpf_get_current_task(), now[USE_BUFFERS];

	use_count(t, sign, task, VALUE(task_read_bytes), USE_READ_BYTES);
	use_count(t, sign, task, VALUE(task_write_bytes), USE_WRITE_BYTES);
	use_count(t, sign, task, VALUE(task_syscr), USE_READ_CALLS);
	use_count(t, sign, task, VALUE(task_syscw), USE_WRITE_CALLS);
	use_count(t, sign, task, VALUE(task_min_flt), USE_MINOR_FAULTS);
	use_count(t, sign, task, VALUE(task_maj_flt), USE_MAJOR_FAULTS);
	/* Only if a session is a process: threads share their memory. */
	if (t->leader && VALUE(task_mm))
		use_peak(t, sign, task);
	if (t->buffers && !bpf_probe_read_user(now, sizeof(now), (const void *)t->buffers)) {
		NO_UNROLL
		for (int i = 0; i < USE_BUFFERS; i++)
			t->use[USE_SHARED_HIT + i] += sign * now[i];
		t->used |= ((1u << USE_BUFFERS) - 1) << USE_SHARED_HIT;
	}
	if (t->wal && !bpf_probe_read_user(now, USE_WALS * sizeof(__u64), (const void *)t->wal)) {
		NO_UNROLL
		for (int i = 0; i < USE_WALS; i++)
			t->use[USE_WAL_RECORDS + i] += sign * now[i];
		t->used |= ((1u << USE_WALS) - 1) << USE_WAL_RECORDS;
	}
}

/* Start the accounting of the current thread's resources; t->buffers and t->wal are set. */
INLINE void use_begin(struct event_breakdown *t)
{
	__builtin_memset(t->use, 0, sizeof(t->use));
	if (VALUE(want_bytes))
		t->used = USE_SOCKET_BYTES;
	use_read(t, -1ULL);
}

/*
 * Replace the values in t->use by their growth since use_begin(). Before 6.16 the exit tracepoint
 * comes after the thread has released its memory: counters that cannot be read are not reported.
 */
INLINE void use_end(struct event_breakdown *t)
{
	__u32 known = t->used;

	t->used &= USE_SOCKET_BYTES;
	use_read(t, 1);
	t->used &= known;
}

/* Raise *@largest to @value if that is larger. */
INLINE void use_largest(__u64 *largest, __u64 value)
{
	if (value > *largest)
		*largest = value;
}

#endif
