/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The time breakdown of a statement and the resources it used, as --why and --use show them. */
#ifndef CLI_FORMAT_BREAKDOWN_H
#define CLI_FORMAT_BREAKDOWN_H

#include "bpf/event.h"
#include "cli/output.h"
#include "db/event.h"

/*
 * Append a line with the parts of @s->why and its waits, the largest first, and one with the
 * resources if they are known.
 */
void breakdown_text(struct output *out, const struct statement *s);

/*
 * Append the parts in @ns that are not 0, the largest first, without a line end: as many as fit
 * into @width columns, all if that is 0.
 */
void breakdown_parts_text(struct output *out, const __u64 *ns, unsigned int width);

/* Append a line with the resources in @use that are known, by the bits in @used, and not 0. */
void breakdown_use_text(struct output *out, uint32_t used, const __u64 *use, unsigned int width);

/* Append a JSON object or array: the value of the member, without its key. */
void breakdown_parts_json(struct output *out, const __u64 *ns);
void breakdown_waits_json(struct output *out, const struct statement *s);
void breakdown_workers_json(struct output *out, const struct event_breakdown *why);
void breakdown_phases_json(struct output *out, const struct event_breakdown *why);
void breakdown_use_json(struct output *out, uint32_t used, const __u64 *use);

#endif
