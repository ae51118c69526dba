/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The messages on standard error: subject, cause and remedy. */
#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include <stdbool.h>

#include "cli/output.h"
#include "db/loss.h"
#include "loader/error.h"

/* The wording of a kind of error. */
struct message_words {
	const char *subject;		/* precedes the subject of the error */
	const char *cause;		/* NULL: the subject contains it */
	const char *remedy;		/* NULL: none */
	bool reason;			/* append the text for errno */
	bool own_remedy;		/* it also applies if a privilege is missing */
};

/* Return the wording of enum error_kind @i, or NULL after the last one. */
const struct message_words *message_at(size_t i);

/* Return remedy @i by the state of the host, one word if it depends on more, or NULL: no more. */
const char *message_remedy_at(size_t i);

/*
 * Add the message for @error, "dbslower: SUBJECT: CAUSE; REMEDY", and the verifier's log if any.
 * The remedy depends on the host, which is read.
 */
void message_error(struct output *err, const struct error *error);

/* The same, with @other behind the remedy. */
void message_error_or(struct output *err, const struct error *error, const char *other);

/* Add the parts of that message: "SUBJECT: CAUSE"; and @before and the remedy, if there is one. */
void message_cause(struct output *out, const struct error *error);
void message_remedy(struct output *out, const char *before, const struct error *error);

/* Add that no server was found. */
void message_waiting(struct output *err);

/* Add that a signal has ended attaching. */
void message_interrupted(struct output *err);

/*
 * Report @error, of output_flush(), unless the reader has closed the output (EPIPE). Flush @err.
 * Return the exit status.
 */
int message_output(struct output *err, int error);

/*
 * Report @error, a negative errno of writing to @name, a path or a noun. Flush @err. Return
 * EXIT_FAILED.
 */
int message_unwritten(struct output *err, const char *name, int error);

/* The same of reading from @name. */
int message_unread(struct output *err, const char *name, int error);

/* Report that memory is exhausted, without allocating any. Return EXIT_FAILED. */
int message_no_memory(void);

#endif
