/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Metadata locks of MySQL and MariaDB, sql/mdl.h; user locks are of them, too. */
#ifndef DB_MYSQL_METADATA_LOCK_H
#define DB_MYSQL_METADATA_LOCK_H

#include "db/mysql/lock_reader.h"

/*
 * Read the metadata lock that the MDL_context at @context waits for, and its holders. @session is
 * the THD that contains it, or 0. Return 0 or -ENOENT.
 */
int metadata_lock_read(struct lock_reader *r, uint64_t context, uint64_t session,
		       struct lock_info *info);

/*
 * Return the offset of the MDL_context in the THD at @session, or 0: it is known of a session that
 * has a metadata lock, or waits for one.
 */
size_t metadata_lock_learn(struct lock_reader *r, uint64_t session);

#endif
