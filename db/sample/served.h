/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* In the child of db/sample/helper.h: the processes of the servers that are read. */
#ifndef DB_SAMPLE_SERVED_H
#define DB_SAMPLE_SERVED_H

#include "db/discover/detect.h"
#include "db/discover/discover.h"
#include "db/sample/files.h"
#include "db/sample/helper.h"

#define SERVED_PATHS	16

/* All zero but the first members before its use; served_clear() frees it. */
struct served {
	const struct server_filter *filter;	/* borrowed */
	struct helper_shared *shared;		/* borrowed */
	struct files files;			/* with its callback */
	bool denied;				/* it was reported that memory cannot be read */
	struct detect detect;
	struct process_file paths[SERVED_PATHS];	/* of the filter */
	uint64_t until_ns;		/* CLOCK_MONOTONIC: served_each() pauses; 0: it does not */
	uint32_t reached;		/* the last PID that it has read */
};

/* A process of a server. All is borrowed. */
struct served_process {
	const struct served_file *file;		/* whose ->state is not NULL */
	const struct process *process;
	struct helper_user *user;
	uint64_t deadline_ns;	/* CLOCK_MONOTONIC: the user's share of the time ends */
};

/*
 * Call @each for each process that the filter selects, of a server whose sessions can be read, with
 * a PID above @from, until it returns another value than 0, or ->until_ns. Return 0 at the end; 1
 * before; or -errno with the cause in @error: a process or file of the filter is not a server's, or
 * /proc cannot be read.
 */
int served_each(struct served *served, uint32_t from,
		int (*each)(void *arg, const struct served_process *of), void *arg,
		struct error *error);

/* Report that the memory of process @pid cannot be read, once; @err: -errno of that. */
void served_deny(struct served *served, uint32_t pid, int err);

/* Fill @server with what is known of that of @file, whose main process is @main. */
void served_server(const struct served_file *file, uint32_t main, uint32_t pid,
		   struct server *server);

void served_clear(struct served *served);

#endif
