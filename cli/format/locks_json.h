/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lock waits as JSON, one object a line. */
#ifndef CLI_FORMAT_LOCKS_JSON_H
#define CLI_FORMAT_LOCKS_JSON_H

#include "cli/format/locks_table.h"

/* Append the line of a wait. */
void locks_json_wait(struct output *out, const struct lock_wait *wait);

/* Append the line of a sum over @server. */
void locks_json_sum(struct output *out, const struct locks_sum *sum, uint64_t wall_ns,
		    const struct server *server);

#endif
