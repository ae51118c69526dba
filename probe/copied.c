// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe/copied.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/clock.h"
#include "host/process_code.h"

#define FOUND_MAX	256
#define CHECK_NS	1000000000u	/* of all processes: one may have 65,530 mappings */

/* A file that is being searched for. */
struct copied_file {
	struct copied *copied;
	const struct process_file *file;
	uint64_t *offsets;		/* of the sites, owned */
	size_t count;
	uint32_t found[FOUND_MAX];	/* PIDs */
	size_t nfound;
	uint64_t begin_ns;
};

/* Check @process, whose ->file is the one of @of. */
static void copied_check(struct copied_file *of, const struct process *process)
{
	ssize_t moved = process_code_moved(process, of->offsets, of->count);

	of->copied->hits |= moved < (ssize_t)of->count;
	if (moved > 0 && of->nfound < FOUND_MAX)
		of->found[of->nfound++] = process->pid;
}

static int copied_each(void *arg, const struct process *process)
{
	struct copied_file *of = arg;

	if (process_file_same(&process->file, of->file))
		copied_check(of, process);
	return clock_ns(CLOCK_MONOTONIC) - of->begin_ns > CHECK_NS;
}

bool copied_find(struct copied *copied, const struct process_file *file, const char *path,
		 const struct uprobe_set *set, struct error *error)
{
	struct copied_file of = { .copied = copied, .file = file,
				  .begin_ns = clock_ns(CLOCK_MONOTONIC) };
	struct process process;

	if (uprobe_set_offsets(set, &of.offsets, &of.count)) {
		copied->hits = true;
		return false;
	}
	if (!copied->npids)
		process_each(copied->is_program, copied_each, &of);
	for (size_t i = 0; i < copied->npids; i++) {
		if (process_read(copied->pids[i], copied->is_program, &process))
			continue;
		/* A library, which it may load later, too. */
		if (!process_file_same(&process.file, file)) {
			process.file = *file;
			snprintf(process.exe, sizeof(process.exe), "%s", path);
		}
		copied_check(&of, &process);
	}
	free(of.offsets);
	if (of.nfound)
		error_set_copied(error, path, of.found, of.nfound);
	return of.nfound;
}
