/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* User stacks as the command trace shows them. */
#ifndef CLI_TRACE_STACK_H
#define CLI_TRACE_STACK_H

#include "cli/output.h"
#include "host/symbolize.h"
#include "probe/trace.h"

/* Append a line for each frame of the stack of @hit, or in JSON a member. */
void trace_show_stack(struct output *out, bool json, struct symbolizer *symbols,
		      const struct probe_hit *hit);

#endif
