/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a session of MySQL or MariaDB serves. */
#ifndef DB_MYSQL_KIND_H
#define DB_MYSQL_KIND_H

#include "db/event.h"
#include "db/session/object.h"
#include "host/process_memory.h"
#include "usdt/elf.h"

struct mysql_kinds {
	int64_t system_thread;	/* offset in a THD; -1: unknown */
	bool mysql;		/* its numbers are MySQL's, not MariaDB's */
};

void mysql_kinds_find(const struct elf *elf, struct mysql_kinds *kinds);

/*
 * Write what the THD at @thd serves to @kind: "client" or another word; "": unknown. Return whether
 * it is a thread of the server itself, false if that is unknown.
 */
bool mysql_kind_read(const struct mysql_kinds *kinds, const struct process_memory *memory,
		     uint64_t thd, char kind[BACKEND_NAME]);

/*
 * Read whom the session at @thd is of and what it serves to @who: see object_read_who(). A thread
 * of the server itself is of the user that it works for, as an event's definer. Return as above.
 */
bool mysql_who_read(const struct mysql_kinds *kinds, const struct process_memory *memory,
		    const struct object_places *places, uint64_t thd, int64_t *own,
		    struct who *who);

#endif
