// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/locks/states.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/engines.h"
#include "db/locks/ops.h"
#include "host/elf_map.h"

/* Bytes of a file to read at most: records and signals wait as long. PostgreSQL requires 5 MB. */
#define FIND_WORK	(64u << 20)
#define UID_NONE	(~0u)	/* of the file, without the parts that are learned from memory */

struct lock_state {
	struct lock_state *next;
	uint32_t target_id, uid;
	uint32_t owner;		/* the user whose process it was read from */
	uint64_t data[];	/* of struct lock_ops */
};

void *lock_states_get(struct lock_states *states, uint32_t target_id, uint32_t uid)
{
	struct lock_state **place = &states->first, *state;

	while (*place && ((*place)->target_id != target_id || (*place)->uid != uid))
		place = &(*place)->next;
	state = *place;
	if (!state)
		return NULL;
	*place = state->next;
	state->next = states->first;
	states->first = state;
	return state->data;
}

/* Drop the least recently used state of the user who has the most. */
static void states_drop(struct lock_states *states)
{
	struct lock_state **dropped = NULL, *state;
	size_t most = 0;

	for (struct lock_state **place = &states->first; *place; place = &(*place)->next) {
		size_t n = 0;

		for (state = states->first; state; state = state->next)
			n += state->owner == (*place)->owner;
		if (n >= most)
			dropped = place;
		most = n > most ? n : most;
	}
	state = *dropped;
	*dropped = state->next;
	free(state);
	states->n--;
}

/* Add a state of @size bytes, all zero, for a process of @owner. Return NULL if out of memory. */
static void *states_add(struct lock_states *states, uint32_t target_id, uint32_t uid,
			uint32_t owner, size_t size)
{
	struct lock_state *state = calloc(1, sizeof(*state) + size);

	if (!state)
		return NULL;
	if (states->n == LOCK_STATES_MAX)
		states_drop(states);
	state->target_id = target_id;
	state->uid = uid;
	state->owner = owner;
	state->next = states->first;
	states->first = state;
	states->n++;
	return state->data;
}

/* Return the state of @target's file, which @process runs, or NULL: it cannot be read. */
static const void *states_file(struct lock_states *states, const struct target *target,
			       const struct process *process)
{
	const struct lock_ops *ops = target->engine->lock_ops;
	void *file = lock_states_get(states, target->id, UID_NONE);
	struct elf_map map;
	int fd;

	if (file)
		return file;
	fd = process_open(process);
	if (fd < 0)
		return NULL;
	if (!elf_map_open(&map, fd, NULL)) {
		map.work.left = FIND_WORK;
		file = states_add(states, target->id, UID_NONE, process->uid, ops->state_bytes);
		if (file)
			ops->find(file, &map.elf, engine_is_executable);
		elf_map_close(&map);
	}
	close(fd);
	return file;
}

void *lock_states_read(struct lock_states *states, const struct target *target, uint32_t pid,
		       uint32_t uid)
{
	const struct lock_ops *ops = target->engine->lock_ops;
	void *state = lock_states_get(states, target->id, uid);
	struct process process;
	const void *file;

	/* Another user's process may have the PID by now. */
	if (state || process_read(pid, engine_is_executable, &process) || process.uid != uid ||
	    !process_file_same(&process.file, &target->file))
		return state;
	file = states_file(states, target, &process);
	if (file)
		state = states_add(states, target->id, uid, uid, ops->state_bytes);
	if (!state)
		return NULL;
	memcpy(state, file, ops->state_bytes);
	if (ops->names)
		ops->names(state, pid, target->version);
	return state;
}

void lock_states_clear(struct lock_states *states)
{
	while (states->n)
		states_drop(states);
}
