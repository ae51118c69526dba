/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The line that ends the messages, and the record that ends JSON output. */
#ifndef CLI_FORMAT_SUMMARY_H
#define CLI_FORMAT_SUMMARY_H

#include <stdbool.h>

#include "cli/output.h"
#include "db/loss.h"

/* Groups of losses that a command has, beside those of the buffer and the tables. */
#define SUMMARY_SESSIONS	0x1	/* sessions, and starts and ends of statements */
#define SUMMARY_TEXTS		0x2
#define SUMMARY_VALUES		0x4	/* values and conditions of probes */
#define SUMMARY_LIMIT		0x8	/* left out for an overhead limit */

/*
 * Store the number of losses by cause @i in *@count and its group, or 0, in *@group. Return the
 * name of the cause, static, or NULL after the last one.
 */
const char *summary_loss_at(const struct summary *summary, size_t i, uint64_t *count,
			    unsigned int *group);

/* Return the words of the cause at @i, which exists, for the message. Static. */
const char *summary_loss_words(size_t i);

/* Return the name of enum counter @i in the losses of a user, static, or NULL if it has none. */
const char *summary_counter_name(size_t i);

/* Return true if anything was lost. */
bool summary_lost(const struct summary *summary);

/* Return the number of losses other than cut or unreadable texts. */
uint64_t summary_events_lost(const struct summary *summary);

/* Append one line with the numbers seen, shown and lost. @noun names the events: "statements". */
void summary_message(struct output *err, const char *noun, const struct summary *summary);

/*
 * Append the line with the time @wall_ns, the number of @noun ("statements") and the losses: of
 * @groups, by user.
 */
void summary_json(struct output *out, uint64_t wall_ns, const char *noun, unsigned int groups,
		  const struct summary *summary);

#endif
