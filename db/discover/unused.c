// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/unused.h"

#include <stdlib.h>

#include "db/engines.h"

#define FORGET_ONCE	16	/* at once: the kernel needs a while, for all of them as for one */

struct in_use {
	const struct target *targets;
	size_t ntargets;
	bool *target;			/* by index in ->targets */
	const struct elf_pause *pause;
};

static int in_use_each(void *arg, const struct process *process)
{
	struct in_use *in_use = arg;

	for (size_t i = 0; i < in_use->ntargets; i++)
		if (process_file_same(&in_use->targets[i].file, &process->file))
			in_use->target[i] = true;
	if (in_use->pause->pause)
		in_use->pause->pause(in_use->pause->arg);
	return 0;
}

size_t unused_attached(const struct target *targets, size_t ntargets, const uint32_t *uid)
{
	size_t n = 0;

	for (size_t i = 0; i < ntargets; i++)
		n += targets[i].file.ino && (!uid || targets[i].uid == *uid);
	return n;
}

bool unused_detach(struct target *targets, size_t ntargets, size_t least,
		   const struct elf_pause *pause)
{
	struct in_use in_use = { targets, ntargets, calloc(ntargets + 1, sizeof(*in_use.target)),
				 pause };
	struct uprobe_links links = { 0 };
	size_t gone = 0;
	bool all = in_use.target &&
		   !process_each(engine_is_executable, in_use_each, &in_use);

	for (size_t i = 0; all && i < ntargets; i++)
		if (targets[i].file.ino && !in_use.target[i])
			in_use.target[i] = unused_attached(targets, ntargets,
							   &targets[i].uid) < least;
	for (size_t i = 0; all && i < ntargets; i++) {
		struct target *target = &targets[i];

		if (!target->file.ino || in_use.target[i])
			continue;
		if (gone++ == FORGET_ONCE)
			break;
		uprobe_set_move(&links, &target->links);
		target_close(target);
		target->file.ino = 0;
	}
	uprobe_set_detach(&links);
	free(in_use.target);
	return all && gone < FORGET_ONCE;
}

/* Note what @target was; without memory its losses are of an unknown file. */
static void unused_note(struct unused *unused, const struct target *target)
{
	struct unused_target *to;

	if (!unused->removed)
		unused->removed = calloc(UNUSED_NAMED, sizeof(*unused->removed));
	if (!unused->removed)
		return;
	to = &unused->removed[unused->count++ % UNUSED_NAMED];
	to->id = target->id;
	describe_server(&to->server, target->engine, target->version, target->path);
}

size_t unused_remove(struct unused *unused, struct target *targets, size_t ntargets)
{
	size_t kept = 0;

	for (size_t i = 0; i < ntargets; i++) {
		if (!targets[i].file.ino) {
			unused_note(unused, &targets[i]);
			continue;
		}
		if (kept < i)
			targets[kept] = targets[i];
		kept++;
	}
	return kept;
}

const struct server *unused_by_id(const struct unused *unused, uint32_t id)
{
	for (size_t i = 0; i < unused->count && i < UNUSED_NAMED; i++)
		if (unused->removed[i].id == id)
			return &unused->removed[i].server;
	return NULL;
}

void unused_close(struct unused *unused)
{
	free(unused->removed);
}
