/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which servers there are and what would be put on them. Programs are linked and nothing more:
 * no rights are needed but those to read the files.
 */
#ifndef DB_SURVEY_H
#define DB_SURVEY_H

#include "db/discover.h"

/* Who hears of what; the strings are borrowed for the call. */
struct survey {
	enum attach_method method;		/* that would be taken */
	void *arg;
	/*
	 * A server's file. @fault says why it cannot be traced; NULL: it can, and its sites
	 * follow.
	 */
	void (*server)(void *arg, const struct server_info *server, const struct error *error);
	void (*site)(void *arg, const struct target_site *site);
};

/* What a file is that is no server's. */
struct survey_other {
	uint16_t machine;	/* of <elf.h> */
	size_t probes;		/* USDT probes, each name once */
};

/*
 * Tells of every server that runs here, as the tracer would find them. How many files they run, or
 * -errno where /proc cannot be read.
 */
int survey_running(const struct survey *survey);

/*
 * Tells of the server's file open as @fd. 0; -ENOENT: it is no known server's, see @other;
 * -ENOEXEC: it is no ELF file; or -errno.
 */
int survey_file(const struct survey *survey, const char *path, int fd, struct survey_other *other);

#endif
