/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The plans of statements as text, as EXPLAIN has it, and as EXPLAIN's JSON. */
#ifndef CLI_FORMAT_PLAN_PRINT_H
#define CLI_FORMAT_PLAN_PRINT_H

#include <stddef.h>

#include "cli/output.h"

/*
 * Append the @len bytes of @plan: each statement, indented below the one that called it, with its
 * nodes.
 */
void plan_text(struct output *out, const char *plan, size_t len);

/*
 * Append them as an array, in which each statement is an object as of EXPLAIN (FORMAT JSON), with
 * its text as auto_explain has it. What EXPLAIN does not know has names of the same kind.
 */
void plan_json(struct output *out, const char *plan, size_t len);

#endif
