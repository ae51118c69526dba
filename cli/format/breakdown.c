// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/breakdown.h"

#include <stdbool.h>
#include <string.h>

#include "cli/format/json.h"
#include "db/engine.h"
#include "db/session/breakdown.h"

#define INDENT	"    "
#define MS_DECIMALS	6	/* of ms in ns */

static void breakdown_call(struct output *out, uint32_t call)
{
	char name[SYSCALL_NAME];

	breakdown_call_name(call, name);
	output_string(out, name);
}

/* A line of names and values, separated by commas. */
struct list {
	struct output *out;
	size_t width, used;		/* columns; a width of 0 is unlimited */
	bool full;
};

/* Append @value with @decimals decimals. Once a value does not fit, append nothing more. */
static void list_add(struct list *list, const char *name, uint64_t value, unsigned int decimals)
{
	char number[OUTPUT_NUMBER];
	size_t len = output_format(number, value, decimals);
	const char *before = list->used ? ", " : INDENT;
	size_t columns = strlen(before) + strlen(name) + 1 + len;

	list->full = list->full || (list->width && list->used + columns > list->width);
	if (list->full)
		return;
	list->used += columns;
	output_string(list->out, before);
	output_string(list->out, name);
	output_char(list->out, ' ');
	output_bytes(list->out, number, len);
}

/* Return the largest part that is not in @shown, or BREAKDOWN_PARTS if the others are all 0. */
static int breakdown_largest(const __u64 *ns, uint32_t shown)
{
	int largest = BREAKDOWN_PARTS;

	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		if (!(shown & 1u << i) && ns[i] &&
		    (largest == BREAKDOWN_PARTS || ns[i] > ns[largest]))
			largest = i;
	return largest;
}

void breakdown_parts_text(struct output *out, const __u64 *ns, unsigned int width)
{
	struct list list = { .out = out, .width = width };
	uint32_t shown = 0;
	int part;

	while ((part = breakdown_largest(ns, shown)) < BREAKDOWN_PARTS) {
		list_add(&list, breakdown_part_name((enum breakdown_part)part),
			 (ns[part] + 500) / 1000, 3);
		shown |= 1u << part;
	}
	output_string(out, shown ? "" : INDENT);
}

void breakdown_use_text(struct output *out, uint32_t used, const __u64 *use, unsigned int width)
{
	struct list list = { .out = out, .width = width };

	for (int i = 0; i < USES; i++)
		if (used & 1u << i && use[i])
			list_add(&list, breakdown_use_name((enum use)i), use[i], 0);
	output_string(out, list.used ? "\n" : INDENT "used nothing\n");
}

/* Append the name of wait event @i if it is known. Return whether it is. */
static bool breakdown_event(struct output *out, const struct statement *s, int i)
{
	if (!s->events || !*s->events[i])
		return false;
	output_string(out, s->events[i]);
	return true;
}

static void breakdown_waits(struct output *out, const struct statement *s)
{
	const struct breakdown_wait *waits = s->why->waits;

	for (int i = 0; i < BREAKDOWN_WAITS && waits[i].sleeps; i++) {
		output_string(out, i ? ", " : "; ");
		if (!breakdown_event(out, s, i)) {
			breakdown_call(out, waits[i].call);
		} else if (s->server->engine->has_stages) {
			output_string(out, " (");
			breakdown_call(out, waits[i].call);
			output_char(out, ')');
		}
		output_char(out, ' ');
		output_fixed(out, (waits[i].ns + 500) / 1000, 3);
		output_printf(out, " in %u sleep%s", waits[i].sleeps,
			      waits[i].sleeps == 1 ? "" : "s");
	}
}

static void breakdown_phases(struct output *out, const struct event_breakdown *why)
{
	struct list list = { .out = out };

	for (int i = 0; i < PHASES; i++)
		if (why->phases[i].first_ns)
			list_add(&list, breakdown_phase_name((enum phase)i),
				 (why->phases[i].ns + 500) / 1000, 3);
	output_string(out, list.used ? "\n" : "");
}

void breakdown_text(struct output *out, const struct statement *s)
{
	const struct event_breakdown *why = s->why;

	breakdown_parts_text(out, why->ns, 0);
	breakdown_waits(out, s);
	output_char(out, '\n');
	if (why->workers.count) {
		output_printf(out, INDENT "%llu parallel workers:",
			      (unsigned long long)why->workers.count);
		breakdown_parts_text(out, why->workers.ns, 0);
		output_char(out, '\n');
	}
	breakdown_phases(out, why);
	if (why->used)
		breakdown_use_text(out, why->used, why->use, 0);
}

/* Append `"NAME":VALUE` after @before, a brace or a comma: @value / 10^@decimals. */
static void json_member(struct output *out, char before, const char *name, uint64_t value,
			unsigned int decimals)
{
	output_char(out, before);
	output_char(out, '"');
	output_string(out, name);
	output_string(out, "\":");
	output_fixed(out, value, value ? decimals : 0);
}

void breakdown_parts_json(struct output *out, const __u64 *ns)
{
	char before = '{';

	for (int i = 0; i < BREAKDOWN_PARTS; i++, before = ',')
		json_member(out, before, breakdown_part_name((enum breakdown_part)i), ns[i],
			    MS_DECIMALS);
	output_char(out, '}');
}

void breakdown_waits_json(struct output *out, const struct statement *s)
{
	const struct breakdown_wait *waits = s->why->waits;

	output_char(out, '[');
	for (int i = 0; i < BREAKDOWN_WAITS && waits[i].sleeps; i++) {
		output_string(out, i ? ",{\"call\":\"" : "{\"call\":\"");
		breakdown_call(out, waits[i].call);
		output_char(out, '"');
		if (s->events)
			json_known(out, ",\"event\":\"", s->events[i]);
		json_number(out, ",\"sleeps\":", waits[i].sleeps);
		json_ms(out, ",\"total_ms\":", waits[i].ns);
		output_char(out, '}');
	}
	output_char(out, ']');
}

void breakdown_workers_json(struct output *out, const struct event_breakdown *why)
{
	json_number(out, "{\"count\":", why->workers.count);
	output_string(out, ",\"why_ms\":");
	breakdown_parts_json(out, why->workers.ns);
	output_char(out, '}');
}

void breakdown_phases_json(struct output *out, const struct event_breakdown *why)
{
	char before = '{';

	for (int i = 0; i < PHASES; i++) {
		if (!why->phases[i].first_ns)
			continue;
		json_member(out, before, breakdown_phase_name((enum phase)i), why->phases[i].ns,
			    MS_DECIMALS);
		before = ',';
	}
	output_char(out, '}');
}

void breakdown_use_json(struct output *out, uint32_t used, const __u64 *use)
{
	char before = '{';

	for (int i = 0; i < USES; i++) {
		if (!(used & 1u << i))
			continue;
		json_member(out, before, breakdown_use_name((enum use)i), use[i], 0);
		before = ',';
	}
	output_char(out, '}');
}
