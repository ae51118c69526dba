// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/process_code.h"

#include <errno.h>
#include <stdlib.h>

#define MAPPINGS_MAX	256	/* of one file; a program has about five */

struct code {
	const struct process *process;
	const uint64_t *offsets;
	bool *mapped;			/* by index in ->offsets */
	size_t count, left;		/* offsets; those that are not mapped so far */
	unsigned int mappings;		/* of the file */
};

/* Note the offsets that @map executes. Stop if all are. */
static int code_each(void *arg, const struct process_map *map)
{
	struct code *code = arg;
	const struct process *process = code->process;

	/* On overlays and btrfs, the two devices differ. */
	if (!process_maps_program(process, map) &&
	    (map->ino != process->file.ino || map->dev != process->file.dev))
		return 0;
	if (code->mappings++ == MAPPINGS_MAX)
		return 1;
	for (size_t i = 0; map->executable && i < code->count; i++) {
		if (code->mapped[i] || code->offsets[i] < map->offset ||
		    code->offsets[i] - map->offset >= map->end - map->start)
			continue;
		code->mapped[i] = true;
		code->left--;
	}
	return !code->left;
}

ssize_t process_code_moved(const struct process *process, const uint64_t *offsets, size_t count)
{
	struct code code = { process, offsets, calloc(count + 1, sizeof(*code.mapped)), count,
			     count, 0 };
	int err = code.mapped ? process_maps(process->pid, code_each, &code) : -ENOMEM;

	free(code.mapped);
	if (err < 0)
		return err;
	return code.mappings && code.mappings <= MAPPINGS_MAX ? (ssize_t)code.left : 0;
}
