/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MySQL and MariaDB: waits for locks. */
#ifndef BPF_MYSQL_LOCKS_H
#define BPF_MYSQL_LOCKS_H

#include "bpf/lock_wait.h"

ARGUMENT(session);	/* the THD, or 0 */
ARGUMENT(context);	/* its MDL_context */
ARGUMENT(error);	/* the number of an error */

/* Registers that a call preserves, or 0. */
ARGUMENT(kept0);
ARGUMENT(kept1);
ARGUMENT(kept2);
ARGUMENT(kept3);
ARGUMENT(kept4);
ARGUMENT(kept5);
ARGUMENT(kept6);
ARGUMENT(kept7);
ARGUMENT(kept8);
ARGUMENT(kept9);

/* A thread is about to wait for a metadata lock, maybe in several slices. */
PROGRAM(session_metadata)
{
	__u64 key = wait_key(0);
	struct lock_row row = { .relation = arg_context(ctx) };

	bpf_map_update_elem(rows, &key, &row, BPF_ANY);
	return 0;
}

/*
 * Set the THD of @wait, and in ->relation the address of the THR_LOCK_DATA at @data, if there is
 * one: include/thr_lock.h of MariaDB. User space verifies it.
 */
static __attribute__((noinline)) int wait_for_table(struct event_lock *wait, __u64 data)
{
	__u64 words[5], previous, session;	/* owner, next, previous, lock, condition */

	if (bpf_probe_read_user(words, sizeof(words), (const void *)data) || !words[4] ||
	    bpf_probe_read_user(&previous, sizeof(previous), (const void *)words[2]) ||
	    previous != data ||
	    bpf_probe_read_user(&session, sizeof(session), (const void *)(words[0] + 16)))
		return 0;
	wait->relation = data;
	wait->address = session;
	return 1;
}

/*
 * MariaDB announces a wait for a lock of a whole table, as of MyISAM, without saying of whom. The
 * function that waits has what it waits for in a register.
 */
INLINE void wait_find_table(void *ctx, struct event_lock *wait)
{
	if (wait_for_table(wait, arg_kept0(ctx)) || wait_for_table(wait, arg_kept1(ctx)) ||
	    wait_for_table(wait, arg_kept2(ctx)) || wait_for_table(wait, arg_kept3(ctx)) ||
	    wait_for_table(wait, arg_kept4(ctx)) || wait_for_table(wait, arg_kept5(ctx)) ||
	    wait_for_table(wait, arg_kept6(ctx)) || wait_for_table(wait, arg_kept7(ctx)) ||
	    wait_for_table(wait, arg_kept8(ctx)))
		return;
	wait_for_table(wait, arg_kept9(ctx));
}

/* thd_wait_begin(THD *, type): the server announces a wait to its thread scheduler. */
PROGRAM(session_wait)
{
	__u64 key = wait_key(0);
	__u32 kind = arg_kind(ctx);
	struct event_lock wait = {};
	struct lock_row *row;

	/* Ignore waits for the disk or the client. */
	if (kind < LOCK_WAITS_FIRST || kind > LOCK_WAITS_LAST || !wait_begin(ctx, &wait))
		return 0;
	wait.kind = kind;
	wait.flags = LOCK_SESSION;
	wait.address = arg_session(ctx);
	if (kind == LOCK_WAITS_TABLE && !wait.address)
		wait_find_table(ctx, &wait);
	row = bpf_map_lookup_elem(rows, &key);
	if (row) {
		if (kind == LOCK_WAITS_METADATA)
			wait.relation = row->relation;
		bpf_map_delete_elem(rows, &key);
	} else if (kind == LOCK_WAITS_METADATA) {
		wait.flags |= LOCK_MORE;
	}
	wait_keep(key, &wait);
	wait_announce(ctx, key, &wait);
	return 0;
}

/* Return what error @number of a statement says of its last wait; 0: nothing. */
INLINE __u32 session_failure(__u32 number)
{
	switch (number) {
	case 1205:			/* ER_LOCK_WAIT_TIMEOUT */
	case 1613:			/* ER_XA_RBTIMEOUT */
	case 1969:			/* ER_STATEMENT_TIMEOUT of MariaDB .. */
	case 3024:			/* .. ER_QUERY_TIMEOUT of MySQL */
		return LOCK_FAILED | LOCK_TIMEOUT;
	case 1213:			/* ER_LOCK_DEADLOCK */
	case 1614:			/* ER_XA_RBDEADLOCK */
	case 3058:			/* ER_USER_LOCK_DEADLOCK */
		return LOCK_FAILED | LOCK_DEADLOCK;
	case 1053:			/* ER_SERVER_SHUTDOWN */
	case 1317:			/* ER_QUERY_INTERRUPTED */
	case 1927:			/* ER_CONNECTION_KILLED of MariaDB */
		return LOCK_FAILED | LOCK_KILLED;
	}
	return 0;
}

/* An error of a session: sent with the statement's text, as the wait was. */
PROGRAM(session_error)
{
	__u32 flags = session_failure((__u32)arg_error(ctx));
	struct event_lock error = {};

	if (!flags || !wait_begin(ctx, &error))
		return 0;
	error.head.type = EVENT_LOCK_ERROR;
	error.flags = LOCK_SESSION | flags;
	wait_announce(ctx, wait_key(0), &error);
	return 0;
}

#endif
