/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What people are told on standard error: what it is about, why, and what to do. */
#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include <stdbool.h>

#include "cli/output.h"
#include "loader/error.h"
#include "db/statement.h"

/*
 * Adds the message for @fault, and the verifier's log where there is one. Looks for the cause of
 * EPERM.
 */
void message_error(struct output *err, const struct error *error);

/* Adds what there is to say where no server was found. */
void message_waiting(struct output *err);

/* Add one line with the numbers seen, shown and lost. @noun is of what was seen: "statements". */
void message_summary(struct output *err, const char *noun, const struct summary *summary);

/*
 * Says what became of the output, unless it is that nobody wants more of it: @error is what
 * output_flush() told. Flushes. The exit status.
 */
int message_output(struct output *err, int error);

/* Return true if anything was lost. */
bool message_lost(const struct summary *summary);

/* Return the number of losses that are no cut or unreadable texts. */
uint64_t message_events_lost(const struct summary *summary);

/* Says that there is no memory, without any. EXIT_FAILED. */
int message_no_memory(void);

#endif
