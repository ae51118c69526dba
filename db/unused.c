// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/unused.h"

#include <stdlib.h>

#include "db/engines.h"

#define FORGET_ONCE	2	/* at once: the kernel needs a while for each */

struct in_use {
	const struct target *targets;
	size_t ntargets;
	bool *target;			/* by index in ->targets */
};

static int in_use_each(void *arg, const struct process *process)
{
	struct in_use *in_use = arg;

	for (size_t i = 0; i < in_use->ntargets; i++)
		if (process_file_same(&in_use->targets[i].file, &process->file))
			in_use->target[i] = true;
	return 0;
}

size_t unused_attached(const struct target *targets, size_t ntargets)
{
	size_t n = 0;

	for (size_t i = 0; i < ntargets; i++)
		n += targets[i].file.ino != 0;
	return n;
}

bool unused_detach(struct target *targets, size_t ntargets)
{
	struct in_use in_use = { targets, ntargets, calloc(ntargets + 1, sizeof(*in_use.target)) };
	size_t gone = 0;
	bool all = in_use.target &&
		   !process_each(engine_is_executable, in_use_each, &in_use);

	for (size_t i = 0; all && i < ntargets; i++) {
		struct target *target = &targets[i];

		if (!target->file.ino || in_use.target[i])
			continue;
		if (gone++ == FORGET_ONCE)
			break;
		target_close(target);
		target->file.ino = 0;
	}
	free(in_use.target);
	return all && gone < FORGET_ONCE;
}
