/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command doctor: what its parts share. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>

#include "cli/option.h"
#include "cli/output.h"
#include "loader/error.h"
#include "loader/attach.h"

enum doctor_state {
	DOCTOR_OK,
	DOCTOR_NOTE,		/* worth knowing, and not in the way */
	DOCTOR_OBSTACLE,
};

/* What was found, kept for JSON; owns its strings. */
struct doctor_finding {
	enum doctor_state state;
	char *about, *text, *remedy;	/* the last may be NULL */
};

struct doctor {
	struct options options;
	struct output out, err;
	struct doctor_finding *findings;	/* notes and obstacles */
	size_t nfindings;
	unsigned int obstacles;
	enum attach_method method;
	/* While servers are told of. */
	char *last;			/* SITE_TEXT bytes: the arguments of the site before */
	unsigned int servers, sites;
};

/*
 * Says what was found of @about, in a line, and the @remedy in another unless it is NULL. With
 * --json both are kept to be told at the end. The text may have foreign bytes.
 */
void doctor_say(struct doctor *doctor, enum doctor_state state, const char *about,
		const char *remedy, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The same for a fault: an obstacle, with the words and the remedy of the other commands. */
void doctor_error(struct doctor *doctor, const char *about, const struct error *error);

/* Prints a heading; nothing with --json. */
void doctor_heading(struct doctor *doctor, const char *text);

/* The kernel, what it can do and what we may do. Sets ->way. */
void doctor_host(struct doctor *doctor);

/* Every server that runs, or the file @path. */
void doctor_servers(struct doctor *doctor);
void doctor_files(struct doctor *doctor);

/* Attaches to ourselves. */
void doctor_self_test(struct doctor *doctor);

#endif
