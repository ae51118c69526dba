/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of the locks of MySQL and MariaDB. */
#ifndef DB_MYSQL_NAMES_H
#define DB_MYSQL_NAMES_H

#include <stddef.h>

#include "bpf/lock_event.h"
#include "db/locks/info.h"

/* Return the kind of lock that @event, a LOCK_SESSION, waits for: "row"; "": unknown. Static. */
const char *mysql_lock_kind(const struct event_lock *event);

/* See ->object of struct lock_ops: the name of the awaited object, "" if @info is NULL. */
void mysql_lock_object(const char *kind, const struct event_lock *event,
		       const struct lock_info *info, bool each, char *to, size_t size);

/*
 * Copy InnoDB's name of a table, "database/table", to @to as "database.table". A character of the
 * original names may be written as @002d; those beyond ASCII are left so. The text is cut to
 * @size bytes, at least 1, with the NUL.
 */
void mysql_table_name(const char *name, char *to, size_t size);

#endif
