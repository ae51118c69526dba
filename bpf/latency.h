/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Latencies of trace: the time from a start to the end that belongs to it, in one thread. A start
 * and an end of one function belong together if the stack pointer was the same when it was called,
 * which separates recursive calls; of two probes, an end to the last start before it.
 */
#ifndef BPF_LATENCY_H
#define BPF_LATENCY_H

#include "bpf/record.h"

ARGUMENT(frame);	/* of a function: the stack pointer; else 0 */

CONSTANT(latency_pair);	/* number of the function */
CONSTANT(frame_bytes);	/* by which ->frame is higher here than when the function was called */

MAP(starts);		/* hash: struct latency_key → struct latency_start */

INLINE struct latency_key latency_key(void *ctx)
{
	return (struct latency_key){
		.tid = (__u32)bpf_get_current_pid_tgid(), .pair = VALUE(latency_pair),
		.frame = arg_frame(ctx) - VALUE(frame_bytes),
	};
}

/* Forget the start with @key. Return its time in ns, 0: there is none. */
static __attribute__((noinline)) __u64 latency_take(const struct latency_key *key)
{
	const struct latency_start *start = bpf_map_lookup_elem(starts, key);
	__u64 ns;
	__u32 owner;

	if (!start)
		return 0;
	ns = start->ns;
	owner = start->owner;
	if (!bpf_map_delete_elem(starts, key))
		owner_entries(owner, OWNER_THREADS, -1);
	return ns;
}

INLINE void latency_begin(void *ctx)
{
	struct latency_key key = latency_key(ctx);
	struct latency_start first = { .owner = owner_current() }, *start;

	start = bpf_map_lookup_elem(starts, &key);
	first.ns = bpf_ktime_get_ns();
	if (start) {
		start->ns = first.ns;
	} else if (owner_may_add_thread(first.owner) &&
		   !bpf_map_update_elem(starts, &key, &first, BPF_NOEXIST)) {
		owner_entries(first.owner, OWNER_THREADS, 1);
	} else {
		lost_of(first.owner, LOST_TABLE_FULL);
	}
}

/*
 * A call begins that is not wanted: forget one at the same place that did not return, as after
 * longjmp(3).
 */
INLINE void latency_skip(void *ctx)
{
	struct latency_key key = latency_key(ctx);

	if (key.frame)
		latency_take(&key);
}

/* Return the latency in ns that ends here, 0: none began. */
INLINE __u64 latency_end(void *ctx)
{
	struct latency_key key = latency_key(ctx);
	__u64 start_ns = latency_take(&key), ns = bpf_ktime_get_ns() - start_ns;

	return start_ns ? ns + !ns : 0;
}

#endif
