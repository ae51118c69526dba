/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MariaDB's locks of whole tables, as of MyISAM. Source of the layout: include/thr_lock.h. */
#ifndef DB_MYSQL_TABLE_LOCK_H
#define DB_MYSQL_TABLE_LOCK_H

#include "db/mysql/lock_reader.h"

/*
 * Find the table and the holders of the lock for which the THR_LOCK_DATA at @data of the THD at
 * @session waits. Return 0, or -ENOENT if it does not wait.
 */
int table_lock_read(const struct lock_reader *r, uint64_t data, uint64_t session,
		    struct lock_info *info);

#endif
