// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/process_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"

#define MAPPINGS_MAX	256	/* of one file; a program has about five */
#define STAT_START	22	/* field of /proc/PID/stat, from 1: in clock ticks since the boot */

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

int64_t process_age_ns(uint32_t pid)
{
	char stat[1024];
	const char *at;
	ssize_t n = process_read_file(pid, "stat", stat, sizeof(stat) - 1);
	int64_t hertz = sysconf(_SC_CLK_TCK);
	uint64_t ticks;
	int64_t age_ns;

	if (n < 0)
		return n;
	stat[n] = '\0';
	/* The name is the process's choice, and may have blanks and brackets. */
	at = strrchr(stat, ')');
	for (int field = 2; at && field < STAT_START; field++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	if (!at || hertz <= 0)
		return -EINVAL;
	ticks = strtoull(at, NULL, 10);
	age_ns = (int64_t)(clock_ns(CLOCK_BOOTTIME) - ticks * (1000000000u / (uint64_t)hertz));
	return age_ns < 0 ? 0 : age_ns;
}
