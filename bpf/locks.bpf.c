// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Waits for locks: each is sent when it begins, so that the holder can be looked up, and at its end. */
#include "bpf/lock_event.h"
#include "bpf/pid_filter.h"

ARGUMENT(field1);
ARGUMENT(field2);
ARGUMENT(field3);
ARGUMENT(field4);
ARGUMENT(kind);
ARGUMENT(mode);
ARGUMENT(lock);
ARGUMENT(name);
ARGUMENT(xid);
ARGUMENT(relation);
ARGUMENT(block_high);
ARGUMENT(block_low);
ARGUMENT(offset);
ARGUMENT(session);	/* MySQL and MariaDB: the THD, or 0 */
ARGUMENT(context);	/* … and its MDL_context */
ARGUMENT(wait_event);	/* PostgreSQL: address of what it says that it waits for */
ARGUMENT(self);		/* its PID, as it sees it, .. */
ARGUMENT(proc_pid);	/* .. and as its PGPROC has it, if that is laid out as expected */
ARGUMENT(named);	/* address of the first struct lwlock_named, .. */
ARGUMENT(nnamed);	/* .. and how many there are */

CONSTANT(target_id);
CONSTANT(threshold_ns);	/* shorter LWLock waits are nothing */
CONSTANT(sum_lwlocks);	/* LWLock waits are summed up, and not sent */

MAP(waits);		/* hash: u64 thread, see wait_key() → struct event_lock */
MAP(rows);		/* LRU hash: u64 thread → struct lock_row */
MAP(sums);		/* hash: struct lwlock_key → struct lwlock_sum */

static __u32 (*const bpf_get_smp_processor_id)(void) = (void *)BPF_FUNC_get_smp_processor_id;

/* While a thread waits for a lock it may wait for an LWLock, too. */
INLINE __u64 wait_key(int lwlock)
{
	return (__u32)bpf_get_current_pid_tgid() | (__u64)lwlock << 32;
}

/* Fills what a wait begins with. 0: its process is not wanted. */
static __attribute__((noinline)) int wait_begin(void *ctx, struct event_lock *wait)
{
	__u64 id = id_seen(bpf_get_current_pid_tgid());

	if (!id || !pid_wanted(ctx, id >> 32))
		return 0;
	wait->type = EVENT_LOCK_WAIT;
	wait->target_id = VALUE(target_id);
	wait->pid = id >> 32;
	wait->tid = id;
	wait->start_ns = bpf_ktime_get_ns();
	return 1;
}

static __attribute__((noinline)) void wait_send(void *ctx, struct event_lock *wait)
{
	send(ctx, wait, sizeof(*wait));
}

static __attribute__((noinline)) void wait_keep(__u64 key, const struct event_lock *wait)
{
	if (bpf_map_update_elem(waits, &key, wait, BPF_ANY))
		count(LOST_TABLE_FULL);
}

/* The thread's wait is over. */
static __attribute__((noinline)) void wait_end(void *ctx, __u32 flags)
{
	__u64 key = wait_key(0);
	struct event_lock *wait = bpf_map_lookup_elem(waits, &key);

	if (!wait)
		return;
	wait->type = EVENT_LOCK_END;
	wait->duration_ns = bpf_ktime_get_ns() - wait->start_ns;
	wait->flags |= flags;
	count(COUNT_STATEMENTS);
	wait_send(ctx, wait);
	bpf_map_delete_elem(waits, &key);
}

/* PostgreSQL: who waits for the end of transaction ->xid wants this row. */
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
	if (row) {
		/* A transaction's lock has nothing but its number. */
		if (row->xid == wait.field[0] && !wait.field[1] && !wait.field[2]) {
			wait.relation = row->relation;
			wait.block = row->block;
			wait.offset = row->offset;
		}
		bpf_map_delete_elem(rows, &key);
	}
	wait_keep(key, &wait);
	if (wait.address)
		wait_send(ctx, &wait);
	return 0;
}

/* Behind lock_start, where the probe does not tell the address. */
PROGRAM(lock_queue)
{
	__u64 key = wait_key(0);
	struct event_lock *wait = bpf_map_lookup_elem(waits, &key);

	if (!wait || wait->address)
		return 0;
	wait->address = arg_lock(ctx);
	wait_send(ctx, wait);
	return 0;
}

/* MySQL and MariaDB: somebody who is about to wait for a metadata lock sees whether he may. */
PROGRAM(session_metadata)
{
	__u64 key = wait_key(0);
	struct lock_row row = { .relation = arg_context(ctx) };

	bpf_map_update_elem(rows, &key, &row, BPF_ANY);
	return 0;
}

/* The server tells its scheduler that a thread will wait, and for what. */
PROGRAM(session_wait)
{
	__u64 key = wait_key(0);
	__u32 kind = arg_kind(ctx);
	struct event_lock wait = {};
	struct lock_row *row;

	/* Not for the disk or the client. */
	if (kind < LOCK_WAITS_FIRST || kind > LOCK_WAITS_LAST || !wait_begin(ctx, &wait))
		return 0;
	wait.kind = kind;
	wait.flags = LOCK_SESSION;
	wait.address = arg_session(ctx);
	row = bpf_map_lookup_elem(rows, &key);
	if (row) {
		if (kind == LOCK_WAITS_METADATA)
			wait.relation = row->relation;
		bpf_map_delete_elem(rows, &key);
	}
	wait_keep(key, &wait);
	wait_send(ctx, &wait);
	return 0;
}

PROGRAM(lock_done)
{
	wait_end(ctx, 0);
	return 0;
}

PROGRAM(lock_failed)
{
	wait_end(ctx, LOCK_FAILED);
	return 0;
}

PROGRAM(lock_deadlock)
{
	__u64 key = wait_key(0);
	struct event_lock *wait = bpf_map_lookup_elem(waits, &key);

	if (wait)
		wait->flags |= LOCK_DEADLOCK | LOCK_FAILED;
	return 0;
}

PROGRAM(lwlock_start)
{
	struct event_lock wait = {};

	if (wait_begin(ctx, &wait))
		wait_keep(wait_key(1), &wait);
	return 0;
}

INLINE void lwlock_sum_up(void *ctx, struct event_lock *wait)
{
	struct lwlock_key key = { .target_id = VALUE(target_id), .mode = wait->mode,
				 .cpu = bpf_get_smp_processor_id(), .tranche = wait->field[0] };
	struct lwlock_sum first = { 1, wait->duration_ns, wait->duration_ns }, *sum;

	__builtin_memcpy(key.name, wait->name, sizeof(key.name));
	sum = bpf_map_lookup_elem(sums, &key);
	if (!sum) {
		if (bpf_map_update_elem(sums, &key, &first, BPF_NOEXIST))
			count(LOST_TABLE_FULL);
		/* For its tranche's name to be looked up. */
		wait->type = EVENT_LOCK_WAIT;
		if (!wait->name[0])
			wait_send(ctx, wait);
		return;
	}
	__sync_fetch_and_add(&sum->count, 1);
	__sync_fetch_and_add(&sum->total_ns, wait->duration_ns);
	if (sum->max_ns < wait->duration_ns)
		sum->max_ns = wait->duration_ns;
}

PROGRAM(lwlock_done)
{
	__u64 key = wait_key(1);
	struct event_lock *kept = bpf_map_lookup_elem(waits, &key), wait;

	if (!kept)
		return 0;
	wait = *kept;
	bpf_map_delete_elem(waits, &key);
	wait.duration_ns = bpf_ktime_get_ns() - wait.start_ns;
	count(COUNT_STATEMENTS);
	if (wait.duration_ns < VALUE(threshold_ns))
		return 0;
	wait.type = EVENT_LOCK_END;
	wait.flags = LOCK_LWLOCK;
	/* Where a function returns there are none. */
	if (arg_name(ctx)) {
		wait.mode = arg_mode(ctx);
		bpf_probe_read_user_str(wait.name, sizeof(wait.name), (const void *)arg_name(ctx));
	}
	if (VALUE(sum_lwlocks))
		lwlock_sum_up(ctx, &wait);
	else
		wait_send(ctx, &wait);
	return 0;
}

/* The name of an extension's tranche, where it asked for it when the server started. */
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

/* A backend is about to sleep, not only for LWLocks: what it says that it waits for tells. */
PROGRAM(semaphore_start)
{
	struct event_lock wait = {};
	__u32 event = 0, self;

	if (bpf_probe_read_user(&event, sizeof(event), (const void *)arg_wait_event(ctx)) ||
	    event >> 24 != LWLOCK_CLASS || !wait_begin(ctx, &wait))
		return 0;
	wait.field[0] = event & 0xffff;
	self = arg_self(ctx);
	wait.mode = self && (__u32)arg_proc_pid(ctx) == self ? arg_mode(ctx) : LWLOCK_MODES;
	lwlock_name(ctx, &wait);
	wait_keep(wait_key(1), &wait);
	return 0;
}

char dual_license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
