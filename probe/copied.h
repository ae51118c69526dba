/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes that execute a copy of a file's code, which has no probes: see host/process_code.h. */
#ifndef PROBE_COPIED_H
#define PROBE_COPIED_H

#include "host/process.h"
#include "loader/uprobe_set.h"

/* A search. All but the result is borrowed. */
struct copied {
	const uint32_t *pids;		/* of the processes to check; none: all that run a file */
	size_t npids;
	bool (*is_program)(const char *name);	/* for process_read() */
	bool hits;			/* the result: some site of ->pids may be hit */
};

/*
 * Search for the processes that execute a copy of the file at some of the sites in @set. @path is
 * that of the file. Return whether there are any, which are then in @error.
 */
bool copied_find(struct copied *copied, const struct process_file *file, const char *path,
		 const struct uprobe_set *set, struct error *error);

#endif
