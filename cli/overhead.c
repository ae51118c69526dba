// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/overhead.h"

#include <string.h>

#include "cli/format/escape.h"
#include "cli/format/json.h"
#include "cli/loop.h"

#define HUNDREDTH	(LADDER_WHOLE / 10000)	/* of a percent */

/* The scope of each step in JSON. */
static const char *const steps[LADDER_STEPS] = { "all", "no_why", "no_text", "nothing" };

static void overhead_json(struct output *out, uint64_t wall_ns, const struct limit_event *event)
{
	const struct target *target = event->target;
	struct server server;

	describe_server(&server, target->engine, target->version, target->path);
	json_head(out, "{\"type\":\"overhead\",\"time\":\"", wall_ns, &server);
	json_number(out, ",\"uid\":", event->uid);
	/* Of each second, which makes a millionth a microsecond. */
	json_ms(out, ",\"cost_ms\":", event->overhead * 1000);
	json_ms(out, ",\"limit_ms\":", event->limit * 1000);
	output_string(out, ",\"traced\":\"");
	output_string(out, steps[event->step]);
	output_char(out, '"');
	if (event->step == event->before)
		output_string(out, ",\"refused\":true");
	if (event->step == LADDER_DETACHED)
		json_ms(out, ",\"pause_ms\":", event->pause_ns);
	if (event->untraced_ns)
		json_ms(out, ",\"untraced_ms\":", event->untraced_ns);
	output_string(out, "}\n");
}

/* Append the step that was taken, or that it was not. */
static void overhead_step(struct output *err, const struct limit_event *event)
{
	bool back = event->step < event->before;

	if (event->step == event->before) {
		output_string(err, "; they stay, as another user's server of this file is below "
				   "it\n");
	} else if (event->step == LADDER_DETACHED) {
		output_string(err, "; not traced for ");
		output_fixed(err, event->pause_ns / 100000000, 1);
		output_string(err, " s\n");
	} else if (event->step == LADDER_NO_TEXT) {
		output_string(err, back ? "; traced again\n" : "; traced without texts\n");
	} else if (event->step == LADDER_NO_WHY) {
		output_string(err, back ? "; traced with texts again\n" :
					  "; traced without time breakdowns\n");
	} else {
		output_string(err, "; everything is traced again\n");
	}
}

void overhead_event(void *arg, const struct limit_event *event)
{
	struct loop *loop = arg;
	struct output *err = &loop->err;

	if (loop->options.json)
		overhead_json(&loop->out, loop_wall(loop) - event->ago_ns, event);
	output_string(err, "dbslower: ");
	escape_terminal(err, event->target->path, strlen(event->target->path), false);
	if (event->untraced_ns) {
		output_string(err, ": there were no probes for ");
		output_fixed(err, event->untraced_ns / 100000000, 1);
		output_string(err, " s");
	} else {
		output_printf(err, " of user ID %u: the probes take ", event->uid);
		output_fixed(err, event->overhead / HUNDREDTH, 2);
		output_string(err, "% of a CPU, limit ");
		output_fixed(err, event->limit / HUNDREDTH, 2);
		output_char(err, '%');
	}
	overhead_step(err, event);
	output_flush(err);
}
