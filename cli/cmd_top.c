// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Statements grouped by fingerprint: which of them cost the servers most. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/loop.h"
#include "cli/breakdown.h"
#include "sql/fingerprint.h"

#define REFRESH_NS	2000000000u	/* on a terminal, unless -i says otherwise */
#define RUNNING_NS	1000000000u	/* a statement that runs so long is shown by itself */
#define FIXED_WIDTH	76		/* columns of a row before its text */
#define NARROW_WIDTH	56		/* without P99 and ROWS */
#define QUERY_WIDTH	32		/* that a text should have */

struct top {
	struct watch watch;		/* first: the tracer's calls get it */
	struct tally *tally;
	uint64_t intervals;
	unsigned int running;		/* shown in this table */
	uint64_t grouped;		/* statements */
	unsigned int width, height;	/* of the terminal; 0: it is none */
	char fingerprint[TALLY_TEXT];
};

/* @ns in ms with 3 decimals, at the right of @width columns. */
static void top_ms(struct output *out, uint64_t ns, int width)
{
	char number[OUTPUT_NUMBER];
	size_t len = output_format(number, ns / 1000, 3);

	output_printf(out, "%*.*s", width, (int)len, number);
}

/* On a terminal on which the texts would have no room, some columns are left out. */
static bool top_is_narrow(const struct top *top)
{
	return top->width && top->width < FIXED_WIDTH + QUERY_WIDTH;
}

static void top_text(struct top *top, const char *text, size_t len, bool cut)
{
	struct output *out = &top->watch.out;
	unsigned int fixed = top_is_narrow(top) ? NARROW_WIDTH : FIXED_WIDTH;
	size_t room = top->width > fixed + 8 ? top->width - fixed : 8;

	/* What takes one column a byte at most is never wider than it is long. */
	while (top->width && len && escape_width(text, len) > room)
		len -= len > room ? len - room : 1;
	escape_terminal(out, text, len, cut);
	output_char(out, '\n');
}

static void top_row(struct top *top, const struct tally_entry *entry, const char *text)
{
	struct output *out = &top->watch.out;

	output_printf(out, "%8llu ", (unsigned long long)entry->calls);
	top_ms(out, entry->total_ns, 12);
	top_ms(out, entry->calls ? entry->total_ns / entry->calls : 0, 10);
	top_ms(out, tally_percentile(entry, 950), 10);
	if (!top_is_narrow(top))
		top_ms(out, tally_percentile(entry, 990), 10);
	top_ms(out, entry->max_ns, 10);
	if (!top_is_narrow(top))
		output_printf(out, " %9llu", (unsigned long long)entry->rows);
	output_printf(out, " %4llu ", (unsigned long long)entry->errors);
	top_text(top, text, strlen(text), false);
}

/* Where the time of the group's calls went, in lines of their own. */
static void top_why(struct top *top, const struct tally_entry *entry)
{
	struct output *out = &top->watch.out;
	const struct options *options = &top->watch.options;
	const struct tally_why *why = entry->why;

	if (!options->why && !options->use)
		return;
	if (!why) {
		output_string(out, "    not known\n");
		return;
	}
	why_parts_text(out, why->ns, top->width);
	output_char(out, '\n');
	if (options->use)
		why_use_text(out, why->used, why->use, top->width);
}

static void top_why_json(struct output *out, const struct tally_why *why)
{
	json_number(out, ",\"why_calls\":", why->calls);
	why_parts_json(out, why->ns);
	why_use_json(out, why->used, why->use);
}

static void top_json(struct top *top, const struct tally_entry *entry, const char *text)
{
	struct output *out = &top->watch.out;
	static const struct {
		const char *key;
		unsigned int permille;
	} percentiles[] = { { "p50_ms", 500 }, { "p95_ms", 950 }, { "p99_ms", 990 } };

	output_printf(out, "{\"type\":\"%s\",\"interval\":%llu", entry->engine ? "group" : "other",
		      (unsigned long long)top->intervals);
	if (entry->engine)
		output_printf(out, ",\"engine\":\"%s\",\"hash\":\"%016llx\"", entry->engine,
			      (unsigned long long)entry->hash);
	output_printf(out, ",\"calls\":%llu,\"errors\":%llu,\"rows\":%llu,\"total_ms\":",
		      (unsigned long long)entry->calls, (unsigned long long)entry->errors,
		      (unsigned long long)entry->rows);
	output_fixed(out, entry->total_ns, 6);
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++) {
		output_printf(out, ",\"%s\":", percentiles[i].key);
		output_fixed(out, tally_percentile(entry, percentiles[i].permille), 6);
	}
	output_string(out, ",\"min_ms\":");
	output_fixed(out, entry->min_ns, 6);
	output_string(out, ",\"max_ms\":");
	output_fixed(out, entry->max_ns, 6);
	if (entry->why)
		top_why_json(out, entry->why);
	output_string(out, ",\"fingerprint\":\"");
	escape_json(out, text, strlen(text), false);
	output_string(out, "\",\"sample\":\"");
	escape_json(out, entry->sample ? entry->sample : "", entry->sample_len,
		    entry->sample_cut);
	output_string(out, "\"}\n");
}

static void top_entry(struct top *top, const struct tally_entry *entry, const char *text)
{
	if (top->watch.options.json) {
		top_json(top, entry, text);
	} else {
		top_row(top, entry, text);
		top_why(top, entry);
	}
}

/* What was folded away, with how many fingerprints that were. */
static void top_other(struct top *top)
{
	uint64_t folded;
	const struct tally_entry *other = tally_other(top->tally, &folded);
	char text[64] = "(others: ";
	size_t len = strlen(text);

	if (!other || !other->calls)
		return;
	len += output_format(text + len, folded, 0);
	strcpy(text + len, " fingerprints)");
	top_entry(top, other, text);
}

/* How many groups there is room for. */
static size_t top_lines(const struct top *top)
{
	const struct options *options = &top->watch.options;
	size_t each = options->use ? 3 : options->why ? 2 : 1;

	if (options->lines)
		return options->lines;
	return top->height > 8 ? (top->height - 6) / each : 20;
}

/* Shows what there is since the start. 0 or -errno. */
static int top_show(struct top *top)
{
	struct watch *watch = &top->watch;
	size_t count, lines = top_lines(top);
	const struct tally_entry *const *entries =
		tally_sort(top->tally, watch->options.order, &count);

	if (top->width)
		output_string(&watch->out, "\033[H\033[J");
	if (!watch->options.json)
		output_printf(&watch->out, "%8s %12s%10s%10s%s%10s%s %4s %s\n", "CALLS",
			      "TOTAL(ms)", "MEAN(ms)", "P95(ms)",
			      top_is_narrow(top) ? "" : "   P99(ms)", "MAX(ms)",
			      top_is_narrow(top) ? "" : "      ROWS", "ERR", "QUERY");
	for (size_t i = 0; entries && i < count && (i < lines || watch->options.json); i++)
		top_entry(top, entries[i], entries[i]->fingerprint);
	if (entries && count > lines && !watch->options.json)
		output_printf(&watch->out, "(%zu more)\n", count - lines);
	top_other(top);
	top->running = 0;
	tracer_running(watch->tracer);
	if (!watch->options.json)
		output_char(&watch->out, '\n');
	top->intervals++;
	return output_flush(&watch->out);
}

static void top_running(struct top *top, const struct statement *statement)
{
	struct output *out = &top->watch.out;

	if (statement->duration_ns < RUNNING_NS)
		return;
	if (top->watch.options.json) {
		output_printf(out, "{\"type\":\"running\",\"engine\":\"%s\",\"pid\":%u,"
				   "\"duration_ms\":", statement->engine, statement->pid);
		output_fixed(out, statement->duration_ns, 6);
		output_string(out, ",\"query\":\"");
		escape_json(out, statement->text, statement->text_len, statement->truncated);
		output_string(out, "\"}\n");
		return;
	}
	if (!top->running++)
		output_printf(out, "%8s %12s %s\n", "PID", "RUNNING(ms)", "QUERY");
	output_printf(out, "%8u ", statement->pid);
	top_ms(out, statement->duration_ns, 12);
	output_char(out, ' ');
	top_text(top, statement->text ? statement->text : "-",
		 statement->text ? statement->text_len : 1, statement->truncated);
}

static bool top_statement(void *arg, const struct statement *s)
{
	struct top *top = arg;
	struct tally_call call = {
		.engine = s->engine, .fingerprint = top->fingerprint, .text = s->text,
		.text_len = s->text_len, .text_cut = s->truncated, .duration_ns = s->duration_ns,
		.rows = s->rows, .seen_ns = s->start_ns, .failed = s->failed,
		.why = s->why,
	};

	if (s->running) {
		top_running(top, s);
		return true;
	}
	fingerprint_make(fingerprint_dialect(s->engine), s->text ? s->text : "",
			 s->text ? s->text_len : 0, s->truncated, top->fingerprint,
			 sizeof(top->fingerprint), &call.hash);
	tally_add(top->tally, &call);
	top->grouped++;
	return true;
}

static void top_begin(struct watch *watch)
{
	(void)watch;
}

static void top_size(struct top *top)
{
	struct winsize size;

	if (top->watch.options.json || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ||
	    !isatty(STDOUT_FILENO))
		return;
	top->width = size.ws_col ? size.ws_col : 80;
	top->height = size.ws_row;
}

static int top_loop(struct top *top)
{
	const struct options *options = &top->watch.options;
	uint64_t interval_ns = options->interval_ns ? options->interval_ns :
			       top->width ? REFRESH_NS : 0;
	uint64_t next_ns = watch_now() + interval_ns, now;
	int nap_ms = 1, filled, err = 0;
	bool done = false;

	while (!done && !err) {
		filled = tracer_drain(top->watch.tracer);
		nap_ms = watch_nap(nap_ms, filled);
		done = watch_wait(&top->watch, -1, nap_ms);
		now = watch_now();
		if (done || !interval_ns || now < next_ns)
			continue;
		next_ns = now + interval_ns;
		top_size(top);
		err = top_show(top);
		done = options->count && top->intervals >= options->count;
	}
	return err;
}

static int top_end(struct top *top, int err)
{
	struct watch *watch = &top->watch;
	struct summary summary;

	tracer_detach(watch->tracer);
	while (tracer_drain(watch->tracer) > 0)
		continue;
	if (!err && !(watch->options.count && top->intervals >= watch->options.count))
		err = top_show(top);
	tracer_summary(watch->tracer, &summary);
	summary.printed = top->grouped;
	return watch_finish(watch, err, &summary);
}

int cmd_top(const struct command *command, int argc, char *argv[])
{
	struct top *top = calloc(1, sizeof(*top));
	struct tracer_config config;
	int ret = EXIT_FAILED;

	if (!top)
		return message_no_memory();
	top->watch.begin = top_begin;
	top->watch.statement = top_statement;
	top->tally = tally_new(TALLY_ENTRIES);
	if (!top->tally)
		ret = message_no_memory();
	if (!top->tally || !watch_options(&top->watch, command, argc, argv, &ret))
		goto cleanup;
	watch_config(&top->watch, &config);
	config.rows = true;
	top_size(top);
	ret = watch_open(&top->watch, &config);
	if (ret == EXIT_OK)
		ret = top_end(top, top_loop(top));
	tracer_close(top->watch.tracer);
cleanup:
	tally_free(top->tally);
	free(top);
	return ret;
}
