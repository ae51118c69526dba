/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PostgreSQL: waits for heavyweight locks and LWLocks. */
#ifndef BPF_POSTGRES_LOCKS_H
#define BPF_POSTGRES_LOCKS_H

#include "bpf/lock_wait.h"

ARGUMENT(field1);	/* of the LOCKTAG */
ARGUMENT(field2);
ARGUMENT(field3);
ARGUMENT(field4);
ARGUMENT(lock);		/* address of the LOCALLOCK; 0: not available at the probe */
ARGUMENT(xid);		/* transaction that is waited for, because of this row: */
ARGUMENT(relation);
ARGUMENT(block_high);
ARGUMENT(block_low);
ARGUMENT(offset);
ARGUMENT(name);		/* address of the LWLock's tranche name; 0: none */
ARGUMENT(wait_event);	/* address of the current wait event */
ARGUMENT(self);		/* PID as the backend sees itself .. */
ARGUMENT(proc_pid);	/* .. and in its PGPROC, if that has the expected layout */
ARGUMENT(named);	/* address of NamedLWLockTrancheArray, and its length */
ARGUMENT(nnamed);

CONSTANT(threshold_ns);	/* shorter LWLock waits are ignored */
CONSTANT(sum_lwlocks);	/* LWLock waits are summed up, not sent */

MAP(sums);		/* hash: struct lwlock_key → struct lwlock_sum */

static __u32 (*const bpf_get_smp_processor_id)(void) = (void *)BPF_FUNC_get_smp_processor_id;

/*
 * XactLockTableWait(): a thread that waits for the end of transaction xid wants this row.
 * LockTuple(), before it: the thread wants to be the next one to have the row; xid is 0.
 */
PROGRAM(lock_row)
{
	__u64 key = wait_key(0);
	struct lock_row row = {};

	row.relation = arg_relation(ctx);
	row.xid = arg_xid(ctx);
	row.block = arg_block_high(ctx) << 16 | arg_block_low(ctx);
	row.offset = arg_offset(ctx);
	bpf_map_update_elem(rows, &key, &row, BPF_ANY);
	return 0;
}

/* Add @row, the last one that the thread has wanted, to its @wait if it is for that. */
INLINE void lock_of_row(struct event_lock *wait, const struct lock_row *row)
{
	const __u32 *tag = wait->field;

	/* The tag of a row's lock: database, relation, block and offset. */
	if (tag[1] && !row->xid && row->block == tag[2] && row->offset == tag[3])
		wait->relation = row->relation;
	/*
	 * The tag of a transaction's lock consists of its number. Of a row that a subtransaction
	 * has changed, the wait may be for that one, for one that it is part of, which began
	 * earlier, or for one after the other.
	 */
	if (tag[1] || tag[2] || !row->xid || (__s32)(row->xid - tag[0]) < 0)
		return;
	wait->relation = row->relation;
	wait->block = row->block;
	wait->offset = row->offset;
}

/* A wait for a heavyweight lock begins. */
PROGRAM(lock_start)
{
	__u64 key = wait_key(0);
	struct event_lock wait = {};
	struct lock_row *row;

	if (!wait_begin(ctx, &wait))
		return 0;
	wait.field[0] = arg_field1(ctx);
	wait.field[1] = arg_field2(ctx);
	wait.field[2] = arg_field3(ctx);
	wait.field[3] = arg_field4(ctx);
	wait.kind = arg_kind(ctx);
	wait.mode = arg_mode(ctx);
	wait.address = arg_lock(ctx);
	row = bpf_map_lookup_elem(rows, &key);
	if (row)
		lock_of_row(&wait, row);
	wait_keep(key, &wait);
	if (wait.address)
		wait_announce(ctx, key, &wait);
	return 0;
}

/* ProcSleep(), after lock_start: add the lock's address where the probe lacks it, and send. */
PROGRAM(lock_queue)
{
	__u64 key = wait_key(0);
	struct event_lock *wait = bpf_map_lookup_elem(waits, &key);

	if (!wait || wait->address)
		return 0;
	wait->address = arg_lock(ctx);
	wait_announce(ctx, key, wait);
	return 0;
}

PROGRAM(lwlock_start)
{
	struct event_lock wait = {};

	if (wait_begin(ctx, &wait))
		wait_keep(wait_key(1), &wait);
	return 0;
}

/* Add an LWLock wait to the sum of its lock, mode and CPU. */
INLINE void lwlock_add(void *ctx, struct event_lock *wait)
{
	struct lwlock_key key = { .target_id = VALUE(target_id), .mode = wait->mode,
				  .cpu = bpf_get_smp_processor_id(), .tranche = wait->field[0],
				  .uid = wait->uid };
	struct lwlock_sum first = { 1, wait->duration_ns, wait->duration_ns }, *sum;

	__builtin_memcpy(key.name, wait->name, sizeof(key.name));
	sum = bpf_map_lookup_elem(sums, &key);
	if (!sum) {
		if (!owner_may_add_group(wait->head.owner) ||
		    bpf_map_update_elem(sums, &key, &first, BPF_NOEXIST))
			lost_at(wait->target_id, wait->head.owner, LOST_TABLE_FULL);
		else
			owner_entries(wait->head.owner, OWNER_GROUPS, 1);
		/* Sent once, so that user space resolves the tranche's name. */
		wait->head.type = EVENT_LOCK_WAIT;
		if (!wait->name[0])
			wait_send(ctx, wait);
		return;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->total_ns, wait->duration_ns);
	if (sum->max_ns < wait->duration_ns)
		sum->max_ns = wait->duration_ns;
}

/* Return the tranche of the LWLock that the wait event names; 0: none. */
INLINE __u32 lwlock_waited_for(void *ctx)
{
	__u32 event = 0;

	bpf_probe_read_user(&event, sizeof(event), (const void *)arg_wait_event(ctx));
	return event >> 24 == LWLOCK_CLASS ? event & 0xffff : 0;
}

PROGRAM(lwlock_done)
{
	__u64 key = wait_key(1);
	struct event_lock *kept = bpf_map_lookup_elem(waits, &key), wait;

	if (!kept)
		return 0;
	wait = *kept;
	wait_forget(key, wait.counted);
	wait.duration_ns = bpf_ktime_get_ns() - wait.start_ns;
	count(COUNT_STATEMENTS);
	if (wait.duration_ns < VALUE(threshold_ns))
		return 0;
	wait.head.type = EVENT_LOCK_END;
	wait.flags = LOCK_LWLOCK;
	/*
	 * Only a probe has the name and mode; at a return, semaphore_start has set them. The server
	 * does not read the name: where its page is not mapped, the wait event has the tranche.
	 */
	if (arg_name(ctx)) {
		wait.mode = arg_mode(ctx);
		if (bpf_probe_read_user_str(wait.name, sizeof(wait.name),
					    (const void *)arg_name(ctx)) < 0)
			wait.field[0] = lwlock_waited_for(ctx);
	}
	if (VALUE(sum_lwlocks))
		lwlock_add(ctx, &wait);
	else
		wait_send(ctx, &wait);
	return 0;
}

/* Read the name of an extension's tranche, if it requested it at the server's start. */
INLINE void lwlock_name(void *ctx, struct event_lock *wait)
{
	const struct lwlock_named *named = (const void *)arg_named(ctx);
	struct lwlock_named one = {};
	__u32 tranche = wait->field[0], first;

	if (!arg_nnamed(ctx) || bpf_probe_read_user(&one, sizeof(one), named))
		return;
	first = one.tranche;
	if (tranche < first || tranche - first >= arg_nnamed(ctx) ||
	    bpf_probe_read_user(&one, sizeof(one), named + (tranche - first)))
		return;
	if (one.tranche == tranche)
		bpf_probe_read_user_str(wait->name, sizeof(wait->name), (const void *)one.name);
}

/* PGSemaphoreLock(): a backend is about to sleep. Its wait event identifies LWLock waits. */
PROGRAM(semaphore_start)
{
	struct event_lock wait = {};
	__u32 tranche = lwlock_waited_for(ctx), self;

	if (!tranche || !wait_begin(ctx, &wait))
		return 0;
	wait.field[0] = tranche;
	self = arg_self(ctx);
	wait.mode = self && (__u32)arg_proc_pid(ctx) == self ? arg_mode(ctx) : LWLOCK_MODES;
	lwlock_name(ctx, &wait);
	wait_keep(wait_key(1), &wait);
	return 0;
}

#endif
