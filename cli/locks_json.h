/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lock waits as JSON, one object a line. */
#ifndef CLI_LOCKS_JSON_H
#define CLI_LOCKS_JSON_H

#include "cli/locks_table.h"

/* Append the line of a wait. */
void locks_json_wait(struct output *out, const struct lock_wait *wait);

/* Append a line for each sum in @table. */
void locks_json_sums(struct output *out, const struct locks_table *table);

#endif
