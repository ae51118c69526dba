/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all programs share that send records: counters, waking the consumer, PIDs as it sees them.
 */
#ifndef BPF_RECORD_H
#define BPF_RECORD_H

#include "bpf/bpf.h"
#include "bpf/event.h"

CONSTANT(pid_ns_dev);	/* the PID namespace that PIDs are told in; 0: the initial one */
CONSTANT(pid_ns_ino);
CONSTANT(perf_buffers);	/* records go to the perf buffer of their CPU: there is no ring (5.8) */

MAP(counters);		/* array by CPU: enum counter → u64 */
MAP(ring);		/* the ring buffer, or with perf_buffers the perf events of the CPUs .. */
MAP(wakers);		/* .. and those into the same buffers that wake the consumer */
MAP(control);		/* array of one: struct control */

INLINE void count(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(counters, &which);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/*
 * Hands a record over without a wake-up, the largest cost of all. 0, or it did not fit. A kernel
 * that lacks one of the two helpers never sees it: what a constant decides, the verifier does not
 * follow.
 */
INLINE long output(void *ctx, void *record, __u64 size)
{
	if (VALUE(perf_buffers))
		return bpf_perf_event_output(ctx, ring, BPF_F_CURRENT_CPU, record, size);
	return bpf_ringbuf_output(ring, record, size, BPF_RB_NO_WAKEUP);
}

/*
 * The consumer is woken only if it said that it sleeps. It says so before it looks for records for
 * the last time, so one of the two sees the other.
 */
INLINE void wake(void *ctx)
{
	char sign[WAKE_BYTES] = {};
	__u32 zero = 0;
	struct control *ctl = bpf_map_lookup_elem(control, &zero);
	void *nothing;

	if (!ctl || !*(volatile __u32 *)&ctl->asleep)
		return;
	ctl->asleep = 0;
	if (VALUE(perf_buffers)) {
		bpf_perf_event_output(ctx, wakers, BPF_F_CURRENT_CPU, sign, sizeof(sign));
		return;
	}
	nothing = bpf_ringbuf_reserve(ring, 8, 0);
	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
}

INLINE void send(void *ctx, void *record, __u64 size)
{
	if (output(ctx, record, size))
		count(LOST_RING_FULL);
	else
		wake(ctx);
}

/*
 * The process and thread at hand, @id by the initial PID namespace, as they are seen from where the
 * tool runs. 0: from there they cannot be seen.
 */
INLINE __u64 id_seen(__u64 id)
{
	struct bpf_pidns_info info;

	if (!VALUE(pid_ns_ino))
		return id;
	if (bpf_get_ns_current_pid_tgid(VALUE(pid_ns_dev), VALUE(pid_ns_ino), &info, sizeof(info)))
		return 0;
	return (__u64)info.tgid << 32 | info.pid;
}

/* The position of the highest bit that is set. */
INLINE __u32 record_log2(__u64 value)
{
	__u32 log = 0;

	for (__u32 step = 32; step; step /= 2) {
		if (value >> step) {
			value >>= step;
			log += step;
		}
	}
	return log;
}

#endif
