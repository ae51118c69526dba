/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What differs between engines about locks: the probes of waits, and how to read the holders. */
#ifndef DB_LOCK_OPS_H
#define DB_LOCK_OPS_H

#include "db/backend_state.h"
#include "db/engine.h"
#include "db/lock_info.h"
#include "usdt/elf.h"

/* What is read of a wait. */
struct lock_query {
	const struct event_lock *event;
	const struct backend_places *places;	/* of the server's file */
	uint32_t text_bytes;		/* of each text, at most */
	bool again;			/* not the first try: its end is not in the buffer */
};

/*
 * The functions of an engine. They share the state of a server's file, ->state_bytes that are zero
 * at first; it is NULL for a file of which nothing is known.
 */
struct lock_ops {
	const struct engine_probe_set *probes;
	size_t state_bytes;
	/* Find in the file what reading takes. @is_program is for process_read(). */
	void (*find)(void *state, const struct elf *elf, bool (*is_program)(const char *name));
	/* Read the server's names from process @pid of release @version. NULL: there are none. */
	void (*names)(void *state, uint32_t pid, const char *version);
	/*
	 * Resolve the holders of the awaited lock. Return 0; -ENOENT if the process waits for none;
	 * or -errno: @info has what could be read all the same. lock_info_clear() ends it.
	 */
	int (*read)(void *state, const struct lock_query *query, struct lock_info *info);
	/* Return whether holders once read are all there can be. NULL: always. */
	bool (*complete)(const void *state);
	/* Return the kind of the lock, foreign bytes, "" if not known. @state may be NULL. */
	const char *(*kind)(const void *state, const struct event_lock *event);
	/* Return the name of an LWLock's tranche, or NULL. @state may be NULL. NULL: no LWLocks. */
	const char *(*tranche)(const void *state, uint32_t tranche);
	/* Write the name of the lock's relation to @name, "" if not known. NULL: not known. */
	void (*relation)(const void *state, const struct event_lock *event,
			 char name[LOCK_RELATION]);
	/* ->read() works for a wait that no probe has seen the beginning of: ->address is 0. */
	bool joins;
};

#endif
