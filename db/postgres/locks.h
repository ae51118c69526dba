/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who holds a lock that a PostgreSQL backend waits for, and what a backend does, read from their
 * memory while they wait. What differs by release is not taken from a table but found, by what must
 * hold: a lock's tag is the one that is waited for, what hangs on it points back to it, a PID
 * is that of a process of the same server. Where it does not hold, it is not known.
 */
#ifndef DB_POSTGRES_LOCKS_H
#define DB_POSTGRES_LOCKS_H

#include "db/lock_info.h"
#include "host/process.h"
#include "usdt/elf.h"

#define PGLOCKS_KINDS	16
#define PGLOCKS_TRANCHES	100	/* of LWLocks, that are the server's own */
#define PGLOCKS_TRANCHE	48

/* Of a server's file. */
struct postgres_locks {
	uint64_t lowest;	/* address of what is loaded, as linked */
	/* Variables as linked; 0: not there. */
	uint64_t proc, entry, query, client, kinds;
	unsigned int nkinds;
	/*
	 * Names of LWLocks' tranches. Up to 16 the first ones are in an array of their own; that of
	 * the others has two known texts side by side, and is in no file before 13.
	 */
	uint64_t individual, texts[2];
	unsigned int nindividual, text;	/* how many; the number of the first text's tranche */
	uint64_t data, data_bytes;	/* what it has in the file of its variables */
	/* Foreign bytes: the server's words for kinds of locks, as "relation", and for tranches. */
	char kind[PGLOCKS_KINDS][24], tranche[PGLOCKS_TRANCHES][PGLOCKS_TRANCHE];
	/* Where a PGPROC has what it waits for, and its share in that; -1: not seen yet. */
	int64_t wait_at, holder_at;
	uint64_t link_at;	/* … and its link in the queue */
};

void postgres_locks_find(const struct elf *elf, struct postgres_locks *places);

/*
 * Reads of process @pid what it waits for, as @event tells; without fields, if ->address is
 * 0. At most @size bytes of each text. 0; -ENOENT: it waits for no lock; or -errno: @wait has
 * what could be had all the same. lock_info_clear() ends it.
 */
int postgres_locks_read(struct postgres_locks *places, uint32_t pid,
			const struct event_lock *event, size_t size,
			struct lock_info *wait);

/*
 * Reads ->kind and ->tranche from process @pid of release @version, as "15.14". What is not known
 * stays "".
 */
void postgres_locks_names(struct postgres_locks *places, uint32_t pid, const char *version);

#endif
