// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Waits for locks. A wait is sent twice: when it begins, so that user space can resolve the lock's
 * holders, and when it ends.
 */
#define FIRST_COUNTER	LOCK_COUNTERS

#include "bpf/mysql_locks.h"
#include "bpf/postgres_locks.h"

PROGRAM(lock_done)
{
	wait_end(ctx, wait_key(0), 0);
	return 0;
}

PROGRAM(lock_failed)
{
	wait_end(ctx, wait_key(0), LOCK_FAILED);
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

/* Raw tracepoint sched_process_exit: a thread ends, maybe while it waits. */
PROGRAM(waiter_exit)
{
	waits_end(ctx, (__u32)bpf_get_current_pid_tgid());
	return 0;
}

/* Raw tracepoint sched_process_exec(task, former TID), see thread_exec(). */
PROGRAM(waiter_exec)
{
	const __u64 *args = ctx;

	waits_end(ctx, (__u32)args[1]);
	return 0;
}

char dual_license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
