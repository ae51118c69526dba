/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lock waits of MySQL and MariaDB: the awaited lock and its holders, read from the memory of the
 * server during the wait. No offsets are built in; objects are found by properties that all
 * releases share. A session (THD) is identified by its vtable, a metadata lock's ticket
 * (MDL_ticket) by pointers back to it, a lock's key (MDL_key) by its lengths, a transaction (trx_t)
 * by its awaited lock.
 */
#ifndef DB_MYSQL_LOCKS_H
#define DB_MYSQL_LOCKS_H

#include "db/backend_state.h"
#include "db/lock_info.h"

/* Addresses and offsets for a server's file. */
struct mysql_locks {
	bool (*is_program)(const char *name);	/* for process_read(); the caller sets it */
	uint64_t lowest;	/* lowest address of its segments, as linked */
	uint64_t sessions;	/* first word of a THD, as linked; 0: unknown */
	int64_t connection;	/* offset of the connection id in a THD; -1: unknown */
	unsigned int connection_size;	/* in bytes */
	/* Learned: offset of the trx_t in a THD; of its THD and of the awaited trx_t in a trx_t. */
	size_t trx_at, trx_session_at, trx_wait_at;
	unsigned int failures;	/* attempts to learn them that failed */
	bool trx_valid;		/* they were learned */
	bool has_waited;	/* a trx_t points to one other trx_t only: the awaited one */
};

/* Find the symbols and offsets in @elf. */
void mysql_locks_find(const struct elf *elf, struct mysql_locks *places);

/*
 * Read the lock that the session of @event, a LOCK_SESSION, waits for, and at most @size bytes of
 * each session's statement, with @backend. @learn: offsets that are still unknown may be learned
 * from this session, as it most likely still waits. Return as postgres_locks_read().
 */
int mysql_locks_read(struct mysql_locks *places, const struct backend_places *backend,
		     const struct event_lock *event, size_t size, bool learn,
		     struct lock_info *info);

#endif
