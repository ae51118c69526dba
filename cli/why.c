// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/why.h"

#include <stdbool.h>

#include "cli/json.h"
#include "db/why.h"

#define INDENT	"    "

/* The number of a system call that has no name here, or its name. */
static void why_call(struct output *out, uint32_t call)
{
	const char *name = call == WHY_NO_CALL ? "page_fault" :
			   call == WHY_OTHERS ? "others" : why_call_name(call);

	if (name)
		output_string(out, name);
	else
		output_printf(out, "syscall_%u", call);
}

/* The largest part of @ns that is not in @shown; WHY_PARTS: those that are left took no time. */
static int why_largest(const __u64 ns[WHY_PARTS], uint32_t shown)
{
	int largest = WHY_PARTS;

	for (int i = 0; i < WHY_PARTS; i++)
		if (!(shown & 1u << i) && ns[i] && (largest == WHY_PARTS || ns[i] > ns[largest]))
			largest = i;
	return largest;
}

static void why_ms(struct output *out, uint64_t ns)
{
	output_char(out, ' ');
	output_fixed(out, (ns + 500) / 1000, 3);
}

static void why_waits(struct output *out, const struct event_why *why)
{
	for (int i = 0; i < WHY_WAITS && why->waits[i].count; i++) {
		output_string(out, i ? ", " : "; ");
		why_call(out, why->waits[i].call);
		output_printf(out, " %ux", why->waits[i].count);
		why_ms(out, why->waits[i].ns);
	}
}

static void why_phases(struct output *out, const struct event_why *why)
{
	const char *before = INDENT;

	for (int i = 0; i < PHASES; i++) {
		if (!why->phases[i].first_ns)
			continue;
		output_string(out, before);
		output_string(out, why_phase_name((enum phase)i));
		why_ms(out, why->phases[i].ns);
		before = ", ";
	}
	output_string(out, *before == ',' ? "\n" : "");
}

static void why_parts(struct output *out, const __u64 ns[WHY_PARTS])
{
	uint32_t shown = 0;
	int part;

	while ((part = why_largest(ns, shown)) < WHY_PARTS) {
		output_string(out, shown ? ", " : "");
		output_string(out, why_part_name((enum why_part)part));
		why_ms(out, ns[part]);
		shown |= 1u << part;
	}
}

void why_text(struct output *out, const struct event_why *why)
{
	uint32_t shown;

	output_string(out, INDENT);
	why_parts(out, why->ns);
	why_waits(out, why);
	output_char(out, '\n');
	if (why->workers.count) {
		output_printf(out, INDENT "%llu parallel workers: ", (unsigned long long)why->workers.count);
		why_parts(out, why->workers.ns);
		output_char(out, '\n');
	}
	why_phases(out, why);
	if (!why->used)
		return;
	output_string(out, INDENT);
	shown = 0;
	for (int i = 0; i < USES; i++) {
		if (!(why->used & 1u << i) || !why->use[i])
			continue;
		output_string(out, shown++ ? ", " : "");
		output_string(out, why_use_name((enum use)i));
		output_char(out, ' ');
		output_u64(out, why->use[i]);
	}
	output_string(out, shown ? "\n" : "used nothing\n");
}

static void why_json_phases(struct output *out, const struct event_why *why)
{
	const char *before = ",\"phases\":{\"";

	for (int i = 0; i < PHASES; i++) {
		if (!why->phases[i].first_ns)
			continue;
		output_string(out, before);
		output_string(out, why_phase_name((enum phase)i));
		json_number(out, "\":", why->phases[i].ns);
		before = ",\"";
	}
	output_string(out, before[2] ? "" : "}");
}

static void why_json_parts(struct output *out, const __u64 ns[WHY_PARTS])
{
	for (int i = 0; i < WHY_PARTS; i++) {
		output_string(out, i ? ",\"" : "\"");
		output_string(out, why_part_name((enum why_part)i));
		json_number(out, "\":", ns[i]);
	}
}

void why_json(struct output *out, const struct event_why *why)
{
	bool first = true;

	output_string(out, ",\"why\":{");
	why_json_parts(out, why->ns);
	output_string(out, "},\"waits\":[");
	for (int i = 0; i < WHY_WAITS && why->waits[i].count; i++) {
		output_string(out, i ? ",{\"call\":\"" : "{\"call\":\"");
		why_call(out, why->waits[i].call);
		json_number(out, "\",\"count\":", why->waits[i].count);
		json_number(out, ",\"ns\":", why->waits[i].ns);
		output_char(out, '}');
	}
	output_char(out, ']');
	if (why->workers.count) {
		json_number(out, ",\"workers\":{\"count\":", why->workers.count);
		output_char(out, ',');
		why_json_parts(out, why->workers.ns);
		output_char(out, '}');
	}
	why_json_phases(out, why);
	if (!why->used)
		return;
	for (int i = 0; i < USES; i++) {
		if (!(why->used & 1u << i))
			continue;
		output_string(out, first ? ",\"use\":{\"" : ",\"");
		output_string(out, why_use_name((enum use)i));
		json_number(out, "\":", why->use[i]);
		first = false;
	}
	output_char(out, '}');
}
