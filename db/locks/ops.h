/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lock operations of an engine: the probes of waits, and reading a lock and its holders. */
#ifndef DB_LOCKS_OPS_H
#define DB_LOCKS_OPS_H

#include "db/engine.h"
#include "db/locks/info.h"
#include "db/session/backend_state.h"
#include "usdt/elf.h"

/* A wait to read, and the limits. All is borrowed. */
struct lock_query {
	const struct event_lock *event;
	const struct backend_places *places;	/* of the server's file */
	uint32_t text_bytes;		/* maximum length of each text */
	bool again;			/* not the first try: the wait's end is not in the buffer */
	bool named;			/* the lock's object is known */
	bool identify;			/* read the waiting session's identity */
};

/* Fields of a lock's tag that have a meaning of their own, as bits. */
#define LOCK_TAG_DATABASE	0x01	/* field[0] is the OID of a database */
#define LOCK_TAG_RELATION	0x02	/* field[1] is the OID of a relation */
#define LOCK_TAG_TRANSACTION	0x04	/* field[0] is a transaction id */

/* The functions with a state share one per server's file and user; NULL if it was not read. */
struct lock_ops {
	const struct engine_probe_set *probes;
	struct state_ops state;
	/*
	 * Resolve the holders of the awaited lock. Return 0; -ENOENT if the process waits for no
	 * lock; or -errno. @info has what could be read in each case; lock_info_clear() frees it.
	 */
	int (*read)(void *state, const struct lock_query *query, struct lock_info *info);
	/* Return whether the holders that were read are complete. NULL: always. */
	bool (*complete)(const void *state);
	/* Return the kind of the lock, foreign bytes; "": unknown. @state may be NULL. */
	const char *(*kind)(const void *state, const struct event_lock *event);
	/* Return an LWLock tranche's name, or NULL. @state may be NULL. NULL: no LWLocks. */
	const char *(*tranche)(const void *state, uint32_t tranche);
	/* Write the name of the lock's relation to @name; "": unknown. NULL: always unknown. */
	void (*relation)(const void *state, const struct event_lock *event,
			 char name[LOCK_RELATION]);
	/* Return the name of the mode that @event waits for; "": unknown. Static. NULL: none. */
	const char *(*mode)(const struct event_lock *event);
	/*
	 * Describe the awaited object of a lock of @kind in @to, cut to @size bytes with the NUL;
	 * without @each only the part that many waits share, as the relation of a row. @info may
	 * be NULL. The text may have foreign bytes.
	 */
	void (*object)(const char *kind, const struct event_lock *event,
		       const struct lock_info *info, bool each, char *to, size_t size);
	/* Return LOCK_TAG_* of the tags of locks of @kind. NULL: there are no tags. */
	uint32_t (*fields)(const char *kind);
	/*
	 * Return the OID of the relation that the wait for a lock of @kind concerns; 0: none, or
	 * unknown. @info may be NULL. NULL: relations have no OIDs.
	 */
	uint32_t (*oid)(const char *kind, const struct event_lock *event,
			const struct lock_info *info);
	/* ->read() works for a wait whose start no probe has seen: event->address is 0. */
	bool joins;
};

#endif
