/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending records: the buffer, waking the consumer, counters, PIDs as the consumer sees them. */
#ifndef BPF_RECORD_H
#define BPF_RECORD_H

#include "bpf/bpf.h"
#include "bpf/event.h"
#include "bpf/owner.h"

CONSTANT(pid_ns_dev);	/* PID namespace of the tool; 0: the initial one */
CONSTANT(pid_ns_ino);
CONSTANT(target_id);	/* the file of a probe; tracepoints have none */
CONSTANT(perf_buffers);	/* a perf buffer per CPU, as there is no ring buffer (457f44363a88, 5.8) */

/* Objects of one runtime that count different events have counters of their own. */
#ifndef FIRST_COUNTER
#define FIRST_COUNTER	0
#endif

MAP(counters);		/* per-CPU array: FIRST_COUNTER + enum counter → u64 */
MAP(ring);		/* the ring buffer, or a perf event array */
MAP(wakers);		/* perf event array: events on the same buffers that wake the consumer */
MAP(losses);		/* hash: struct loss_key → struct losses */
MAP(control);		/* array of one: struct control */

INLINE void count(__u32 which)
{
	__u32 index = FIRST_COUNTER + which;
	__u64 *n = bpf_map_lookup_elem(counters, &index);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/* Count a loss of owner @number. */
static __attribute__((noinline)) void lost_of(__u32 number, __u32 which)
{
	struct owner *owner = owner_get(number);

	count(which);
	if (owner && which < COUNTERS)
		ATOMIC_ADD(&owner->lost[which], 1);
}

/* Count a loss of the current process's owner. */
INLINE void lost(__u32 which)
{
	lost_of(owner_current(), which);
}

/* Count a loss of the current process, which runs file @target and has owner @number. */
static __attribute__((noinline)) void lost_at(__u32 target, __u32 number, __u32 which)
{
	struct loss_key key = { (__u32)bpf_get_current_uid_gid(), target };
	struct losses *of_server = bpf_map_lookup_elem(losses, &key), none = {};

	lost_of(number, which);
	if (!of_server && owner_may_add_losses(number)) {
		if (!bpf_map_update_elem(losses, &key, &none, BPF_NOEXIST))
			owner_entries(number, OWNER_LOSSES, 1);
		of_server = bpf_map_lookup_elem(losses, &key);
	}
	if (of_server && which < COUNTERS)
		ATOMIC_ADD(&of_server->lost[which], 1);
}

/* The same, of the current process's owner. */
INLINE void lost_in(__u32 target, __u32 which)
{
	lost_at(target, owner_current(), which);
}

/*
 * Write a record without a wake-up, which would cost more than everything else. Return 0, or not 0
 * if it does not fit. A kernel may lack one of the two helpers: the verifier does not follow a
 * branch that a constant excludes.
 */
INLINE long output(void *ctx, void *record, __u64 size)
{
	struct owner *owner = owner_may_send(((const struct event_head *)record)->owner, size);
	long err;

	if (!owner)
		return -1;
	if (VALUE(perf_buffers))
		err = bpf_perf_event_output(ctx, ring, BPF_F_CURRENT_CPU, record, size);
	else
		err = bpf_ringbuf_output(ring, record, size, BPF_RB_NO_WAKEUP);
	if (!err)
		ATOMIC_ADD(&owner->sent, OWNER_CHARGE(size));
	return err;
}

/* Return memory for a record of @head's owner in the ring buffer, or NULL. */
INLINE void *output_reserve(struct event_head head, __u64 size)
{
	struct owner *owner = owner_may_send(head.owner, size);
	struct event_head *record;

	if (!owner)
		return 0;
	record = bpf_ringbuf_reserve(ring, size, 0);
	if (!record)
		return 0;
	*record = head;
	ATOMIC_ADD(&owner->sent, OWNER_CHARGE(size));
	return record;
}

/*
 * Wake the consumer if it sleeps. It sets ->asleep before it checks for records one last time, so
 * either it sees the record or the program sees ->asleep.
 */
INLINE void wake(void *ctx)
{
	char empty[WAKE_BYTES] = {};
	__u32 zero = 0;
	struct control *ctl = bpf_map_lookup_elem(control, &zero);
	void *record;

	if (!ctl || !READ_ONCE(ctl->asleep))
		return;
	ctl->asleep = 0;
	if (VALUE(perf_buffers)) {
		bpf_perf_event_output(ctx, wakers, BPF_F_CURRENT_CPU, empty, sizeof(empty));
		return;
	}
	record = bpf_ringbuf_reserve(ring, WAKE_BYTES, 0);
	if (record)
		bpf_ringbuf_discard(record, BPF_RB_FORCE_WAKEUP);
}

/* Return the head of a record of the current process. */
INLINE struct event_head event_head(__u32 type)
{
	return (struct event_head){ .type = (__u16)type, .owner = (__u16)owner_current() };
}

/*
 * Send a record that begins as struct event_session does. Return 0, or not 0 if it is lost, which
 * is counted.
 */
static __attribute__((noinline, unused)) long send(void *ctx, void *record, __u64 size)
{
	const struct event_session *event = record;
	long err = output(ctx, record, size);

	if (err)
		lost_at(event->target_id, event->head.owner, LOST_RING_FULL);
	else
		wake(ctx);
	return err;
}

/*
 * Translate the current process and thread, @id in the initial PID namespace, to the tool's PID
 * namespace. Return 0 if they are not visible there.
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

/*
 * Return the lesser of a size and its limit. Otherwise clang compares a copy, or adds to one before
 * that, and the verifier does not know the bound of the size (a copy's: before 75748837b7e5, 5.10).
 * To be called where the size is used: nor has what is kept on the stack a bound (5689d49b71ad).
 */
INLINE __u64 at_most(__u64 size, __u64 limit)
{
	__asm__ volatile("" : "+r"(size));
	return size > limit ? limit : size;
}

/*
 * Return the position of the highest set bit, 0 if there is none. Without branches, as the verifier
 * follows each path: it took half a second for a program that has this twice.
 */
INLINE __u32 record_log2(__u64 value)
{
	__u32 log = 0;

	for (__u32 step = 32; step; step /= 2) {
		__u64 upper = value >> step, any = upper | -upper;

		__asm__("" : "+r"(any));	/* the compiler would make it a comparison */
		any >>= 63;
		value >>= any * step;
		log += any * step;
	}
	return log;
}

/* Return the 64-bit word of the kernel at @address; 0 if it cannot be read. */
static __attribute__((noinline)) __u64 kernel_word(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const void *)address);
	return word;
}

#endif
