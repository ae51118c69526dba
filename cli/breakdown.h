/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a statement's time went and what it used, as --why and --use show it. */
#ifndef CLI_BREAKDOWN_H
#define CLI_BREAKDOWN_H

#include "bpf/event.h"
#include "cli/output.h"

/* Adds a line for the time, the largest part first, and one for what was used, if that is known. */
void breakdown_text(struct output *out, const struct event_breakdown *why);

/* Adds the members "why", "waits" and "use", each behind a comma. */
void breakdown_json(struct output *out, const struct event_breakdown *why);

/*
 * Adds the parts that took time, @ns, the largest first, without an end of line; as many as fit into
 * @width columns, 0: all.
 */
void breakdown_parts_text(struct output *out, const __u64 *ns, unsigned int width);

/* Adds a line with those of @use that are known, bits @used, and not 0; @width as above. */
void breakdown_use_text(struct output *out, uint32_t used, const __u64 *use, unsigned int width);

/* Add the members "why" of @ns, and "use" if any is known, each behind a comma. */
void breakdown_parts_json(struct output *out, const __u64 *ns);
void breakdown_use_json(struct output *out, uint32_t used, const __u64 *use);

#endif
