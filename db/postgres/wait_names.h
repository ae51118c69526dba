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

#include "db/event.h"
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
	/* Since 17: names of each class, one after the other with their NULs. */
	struct wait_names_class {
		uint16_t first, count;	/* offset in ->builtin */
	} class[WAIT_CLASSES];
	char builtin[16384];
	size_t used;			/* of that */
	bool has_buffer;		/* the name of WAIT_BUFFER is "Buffer", since 19 */
	/* Names of extensions, of one server, as wait_names_custom() found them last. */
	uint64_t custom;		/* variable: the hash table, as linked; 0: not found */
	uint32_t server;
	unsigned int ncustom, failures;
	struct wait_names_custom {
		uint32_t event;
		char name[WAIT_NAME];
	} customs[128];
};

/* Find in @elf what wait_names_read() needs. */
void wait_names_find(const struct elf *elf, struct wait_names *names);

/* Read the built-in names from the memory of a process of release @version ("15.14"). */
void wait_names_read(struct wait_names *names, const struct postgres_locks *locks,
		     const struct process_memory *memory, const char *version);

/*
 * Write the class of wait event @event of @server, the PID of its main process, and its name,
 * "IO:DataFileRead", to @to. An unknown name is a number, "IO:77", and so is an unknown class,
 * "12:5"; "" if @event is 0: none. Return false if wait_names_custom() may find the name.
 */
bool wait_names_write(const struct wait_names *names, const struct postgres_locks *locks,
		      uint32_t server, uint32_t event, char to[WAIT_EVENT]);

/*
 * Read the names of extensions from the memory of a process of @server, in which @event has one.
 * After some failures, nothing is read any more.
 */
void wait_names_custom(struct wait_names *names, const struct postgres_locks *locks,
		       const struct process_memory *memory, uint32_t server, uint32_t event);

/* Return IPC:SyncRep of release @version, "15.14", or 0: it is of none from 10 to 19. */
uint32_t wait_names_replication(const char *version);

/*
 * Return the name of number @id in @class of a release from 10 to 16, or NULL: it is of another
 * release, or has none. Static.
 */
const char *wait_table_name(unsigned int release, enum wait_class class, unsigned int id);

#endif
