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

#include "db/locks/ops.h"
#include "db/mysql/lock_places.h"
#include "db/mysql/lock_reader.h"

/* Find the symbols and offsets in @elf. */
void mysql_locks_find(const struct elf *elf, struct mysql_locks *places);

/* Read the lock that the session of query->event, a LOCK_SESSION, waits for: lock_ops->read(). */
int mysql_locks_read(struct mysql_locks *places, const struct lock_query *query,
		     struct lock_info *info);

/*
 * Read the row or metadata lock that the THD at @session waits for. What is still to be learned of
 * rows is searched with @learn, which takes some milliseconds. Return 0; or -ENOENT if it waits for
 * none, or what was learned is not enough to tell. lock_info_clear() frees @info in each case.
 */
int mysql_locks_session(struct lock_reader *reader, uint64_t session, bool learn,
			struct lock_info *info);

#endif
