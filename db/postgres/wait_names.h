/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of PostgreSQL's wait events as in pg_stat_activity. lock_names.h has those of locks and
 * LWLocks. Up to 16 the others are in a table here. Since 17 they are in the server's memory: the
 * built-in ones in the array of pg_wait_events, with the number as the position in the class, and
 * those of extensions in a hash table.
 */
#ifndef DB_POSTGRES_WAIT_NAMES_H
#define DB_POSTGRES_WAIT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/postgres/locks.h"
#include "host/process_memory.h"
#include "usdt/elf.h"

/* Classes: the upper byte of a wait event. Source: utils/wait_classes.h, pgstat.h before 14. */
enum wait_class {
	WAIT_LWLOCK = 1, WAIT_LOCK = 3, WAIT_BUFFER, WAIT_ACTIVITY, WAIT_CLIENT, WAIT_EXTENSION,
	WAIT_IPC, WAIT_TIMEOUT, WAIT_IO, WAIT_INJECTION_POINT, WAIT_CLASSES
};

#define WAIT_NAME	64	/* bytes of a name, with the NUL: NAMEDATALEN */

/* All zero: nothing is known. */
struct wait_names {
	uint64_t text;			/* string "ArchiverMain", as linked; 0: missing */
	unsigned int release;		/* 15; 0: unknown */
	/* Since 17: the first element of each class, as linked, and their number. */
	struct wait_names_class {
		uint64_t first;
		unsigned int count;
	} class[WAIT_CLASSES];
	bool has_buffer;		/* the name of WAIT_BUFFER is "Buffer", since 19 */
	uint64_t custom;		/* variable: the hash table, as linked; 0: not found */
	unsigned int searches;		/* for that */
};

/* Find in @elf what wait_names_read() needs. */
void wait_names_find(const struct elf *elf, struct wait_names *names);

/* Find the names in the memory of a process of release @version ("15.14"). */
void wait_names_read(struct wait_names *names, const struct postgres_locks *locks,
		     const struct process_memory *memory, const char *version);

/*
 * Write the class of wait event @event and its name, "IO:DataFileRead", to @to. @memory is that of
 * the process that waits. An unknown name is a number, "IO:77", and so is an unknown class, "12:5".
 * "" if @event is 0: none.
 */
void wait_names_write(struct wait_names *names, const struct postgres_locks *locks,
		      const struct process_memory *memory, uint32_t event, char *to, size_t size);

/*
 * Return the name of number @id in @class of a release from 10 to 16, or NULL: it is of another
 * release, or has none. Static.
 */
const char *wait_table_name(unsigned int release, enum wait_class class, unsigned int id);

#endif
