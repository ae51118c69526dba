/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The line that ends the messages, and the record that ends JSON output. */
#ifndef CLI_FORMAT_SUMMARY_H
#define CLI_FORMAT_SUMMARY_H

#include "cli/output.h"
#include "db/loss.h"

/* Append one line with the numbers seen, shown and lost. @noun names the events: "statements". */
void summary_message(struct output *err, const char *noun, const struct summary *summary);

/*
 * Append the line with the time @wall_ns, the number of @noun ("statements") and the losses: of
 * @groups (LOSSES_OF_*), by user.
 */
void summary_json(struct output *out, uint64_t wall_ns, const char *noun, unsigned int groups,
		  const struct summary *summary);

#endif
