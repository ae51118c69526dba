// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/trace/stack.h"

#include <string.h>

#include "cli/format/escape.h"

static void stack_name(struct output *out, bool json, const char *name, size_t len)
{
	if (json)
		escape_json(out, name, len, false);
	else
		escape_terminal(out, name, len, false);
}

/* Append "NAME+0x12 (FILE)", or the address in place of what is unknown. */
static void stack_frame(struct output *out, bool json, const struct symbol_frame *frame,
			uint64_t address)
{
	if (frame->function) {
		stack_name(out, json, frame->function, frame->len);
		output_printf(out, "+0x%llx", (unsigned long long)frame->offset);
	} else {
		output_printf(out, "0x%llx", (unsigned long long)address);
	}
	if (!frame->file)
		return;
	output_string(out, " (");
	stack_name(out, json, frame->file, strlen(frame->file));
	output_char(out, ')');
}

void trace_show_stack(struct output *out, bool json, struct symbolizer *symbols,
		      const struct probe_hit *hit)
{
	struct symbol_frame frames[PROBE_STACK];

	symbolize(symbols, hit->pid, hit->stack, hit->nstack, frames);
	output_string(out, json ? ",\"stack\":[" : "");
	for (unsigned int i = 0; i < hit->nstack; i++) {
		output_string(out, !json ? "        " : i ? ",\"" : "\"");
		stack_frame(out, json, &frames[i], hit->stack[i]);
		output_char(out, json ? '"' : '\n');
	}
	output_string(out, json ? "]" : "");
}
