/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Knowledge of servers, by file, user and main process. Names and offsets are learned from the
 * memory of processes, which can falsify them, so no two users share them.
 */
#ifndef DB_DISCOVER_STATES_H
#define DB_DISCOVER_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "db/discover/target.h"
#include "host/process_memory.h"

/* Then the least recently used one of the user who has the most is dropped. */
#define STATES_MAX	256

struct state;

/* Empty if all zero; states_clear() frees it. */
struct states {
	struct state *first;		/* the most recently used */
	size_t n;
};

struct state_key {
	uint32_t target_id, uid;
	uint32_t server;		/* PID of the main process; 0: of all, or unknown */
};

/* Return the state of @key, or NULL if none was read. Valid until the next states_read(). */
void *states_get(struct states *states, const struct state_key *key);

/*
 * The same; if none was read, read it as @ops do from the file of @target, which is @key's, and
 * process @pid. NULL: that failed.
 */
void *states_read(struct states *states, const struct state_ops *ops, const struct target *target,
		  uint32_t pid, const struct state_key *key);

/*
 * Open the memory of process @pid for reads of the program's variables if it runs the file of
 * @target and is of user @uid. Return 0 or -errno. process_memory_close() ends it.
 */
int states_memory(const struct target *target, uint32_t pid, uint32_t uid,
		  struct process_memory *memory);

/* Drop all. */
void states_clear(struct states *states);

#endif
