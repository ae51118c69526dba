/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A thread's wait for a lock, and its record: common to all engines. */
#ifndef BPF_LOCK_WAIT_H
#define BPF_LOCK_WAIT_H

#include "bpf/lock_event.h"
#include "bpf/pid_filter.h"

ARGUMENT(kind);
ARGUMENT(mode);
ARGUMENT(text);		/* address of the statement's text; 0: not available */
ARGUMENT(length);	/* its length; 0: it ends with a NUL */

CONSTANT(lock_text_bytes);	/* bytes of a text that are sent */
CONSTANT(lock_text_size);	/* the same + 2: for a NUL, and to detect a longer text */

MAP(waits);		/* hash: u64 thread, see wait_key() → struct event_lock */
MAP(rows);		/* LRU hash: u64 thread → struct lock_row */
MAP(wait_texts);	/* hash: u64 thread → struct event_lock and its text, being composed */
MAP(wait_blank);	/* array of one: such a value, all zero */

#define WAIT_LWLOCK	(1ULL << 32)

/* Return the current thread's key. While it waits for a lock it may wait for an LWLock, too. */
INLINE __u64 wait_key(int lwlock)
{
	return (__u32)bpf_get_current_pid_tgid() | (lwlock ? WAIT_LWLOCK : 0);
}

/* Fill in what a wait begins with. Return 0 if its process is not wanted. */
static __attribute__((noinline)) int wait_begin(void *ctx, struct event_lock *wait)
{
	__u64 id = id_seen(bpf_get_current_pid_tgid());

	if (!id || !pid_wanted(ctx, id >> 32))
		return 0;
	wait->head = event_head(EVENT_LOCK_WAIT);
	wait->target_id = VALUE(target_id);
	wait->pid = id >> 32;
	wait->tid = id;
	wait->uid = (__u32)bpf_get_current_uid_gid();
	wait->start_ns = bpf_ktime_get_ns();
	return 1;
}

static __attribute__((noinline)) void wait_send(void *ctx, struct event_lock *wait)
{
	send(ctx, wait, sizeof(*wait));
}

/* Read the statement's text behind the record @wait. */
INLINE void wait_text(void *ctx, struct event_lock *wait)
{
	const char *text = (const char *)arg_text(ctx);
	__u64 length = arg_length(ctx);
	long n;

	if (length) {
		if (bpf_probe_read_user(wait + 1, at_most(length, VALUE(lock_text_bytes)), text))
			return;
	} else {
		n = bpf_probe_read_user_str(wait + 1, VALUE(lock_text_size), text);
		length = n > 0 ? n - 1 : 0;
	}
	if (length > VALUE(lock_text_bytes))
		wait->flags |= LOCK_CUT;
	wait->text_len = at_most(length, VALUE(lock_text_bytes));
}

/*
 * Send that @wait of the thread @key begins, with the text of its statement: when user space reads
 * the thread's memory, it may already run the next one.
 */
static __attribute__((noinline)) void wait_announce(void *ctx, __u64 key, struct event_lock *wait)
{
	struct event_lock *record = 0;
	__u32 zero = 0;
	void *blank = arg_text(ctx) ? bpf_map_lookup_elem(wait_blank, &zero) : 0;

	if (blank && !bpf_map_update_elem(wait_texts, &key, blank, BPF_ANY))
		record = bpf_map_lookup_elem(wait_texts, &key);
	if (!record) {
		wait_send(ctx, wait);
		return;
	}
	*record = *wait;
	wait_text(ctx, record);
	send(ctx, record, sizeof(*record) + at_most(record->text_len, VALUE(lock_text_bytes)));
	bpf_map_delete_elem(wait_texts, &key);
}

static __attribute__((noinline)) void wait_keep(__u64 key, struct event_lock *wait)
{
	const struct event_lock *before = bpf_map_lookup_elem(waits, &key);
	__u32 number = wait->head.owner;

	wait->counted = before ? before->counted : number + 1;
	if ((!before && !owner_may_add_wait(number)) ||
	    bpf_map_update_elem(waits, &key, wait, BPF_ANY))
		lost_at(wait->target_id, number, LOST_TABLE_FULL);
	else if (!before)
		owner_entries(number, OWNER_WAITS, 1);
}

/* Delete the wait of @key, whose ->counted was @counted. */
INLINE void wait_forget(__u64 key, __u32 counted)
{
	if (!bpf_map_delete_elem(waits, &key) && counted)
		owner_entries(counted - 1, OWNER_WAITS, -1);
}

/* End the wait of @key, if there is one, and send it. */
static __attribute__((noinline)) void wait_end(void *ctx, __u64 key, __u32 flags)
{
	struct event_lock *wait = bpf_map_lookup_elem(waits, &key);

	if (!wait)
		return;
	wait->head.type = EVENT_LOCK_END;
	wait->duration_ns = bpf_ktime_get_ns() - wait->start_ns;
	wait->flags |= flags;
	count(COUNT_STATEMENTS);
	wait_send(ctx, wait);
	wait_forget(key, wait->counted);
}

/*
 * Drop what is kept for thread @tid of the current process, whose ID another thread may get, or has
 * already got: that one's wait stays.
 */
INLINE void waits_end(void *ctx, __u32 tid)
{
	__u32 pid = id_seen(bpf_get_current_pid_tgid()) >> 32;
	__u64 key = tid, lwlock_key = key | WAIT_LWLOCK;
	const struct event_lock *wait = bpf_map_lookup_elem(waits, &key);
	const struct event_lock *lwlock = bpf_map_lookup_elem(waits, &lwlock_key);

	if (wait && wait->pid == pid)
		wait_end(ctx, key, LOCK_FAILED);
	if (lwlock && lwlock->pid == pid)
		wait_forget(lwlock_key, lwlock->counted);
	if (!wait || wait->pid == pid)
		bpf_map_delete_elem(rows, &key);
}

#endif
