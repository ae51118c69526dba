/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where a statement's time went and what it used, as --why and --use show it. */
#ifndef CLI_WHY_H
#define CLI_WHY_H

#include "bpf/event.h"
#include "cli/output.h"

/* Adds a line for the time, the largest part first, and one for what was used, if that is known. */
void why_text(struct output *out, const struct event_why *why);

/* Adds the members "why", "waits" and "use", each behind a comma. */
void why_json(struct output *out, const struct event_why *why);

#endif
