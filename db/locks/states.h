/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Knowledge of the locks of servers, by file and user. Names of locks and offsets are learned from
 * the memory of processes, which can falsify them, so no two users share them.
 */
#ifndef DB_LOCKS_STATES_H
#define DB_LOCKS_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "db/discover/target.h"

/* Then the least recently used one of the user who has the most is dropped. */
#define LOCK_STATES_MAX	256

struct lock_state;

/* Empty if all zero; lock_states_clear() frees it. */
struct lock_states {
	struct lock_state *first;	/* the most recently used */
	size_t n;
};

/*
 * Return the state, see struct lock_ops, of servers of user @uid that run file @target_id, or NULL
 * if none was read. Valid until the next lock_states_read().
 */
void *lock_states_get(struct lock_states *states, uint32_t target_id, uint32_t uid);

/* The same; if none was read, read it from @target's file and process @pid. NULL: that failed. */
void *lock_states_read(struct lock_states *states, const struct target *target, uint32_t pid,
		       uint32_t uid);

/* Drop all. */
void lock_states_clear(struct lock_states *states);

#endif
