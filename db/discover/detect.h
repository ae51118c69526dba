/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Detection of database servers: by the name of the executable, else by exported symbols, so that a
 * server under another name is detected too. Each file is read once.
 */
#ifndef DB_DISCOVER_DETECT_H
#define DB_DISCOVER_DETECT_H

#include "db/engine.h"
#include "host/elf_map.h"
#include "host/process.h"
#include "loader/error.h"

/* Results by file. Empty if all zero; detect_clear() frees it. */
struct detect {
	struct detect_file {
		struct process_file file;
		const struct engine *engine;	/* NULL: not a server */
		bool rejected;			/* named as a server of ->engine, which it is not */
	} *files;
	size_t nfiles;
	const struct elf_pause *pause;		/* while a file is read; borrowed; or NULL */
};

/* Return the engine whose servers are named as the program of @process, or NULL. */
const struct engine *detect_name(const struct process *process);

/* Return the engine that @process is a server of; NULL if none, or if fuse_may_serve() its file. */
const struct engine *detect_process(struct detect *detect, const struct process *process);

/* Remember that the program of @process cannot be traced as what detect_process() returned. */
void detect_reject(struct detect *detect, const struct process *process);

/* Return whether detect_reject() was called for that file and name. */
bool detect_is_rejected(const struct detect *detect, const struct process *process);

/*
 * Return the engine that the file open as @fd is a server of, by the name in @path or by its
 * exported symbols, or NULL.
 */
const struct engine *detect_file(const char *path, int fd);

/*
 * Return whether the file open as @fd, or -1, is a library that is a server, or linked with one.
 */
bool detect_is_embedded(const char *path, int fd);

/*
 * Set @error: the file @path is not that of a supported server, or has one as a library. It is open
 * as @fd, or @process runs it and is named. Return @err.
 */
int detect_refuse(const struct process *process, int fd, const char *path, int err,
		  struct error *error);

/* Drop all results; ->pause stays. */
void detect_clear(struct detect *detect);

#endif
