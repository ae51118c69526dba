// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/engines.h"
#include "host/elf_map.h"

/* Bytes of a file to read at most: records and signals wait as long. PostgreSQL requires 5 MB. */
#define FIND_WORK	(64u << 20)
#define UID_NONE	(~0u)	/* of the file, without the parts that are learned from memory */

struct state {
	struct state *next;
	struct state_key key;
	uint32_t owner;		/* the user whose process it was read from */
	uint64_t data[];	/* of struct state_ops */
};

void *states_get(struct states *states, const struct state_key *key)
{
	struct state **place = &states->first, *state;

	while (*place && memcmp(&(*place)->key, key, sizeof(*key)))
		place = &(*place)->next;
	state = *place;
	if (!state)
		return NULL;
	*place = state->next;
	state->next = states->first;
	states->first = state;
	return state->data;
}

static void states_remove(struct states *states, struct state **place)
{
	struct state *state = *place;

	*place = state->next;
	free(state);
	states->n--;
}

/* Drop the least recently used state of the user who has the most. */
static void states_drop(struct states *states)
{
	struct state **dropped = NULL, *state;
	size_t most = 0;

	for (struct state **place = &states->first; *place; place = &(*place)->next) {
		size_t n = 0;

		for (state = states->first; state; state = state->next)
			n += state->owner == (*place)->owner;
		if (n >= most)
			dropped = place;
		most = n > most ? n : most;
	}
	states_remove(states, dropped);
}

/* Add a state of @size bytes, all zero, for a process of @owner. Return NULL if out of memory. */
static void *states_add(struct states *states, const struct state_key *key, uint32_t owner,
			size_t size)
{
	struct state *state = calloc(1, sizeof(*state) + size);

	if (!state)
		return NULL;
	if (states->n == STATES_MAX)
		states_drop(states);
	state->key = *key;
	state->owner = owner;
	state->next = states->first;
	states->first = state;
	states->n++;
	return state->data;
}

/* Return the state of @target's file, which @process runs, or NULL: it cannot be opened. */
static const void *states_file(struct states *states, const struct state_ops *ops,
			       const struct target *target, const struct process *process)
{
	const struct state_key key = { .target_id = target->id, .uid = UID_NONE };
	void *file = states_get(states, &key);
	struct process_file found;
	struct elf_map map;
	int fd;

	if (file)
		return file;
	fd = process_open(process);
	if (fd < 0)
		return NULL;
	/* It may run another one by now. */
	if (!process_file_read(fd, &found) && process_file_same(&found, &target->file) &&
	    !elf_map_open(&map, fd, NULL)) {
		map.work.left = FIND_WORK;
		file = states_add(states, &key, process->uid, ops->bytes);
		if (file)
			ops->find(file, &map.elf, engine_is_executable);
		elf_map_close(&map);
	}
	close(fd);
	return file;
}

/* Return 0 if process @pid runs the file of @target and is of user @uid, or -errno. */
static int process_of(const struct target *target, uint32_t pid, uint32_t uid,
		      struct process *process)
{
	int err = process_read(pid, engine_is_executable, process);

	if (!err && (process->uid != uid || !process_file_same(&process->file, &target->file)))
		err = -ESTALE;
	return err;
}

int states_memory(const struct target *target, uint32_t pid, uint32_t uid,
		  struct process_memory *memory)
{
	struct process process;
	int err = process_of(target, pid, uid, &process);

	return err ? err : process_memory_open_program(&process, target->lowest_vaddr, memory);
}

/* Read the names. Return false if the process has ended meanwhile. */
static bool states_names(void *state, const struct state_ops *ops, const struct target *target,
			 uint32_t pid, uint32_t uid)
{
	struct process_memory memory;
	bool lives;
	char byte;

	if (states_memory(target, pid, uid, &memory))
		return false;
	ops->names(state, &memory, target->version);
	lives = !process_memory_variable(&memory, target->lowest_vaddr, &byte, sizeof(byte));
	process_memory_close(&memory);
	return lives;
}

void *states_read(struct states *states, const struct state_ops *ops, const struct target *target,
		  uint32_t pid, const struct state_key *key)
{
	void *state = states_get(states, key);
	struct process process;
	const void *file;

	/* Another user's process may have the PID by now. */
	if (state || process_of(target, pid, key->uid, &process))
		return state;
	file = states_file(states, ops, target, &process);
	if (file)
		state = states_add(states, key, key->uid, ops->bytes);
	if (!state)
		return NULL;
	memcpy(state, file, ops->bytes);
	if (!ops->names || states_names(state, ops, target, pid, key->uid))
		return state;
	states_remove(states, &states->first);
	return NULL;
}

void states_clear(struct states *states)
{
	while (states->n)
		states_drop(states);
}
