/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli/doctor/: the command doctor: the checks of the host and of servers.
 * It changes nothing on the host.
 */

/* Findings of the command doctor: printed at once, or kept for the end of the JSON object. */
#ifndef CLI_DOCTOR_DOCTOR_H
#define CLI_DOCTOR_DOCTOR_H

#include <stdbool.h>

#include "cli/option/option.h"
#include "cli/output.h"
#include "loader/attach.h"
#include "loader/error.h"

enum doctor_state {
	DOCTOR_DETAIL,		/* ok, and printed only with -v */
	DOCTOR_OK,
	DOCTOR_NOTE,		/* does not prevent tracing */
	DOCTOR_OBSTACLE,	/* prevents tracing */
};

struct doctor_finding {
	enum doctor_state state;
	char *subject, *text, *remedy;	/* owned; foreign bytes; ->remedy may be NULL */
};

struct doctor {
	struct options options;
	struct output out, err;
	struct doctor_finding *findings;	/* owned: notes and obstacles, with --json */
	size_t nfindings;
	unsigned int obstacles;
	enum attach_method method;	/* that tracing would use; ATTACH_NONE: none, or unknown */
	const char *blind;		/* why running servers cannot be found; NULL: they can */
	bool restricted;		/* servers of other users cannot be found */
};

/*
 * Report a finding about @subject in one line, and @remedy, unless it is NULL, in another one. With
 * --json keep both if it is a note or an obstacle. The texts may have foreign bytes.
 */
void doctor_report(struct doctor *doctor, enum doctor_state state, const char *subject,
		   const char *remedy, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/*
 * Report @error in the words of message_error(): as an obstacle, or if @note is not NULL, as a note
 * with this text instead of the remedy.
 */
void doctor_error(struct doctor *doctor, const char *subject, const struct error *error,
		  const char *note);

/* Append a heading; nothing with --json. */
void doctor_heading(struct doctor *doctor, const char *text);

/* Append the end of the output: the JSON members of the findings, or a line with their number. */
void doctor_finish(struct doctor *doctor);

/* Free the findings. */
void doctor_clear(struct doctor *doctor);

#endif
