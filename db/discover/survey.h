/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Survey: report the running servers and the probe sites that a tracer would use. Programs are
 * linked but not loaded, so that it requires no privileges except to read the files.
 */
#ifndef DB_DISCOVER_SURVEY_H
#define DB_DISCOVER_SURVEY_H

#include "db/discover/discover.h"

/* Callbacks; their strings are borrowed for the call. */
struct survey {
	enum attach_method method;		/* that a tracer would use */
	void *arg;
	/*
	 * Called for each server's file, with @error set if it cannot be traced, else followed by a
	 * call of ->site for each of its sites.
	 */
	void (*server)(void *arg, const struct server_info *server, const struct error *error);
	void (*site)(void *arg, const struct target_site *site);
};

/* A file that is not a server's. */
struct survey_other {
	uint16_t machine;	/* e_machine of <elf.h> */
	size_t probes;		/* USDT probes by name */
	bool embedded;		/* a library that is a server, or linked with one */
};

/*
 * Report all servers that run, as discovery would find them. Return the number of their files, or
 * -errno if /proc cannot be read.
 */
int survey_running(const struct survey *survey);

/*
 * Report the server's file open as @fd. Return 0; -ENOENT if it is not a known server's, see
 * @other; -ENOEXEC if it is not an ELF file; or -errno.
 */
int survey_file(const struct survey *survey, const char *path, int fd, struct survey_other *other);

#endif
