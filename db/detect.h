/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which programs are database servers: by the file's name, else by what it exports, so that one
 * under another name is found too. Each file is looked into once.
 */
#ifndef DB_DETECT_H
#define DB_DETECT_H

#include "db/engine.h"
#include "host/process.h"

/* Files that were looked into. All zero is empty. */
struct detect {
	struct detect_file {
		struct process_file file;
		const struct engine *engine;	/* NULL: no server */
	} *files;
	size_t nfiles;
};

/* Return the engine that @process is a server of, or NULL. */
const struct engine *detect_process(struct detect *detect, const struct process *process);

/*
 * Return the engine that the file open as @fd is a server of, by the name in @path or by its
 * exported symbols, or NULL.
 */
const struct engine *detect_file(const char *path, int fd);

/* Forgets all. */
void detect_clear(struct detect *detect);

#endif
