/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files of servers whose memory is read. */
#ifndef DB_SAMPLE_FILES_H
#define DB_SAMPLE_FILES_H

#include "db/discover/target.h"
#include "db/ps/ops.h"
#include "host/process.h"
#include "loader/error.h"

/*
 * A server's file, as one user runs it: a user's process can change what it reports of the file,
 * such as the version, but not what is reported of another user's.
 */
struct served_file {
	uint32_t uid;
	struct target target;		/* only what describes it: no probe is attached */
	const struct ps_ops *ops;
	void *state;			/* of ->ops, owned; NULL: its sessions cannot be read */
};

/* Closed if all but the callback is zero; files_clear() frees it. */
struct files {
	struct served_file **file;	/* owned, each at the same place until files_clear() */
	size_t n;
	bool refused;			/* it was reported that there are too many */
	void *arg;
	/* Called once for each file whose sessions cannot be read; its strings are borrowed. */
	void (*error)(void *arg, const struct error *error);
};

/*
 * Return the file that @process, a server of @engine, runs, which is read if it is a new one; NULL:
 * there are too many, or no memory.
 */
const struct served_file *files_of(struct files *files, const struct engine *engine,
				   const struct process *process);

/* Report an error about @subject. */
void files_report(const struct files *files, enum error_kind kind, int code, const char *subject);

void files_clear(struct files *files);

#endif
