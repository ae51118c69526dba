/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* InnoDB's locks of rows and tables. */
#ifndef DB_MYSQL_ROW_LOCK_H
#define DB_MYSQL_ROW_LOCK_H

#include "db/locks/ops.h"
#include "db/mysql/lock_reader.h"

/*
 * Find the transaction that @session waits for, and the table and index of the lock. Return 0 or
 * -ENOENT. The offsets are learned only with query->again, and not after too many failures: the
 * search is expensive.
 */
int row_lock_read(struct lock_reader *r, uint64_t session, const struct lock_query *query,
		  struct lock_info *info);

#endif
