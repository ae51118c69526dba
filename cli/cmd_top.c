// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command top: statements grouped by fingerprint, sorted by cost. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/breakdown.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/option_set.h"
#include "cli/option_table.h"
#include "cli/tracing.h"
#include "sql/fingerprint.h"

#define REFRESH_NS	2000000000u	/* on a terminal, default of -i */
#define RUNNING_NS	1000000000u	/* running statements of this duration are listed */
#define FIXED_WIDTH	76		/* columns of a row before its text */
#define NARROW_WIDTH	56		/* without P99 and ROWS */
#define QUERY_WIDTH	32		/* least width of the text */

struct cmd_top {
	struct tracing tracing;		/* first: callbacks receive it */
	struct top *digests;
	uint64_t interval_ns, next_ns;	/* 0: only at the end; CLOCK_MONOTONIC */
	unsigned int running;		/* shown in this table */
	uint64_t grouped;		/* statements */
	unsigned int width, height;	/* of the terminal; 0: not a terminal */
	char fingerprint[TOP_TEXT];
};

/* Print @ns in ms with 3 decimals, right-aligned in @width columns. */
static void cmd_top_ms(struct output *out, uint64_t ns, int width)
{
	char number[OUTPUT_NUMBER];
	size_t len = output_format(number, ns / 1000, 3);

	output_printf(out, "%*.*s", width, (int)len, number);
}

/* Return true if the terminal has no room for all columns and the text. */
static bool cmd_top_is_narrow(const struct cmd_top *top)
{
	return top->width && top->width < FIXED_WIDTH + QUERY_WIDTH;
}

static void cmd_top_text(struct cmd_top *top, const char *text, size_t len, bool cut)
{
	struct output *out = &top->tracing.loop.out;
	unsigned int fixed = cmd_top_is_narrow(top) ? NARROW_WIDTH : FIXED_WIDTH;
	size_t room = top->width > fixed + 8 ? top->width - fixed : 8;

	/* Text is never wider than its length in bytes. */
	while (top->width && len && escape_width(text, len) > room)
		len -= len > room ? len - room : 1;
	escape_terminal(out, text, len, cut);
	output_char(out, '\n');
}

static void cmd_top_row(struct cmd_top *top, const struct top_entry *entry, const char *text)
{
	struct output *out = &top->tracing.loop.out;

	output_printf(out, "%8llu ", (unsigned long long)entry->calls);
	cmd_top_ms(out, entry->total_ns, 12);
	cmd_top_ms(out, entry->calls ? entry->total_ns / entry->calls : 0, 10);
	cmd_top_ms(out, top_percentile(entry, 950), 10);
	if (!cmd_top_is_narrow(top))
		cmd_top_ms(out, top_percentile(entry, 990), 10);
	cmd_top_ms(out, entry->max_ns, 10);
	if (!cmd_top_is_narrow(top))
		output_printf(out, " %9llu", (unsigned long long)entry->rows);
	output_printf(out, " %4llu ", (unsigned long long)entry->errors);
	cmd_top_text(top, text, strlen(text), false);
}

/* Print the time breakdown of the group in lines of its own. */
static void cmd_top_why(struct cmd_top *top, const struct top_entry *entry)
{
	struct output *out = &top->tracing.loop.out;
	const struct options *options = &top->tracing.loop.options;
	const struct top_why *why = entry->why;

	if (!options->why && !options->use)
		return;
	if (!why) {
		output_string(out, "    not known\n");
		return;
	}
	breakdown_parts_text(out, why->ns, top->width);
	output_char(out, '\n');
	if (options->use)
		breakdown_use_text(out, why->used, why->use, top->width);
}

static void cmd_top_why_json(struct output *out, const struct top_why *why)
{
	json_number(out, ",\"why_calls\":", why->calls);
	output_string(out, ",\"why\":");
	breakdown_parts_json(out, why->ns);
	if (!why->used)
		return;
	output_string(out, ",\"use\":");
	breakdown_use_json(out, why->used, why->use);
}

static void cmd_top_json(struct cmd_top *top, const struct top_entry *entry, const char *text)
{
	struct output *out = &top->tracing.loop.out;
	static const struct {
		const char *key;
		unsigned int permille;
	} percentiles[] = { { "p50_ms", 500 }, { "p95_ms", 950 }, { "p99_ms", 990 } };

	output_printf(out, "{\"type\":\"%s\",\"interval\":%llu", entry->engine ? "group" : "other",
		      (unsigned long long)top->tracing.loop.counted);
	if (entry->engine)
		output_printf(out, ",\"engine\":\"%s\",\"hash\":\"%016llx\"", entry->engine,
			      (unsigned long long)entry->hash);
	output_printf(out, ",\"calls\":%llu,\"errors\":%llu,\"rows\":%llu,\"total_ms\":",
		      (unsigned long long)entry->calls, (unsigned long long)entry->errors,
		      (unsigned long long)entry->rows);
	output_fixed(out, entry->total_ns, 6);
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++) {
		output_printf(out, ",\"%s\":", percentiles[i].key);
		output_fixed(out, top_percentile(entry, percentiles[i].permille), 6);
	}
	output_string(out, ",\"min_ms\":");
	output_fixed(out, entry->min_ns, 6);
	output_string(out, ",\"max_ms\":");
	output_fixed(out, entry->max_ns, 6);
	if (entry->why)
		cmd_top_why_json(out, entry->why);
	output_string(out, ",\"fingerprint\":\"");
	escape_json(out, text, strlen(text), false);
	output_string(out, "\",\"sample\":\"");
	escape_json(out, entry->sample ? entry->sample : "", entry->sample_len,
		    entry->sample_cut);
	output_string(out, "\"}\n");
}

static void cmd_top_entry(struct cmd_top *top, const struct top_entry *entry, const char *text)
{
	if (top->tracing.loop.options.json) {
		cmd_top_json(top, entry, text);
	} else {
		cmd_top_row(top, entry, text);
		cmd_top_why(top, entry);
	}
}

/* Print the statements of evicted groups, with the number of their fingerprints. */
static void cmd_top_other(struct cmd_top *top)
{
	uint64_t folded;
	const struct top_entry *other = top_other(top->digests, &folded);
	char text[64] = "(others: ";
	size_t len = strlen(text);

	if (!other || !other->calls)
		return;
	len += output_format(text + len, folded, 0);
	strcpy(text + len, " fingerprints)");
	cmd_top_entry(top, other, text);
}

/* Return the number of groups to print. */
static size_t cmd_top_lines(const struct cmd_top *top)
{
	const struct options *options = &top->tracing.loop.options;
	size_t each = options->use ? 3 : options->why ? 2 : 1;

	if (options->lines)
		return options->lines;
	return top->height > 8 ? (top->height - 6) / each : 20;
}

/* Print the groups since the start. Return 0 or -errno. */
static int cmd_top_show(struct cmd_top *top)
{
	struct loop *loop = &top->tracing.loop;
	size_t count, lines = cmd_top_lines(top);
	const struct top_entry *const *entries =
		top_sort(top->digests, loop->options.order, &count);

	if (top->width)
		output_string(&loop->out, "\033[H\033[J");
	if (!loop->options.json)
		output_printf(&loop->out, "%8s %12s%10s%10s%s%10s%s %4s %s\n", "CALLS",
			      "TOTAL(ms)", "MEAN(ms)", "P95(ms)",
			      cmd_top_is_narrow(top) ? "" : "   P99(ms)", "MAX(ms)",
			      cmd_top_is_narrow(top) ? "" : "      ROWS", "ERR", "QUERY");
	for (size_t i = 0; entries && i < count && (i < lines || loop->options.json); i++)
		cmd_top_entry(top, entries[i], entries[i]->fingerprint);
	if (entries && count > lines && !loop->options.json)
		output_printf(&loop->out, "(%zu more)\n", count - lines);
	cmd_top_other(top);
	top->running = 0;
	tracer_running(top->tracing.tracer);
	if (!loop->options.json)
		output_char(&loop->out, '\n');
	loop_count(loop);
	return output_flush(&loop->out);
}

static void cmd_top_running(struct cmd_top *top, const struct statement *statement)
{
	struct output *out = &top->tracing.loop.out;

	if (statement->duration_ns < RUNNING_NS)
		return;
	if (top->tracing.loop.options.json) {
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
	cmd_top_ms(out, statement->duration_ns, 12);
	output_char(out, ' ');
	cmd_top_text(top, statement->text ? statement->text : "-",
		     statement->text ? statement->text_len : 1, statement->truncated);
}

static bool cmd_top_statement(void *arg, const struct statement *s)
{
	struct cmd_top *top = arg;
	struct top_call call = {
		.engine = s->engine, .fingerprint = top->fingerprint, .text = s->text,
		.text_len = s->text_len, .text_cut = s->truncated, .duration_ns = s->duration_ns,
		.rows = s->rows, .seen_ns = s->start_ns, .failed = s->failed,
		.why = s->why,
	};

	if (s->running) {
		cmd_top_running(top, s);
		return true;
	}
	call.hash = fingerprint_make(s->dialect, s->text ? s->text : "",
				     s->text ? s->text_len : 0, s->truncated, top->fingerprint,
				     sizeof(top->fingerprint)).hash;
	top_add(top->digests, &call);
	top->grouped++;
	return true;
}

static void cmd_top_begin(struct loop *loop)
{
	(void)loop;
}

static void cmd_top_size(struct cmd_top *top)
{
	struct winsize size;

	if (top->tracing.loop.options.json || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ||
	    !isatty(STDOUT_FILENO))
		return;
	top->width = size.ws_col ? size.ws_col : 80;
	top->height = size.ws_row;
}

static int cmd_top_tick(struct loop *loop)
{
	struct cmd_top *top = (struct cmd_top *)loop;
	uint64_t now = loop_now();

	if (!top->interval_ns || now < top->next_ns)
		return 0;
	top->next_ns = now + top->interval_ns;
	cmd_top_size(top);
	return cmd_top_show(top);
}

static int cmd_top_finish(struct loop *loop, int *err)
{
	if (!loop->done)
		*err = cmd_top_show((struct cmd_top *)loop);
	return EXIT_OK;
}

static void cmd_top_summary(struct loop *loop, struct summary *summary)
{
	struct cmd_top *top = (struct cmd_top *)loop;

	tracer_summary(top->tracing.tracer, summary);
	summary->printed = top->grouped;
}

static const struct loop_ops cmd_top_ops = {
	.noun = "statements", .begin = cmd_top_begin, .drain = tracing_drain,
	.tick = cmd_top_tick, .detach = tracing_detach, .finish = cmd_top_finish,
	.summary = cmd_top_summary,
};

static int cmd_top(const struct command *command, int argc, char *argv[])
{
	struct cmd_top *top = calloc(1, sizeof(*top));
	struct tracer_config config;
	struct loop *loop;
	int ret;

	if (!top)
		return message_no_memory();
	loop = &top->tracing.loop;
	loop->ops = &cmd_top_ops;
	top->digests = top_new(TOP_ENTRIES);
	ret = top->digests ? loop_start(loop, command, argc, argv) : message_no_memory();
	if (ret != START_GO)
		goto cleanup;
	tracing_config(loop, &config);
	config.statement = cmd_top_statement;
	config.rows = true;
	cmd_top_size(top);
	top->interval_ns = loop->options.interval_ns ? loop->options.interval_ns :
			   top->width ? REFRESH_NS : 0;
	ret = tracing_open(&top->tracing, &config);
	top->next_ns = loop_now() + top->interval_ns;
	if (ret == EXIT_OK)
		ret = loop_run(loop);
	tracer_close(top->tracing.tracer);
cleanup:
	top_free(top->digests);
	free(top);
	return ret;
}

static const struct option_row option_sort = {
	.name = "sort", .arg = "WHAT",
	.help = "total, calls, mean, p95, p99, max, rows, errors, ...",
	.accepts = "expected total, calls, mean, p95, p99, max, rows, errors, a part of the time "
		   "(cpu, disk, lock, ... as in --why) or a resource (wal_bytes, ... as in --use)",
	.set = option_set_order, .complete = option_complete_sort,
};

static const struct option_row option_lines = {
	.name = "lines", .arg = "N",
	.help = "maximum number of groups (default: as fits, or 20)",
	.accepts = "expected a whole number",
	.set = option_set_lines,
};

static const struct option_row *const top_options[] = {
	&option_min, &option_pid, &option_path, &option_duration, &option_interval,
	&option_count_intervals, &option_sort, &option_lines, &option_start, &option_done,
	&option_text_arg, &option_engine, &option_user, &option_db, &option_client, &option_match,
	&option_container, &option_text, &option_redact, &option_why, &option_use, &option_json,
	&option_strict, &option_keep_privileges, &option_force, &option_threshold, &option_exe,
	&option_dump_bpf, &option_verbose, &option_help, &option_version, NULL
};

const struct command command_top = {
	.name = "top",
	.summary = "print statements by fingerprint: calls, times, rows, errors",
	.invocation = "dbslower top",
	.usage = "[ENGINE] [THRESHOLD] [OPTION...]",
	.about =
	"Group the statements of running database servers that differ only in literals,\n"
	"and print the most expensive groups since the start. A terminal is refreshed\n"
	"every two seconds, other output is written on exit or at each interval. With\n"
	"THRESHOLD, only statements that take longer are counted. Statements that have\n"
	"been running for at least a second are listed below the groups.\n",
	.examples =
	"  dbslower top                  until Ctrl-C\n"
	"  dbslower top -d 60 --json     one minute, as JSON\n"
	"  dbslower top postgres --sort p99 --lines 5\n"
	"  dbslower top --sort lock      by time spent waiting for locks\n"
	COMMAND_EXIT_STATUS,
	.words = WORDS_STATEMENTS,
	.options = top_options,
	.run = cmd_top,
};
