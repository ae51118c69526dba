/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Statements as JSON, one object a line. An unknown value has no member. */
#ifndef CLI_FORMAT_FIELD_JSON_H
#define CLI_FORMAT_FIELD_JSON_H

#include "cli/output.h"
#include "db/event.h"

/* Append the line of a statement. */
void field_json(struct output *out, const struct statement *st);

#endif
