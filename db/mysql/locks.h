/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a session of MySQL or MariaDB waits for, and who is before it, read from the server's memory
 * while it waits. As in pglocks.h nothing is taken from a table of releases: a session (THD) is
 * known by its class, a metadata lock's ticket by pointing back, its key by its lengths.
 */
#ifndef DB_MYSQL_LOCKS_H
#define DB_MYSQL_LOCKS_H

#include "db/backend_state.h"
#include "db/lock_info.h"

/* Of a server's file. */
struct mysql_locks {
	uint64_t lowest;	/* address of what is loaded, as linked */
	uint64_t sessions;	/* what the first word of a THD is, as linked; 0: not known */
	int64_t connection;	/* where a THD has its number; -1: not known */
	unsigned int connection_size;
	/* Learned: where a THD has its InnoDB transaction, which has its THD and that it waits for. */
	size_t trx_at, trx_session_at, trx_wait_at;
	unsigned int fruitless;	/* how often that was looked for and not found */
	bool trx_known;
	bool has_waited;	/* a transaction has one pointer to another: what it waits for */
};

void mysql_locks_find(const struct elf *elf, struct mysql_locks *places);

/*
 * Reads what the session of @event, a LOCK_SESSION, waits for; its text by @backend, at most @size
 * bytes. @learn: it most likely still waits, so that what is not found then is not there; how a
 * transaction looks is learned from such. As postgres_locks_read().
 */
int mysql_locks_read(struct mysql_locks *places, const struct backend_places *backend,
		     const struct event_lock *event, size_t size, bool learn, struct lock_info *known);

#endif
