/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Statements and the summary as JSON, one object a line. What is not known has no key. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "cli/output.h"
#include "db/statement.h"

/* Adds one line with everything known of @st. */
void json_statement(struct output *out, const struct statement *st);

/* Adds the line that ends the output. */
void json_summary(struct output *out, const struct summary *sum);

#endif
