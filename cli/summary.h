/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The record that ends JSON output. */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include "cli/output.h"
#include "db/statement.h"

/* Append the line with the counters of statements and of losses. */
void summary_json(struct output *out, const struct summary *summary);

/* Append the end of that line, after the members of "lost": the losses by user, if any. */
void summary_json_end(struct output *out, const struct summary *summary);

#endif
