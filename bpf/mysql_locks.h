/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MySQL and MariaDB: waits for locks. */
#ifndef BPF_MYSQL_LOCKS_H
#define BPF_MYSQL_LOCKS_H

#include "bpf/lock_wait.h"

ARGUMENT(session);	/* the THD, or 0 */
ARGUMENT(context);	/* its MDL_context */

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

#endif
