/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that copy their code when they start. A breakpoint is copied, too, and ends the process
 * when it hits it: such a file is attached to when its processes are older than that.
 */
#ifndef DB_DISCOVER_YOUNG_H
#define DB_DISCOVER_YOUNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/process.h"

#define YOUNG_NS	60000000000u	/* by when a process has copied its code */
#define YOUNG_FILES	32		/* that are remembered */
#define YOUNG_ANY_USER	UINT32_MAX

/*
 * Files with a young process, by the user of the server: by executing another user's server again
 * and again, nobody keeps it from being traced. All zero is none.
 */
struct young {
	struct young_file {
		struct process_file file;
		uint32_t uid;
		uint64_t until_ns;	/* CLOCK_MONOTONIC; 0: unused */
		bool checked;		/* since then */
	} files[YOUNG_FILES];
};

/*
 * Return the PID of the youngest main process of user *@uid, or YOUNG_ANY_USER, that runs @file if
 * it is younger than YOUNG_NS, with its user in *@uid and for how long it still is in *@left_ns.
 * Return 0 if none is.
 */
uint32_t young_process(const struct process_file *file, uint32_t *uid, uint64_t *left_ns);

/*
 * Do not attach to @file for servers of @uid for @left_ns. Return whether that is to be reported:
 * the first time, unless another file of the user had to be forgotten for it, which would be again
 * and again.
 */
bool young_add(struct young *young, const struct process_file *file, uint32_t uid,
	       uint64_t left_ns);

/* Return whether @file must not be attached to for servers of @uid. */
bool young_is(const struct young *young, const struct process_file *file, uint32_t uid);

/* Return whether the time of a file has come, once for each. */
bool young_due(struct young *young);

/* Return whether files are still to be attached to. */
bool young_any(const struct young *young);

#endif
