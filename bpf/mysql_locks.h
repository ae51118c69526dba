/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MySQL and MariaDB: waits for locks. */
#ifndef BPF_MYSQL_LOCKS_H
#define BPF_MYSQL_LOCKS_H

#include "bpf/lock_wait.h"

ARGUMENT(session);	/* the THD, or 0 */
ARGUMENT(context);	/* its MDL_context */
ARGUMENT(error);	/* the number of an error */

/* A thread is about to wait for a metadata lock, maybe in several slices. */
PROGRAM(session_metadata)
{
	__u64 key = wait_key(0);
	struct lock_row row = { .relation = arg_context(ctx) };

	bpf_map_update_elem(rows, &key, &row, BPF_ANY);
	return 0;
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
