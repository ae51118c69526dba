/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User, database and client of a session of MySQL or MariaDB, read from the server's memory. The
 * offsets in a THD are decoded from exported accessors.
 */
#ifndef DB_MYSQL_IDENTITY_H
#define DB_MYSQL_IDENTITY_H

#include "db/event.h"
#include "host/process_memory.h"
#include "usdt/elf.h"

/* A string of an object that a THD points to. Offsets; ->at is -1 if unknown. */
struct mysql_name {
	int64_t at, inner;	/* of the pointer to the object; in it, of that to the string */
	bool counted;		/* the string's length follows; else it has a NUL at its end */
};

struct mysql_identity {
	struct mysql_name user, host, address;
	int64_t database;	/* offset of the pointer to the name in a THD; -1: unknown */
};

/* Find the offsets in the server's file. */
void mysql_identity_find(const struct elf *elf, struct mysql_identity *places);

/* Read the identity of the session whose THD is at @session: foreign bytes; each "" if unknown. */
void mysql_identity_read(const struct process_memory *memory, const struct mysql_identity *places,
			 uint64_t session, struct who *who);

#endif
