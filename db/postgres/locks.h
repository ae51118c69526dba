/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lock waits of PostgreSQL, 10 to 19: the awaited lock, its holders and their statements, read from
 * the memory of the backends during the wait. Offsets that differ between releases are not built
 * in; they are found by invariants: a lock has the awaited tag, a structure points back to those
 * that point to it, a PID is that of a process of the same server. If one does not hold, the
 * result is unknown.
 */
#ifndef DB_POSTGRES_LOCKS_H
#define DB_POSTGRES_LOCKS_H

#include "db/locks/info.h"
#include "db/postgres/kind.h"
#include "db/postgres/variables.h"
#include "usdt/elf.h"

#define POSTGRES_LOCK_KINDS	16
#define POSTGRES_TRANCHES	100	/* built-in ones */
#define POSTGRES_TRANCHE	48	/* bytes of a name */

/* Addresses and offsets for a server's file. */
struct postgres_locks {
	bool (*is_program)(const char *name);	/* for process_read(); the caller sets it */
	uint64_t lowest;	/* lowest address of its segments, as linked */
	/* Variables as linked; 0: missing. */
	uint64_t proc, entry, entry_size, query, kinds;
	struct postgres_kinds serves;
	size_t entry_text;	/* offset in an entry of pg_stat_activity, see entry.h */
	unsigned int searches;	/* for ->entry, which has no symbol before 14 */
	bool has_starting;	/* see postgres_entry_state() */
	unsigned int nkinds;
	/*
	 * Names of LWLock tranches. Up to 16, the first ones are in an array with a symbol,
	 * ->individual. The array of the others has no symbol; it is found in memory by pointers to
	 * two adjacent names, ->texts. Before 13 an array that is allocated has all.
	 */
	uint64_t individual, texts[2];
	unsigned int nindividual;	/* elements of ->individual */
	unsigned int text;		/* tranche of texts[0], as an index into the array */
	struct variables variables;
	/* Foreign bytes: names of lock types, as "relation", and of tranches; "" if unknown. */
	char kind[POSTGRES_LOCK_KINDS][24], tranche[POSTGRES_TRANCHES][POSTGRES_TRANCHE];
	/* Learned offsets in a PGPROC: waitLock and waitProcLock, -1 if unknown; queue links. */
	int64_t wait_at, holder_at;
	uint64_t link_at;
};

/* Find the symbols and offsets in @elf. */
void postgres_locks_find(const struct elf *elf, struct postgres_locks *places);

/* Search for ->entry, if it is missing, in the memory of the process that knows itself as @pid. */
void postgres_entry_search(struct postgres_locks *places, const struct process_memory *memory,
			   uint32_t pid);

/* Return whether ->entry is known, or may still be found. */
bool postgres_entry_known(const struct postgres_locks *places);

/*
 * Read the heavyweight lock that process @pid waits for, given by @event, or if its ->address is 0
 * by the process itself; and at most @size bytes of each backend's statement. Return 0; -ENOENT if
 * it waits for no lock; or -errno: @info then has what could be read. lock_info_clear() ends it.
 */
int postgres_locks_read(struct postgres_locks *places, uint32_t pid,
			const struct event_lock *event, size_t size,
			struct lock_info *info);

#endif
