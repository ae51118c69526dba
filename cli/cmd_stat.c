// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The command stat: durations of statements, or of waits in them, as a histogram. They are
 * counted in the kernel; only with a filter is a record sent for each statement and counted here.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/banner.h"
#include "cli/command.h"
#include "cli/export.h"
#include "cli/format/escape.h"
#include "cli/format/heatmap.h"
#include "cli/format/histogram.h"
#include "cli/format/json.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/tracing.h"
#include "db/session/breakdown.h"

#define AXIS_LINES	24		/* of a heat map between two axes */
#define EXPORT_TEXT	256		/* bytes of a statement's text, for its command */
#define DRAIN_MS	200	/* between drains of the records of new servers and sessions */

static struct {
	bool microseconds;
	bool heatmap;			/* a line of shades for each interval */
	enum stat_by by;
	struct {
		const char *name;	/* waits for this are counted; NULL: statements */
		enum breakdown_part part;	/* its meaning, see breakdown_by_name() */
		uint32_t call;
	} wait;
} own;

static const char *const by_names[] = {
	[STAT_BY_ALL] = NULL,
	[STAT_BY_COMMAND] = "command",
	[STAT_BY_STATUS] = "status",
	[STAT_BY_DATABASE] = "db",
	[STAT_BY_USER] = "user",
};

struct stat {
	struct loop loop;		/* first: callbacks receive it */
	struct histogram_row *before;	/* the counts at the end of the last interval; sorted */
	size_t nbefore;
	uint64_t shown;			/* statements */
	uint64_t wall_ns;		/* of the end of the interval, CLOCK_REALTIME */
	struct export export;
	struct heatmap heatmap;
	uint64_t lines;			/* of it, since its title, which is .. */
	struct histogram_row titled;	/* .. that of this one's engine and group */
};

/* One histogram: of an engine, or of one group of its statements. */
struct stat_histogram {
	const struct histogram_row *counts;
	size_t ncounts;
	uint64_t total;
	struct histogram_slots slots;
};

static const char *stat_unit(void)
{
	return own.microseconds ? "us" : "ms";
}

static uint64_t stat_unit_ns(void)
{
	return own.microseconds ? 1000 : 1000000;
}

static bool count_same(const struct histogram_row *a, const struct histogram_row *b)
{
	return a->engine == b->engine && !strcmp(a->group, b->group) && a->coarse == b->coarse &&
	       a->fine == b->fine;
}

/* Subtract the previous counts. Both are in the same order, and no count is ever removed. */
static void stat_subtract(const struct stat *stat, struct histogram_row *counts, size_t n)
{
	size_t old = 0;

	for (size_t i = 0; i < n && old < stat->nbefore; i++)
		if (count_same(&counts[i], &stat->before[old]))
			counts[i].count -= stat->before[old++].count;
}

/* Return the lower bound of slot @fine in ns; the upper one is that of the next slot. */
static uint64_t fine_ns(uint32_t fine)
{
	uint32_t octave = fine / STAT_FINE;

	if (fine < STAT_FINE)
		return fine;
	return (uint64_t)(STAT_FINE + fine % STAT_FINE) << (octave - 1);
}

/* Return the duration that @permille of the statements did not exceed, within 3 %. */
static uint64_t stat_percentile(const struct stat_histogram *h, uint32_t permille)
{
	uint64_t wanted = (h->total * permille + 999) / 1000, sum = 0;
	uint32_t best = 0;

	/* A fine slot may occur in two adjacent coarse slots, which keeps the order. */
	for (size_t i = 0; i < h->ncounts; i++) {
		if (!h->counts[i].count)
			continue;
		best = h->counts[i].fine;
		sum += h->counts[i].count;
		if (sum >= wanted)
			break;
	}
	return (fine_ns(best) + fine_ns(best + 1)) / 2;
}

static const struct {
	const char *name;
	uint32_t permille;
} percentiles[] = { { "p50", 500 }, { "p95", 950 }, { "p99", 990 }, { "max", 1000 } };

#define PERCENTILES	(sizeof(percentiles) / sizeof(percentiles[0]))

static void stat_text(struct stat *stat, const struct stat_histogram *h)
{
	struct output *out = &stat->loop.out;
	const char *unit = stat_unit(), *wait = own.wait.name;
	char title[32];

	snprintf(title, sizeof(title), "%s latency (%s)", wait ? "wait" : "query", unit);
	histogram_bars(out, &h->slots, title);
	output_string(out, "     ");
	for (size_t i = 0; i < PERCENTILES; i++) {
		output_printf(out, "%s%s ", i ? ", " : "", percentiles[i].name);
		output_fixed(out, stat_percentile(h, percentiles[i].permille) /
				  (own.microseconds ? 1 : 1000), 3);
		output_printf(out, " %s", unit);
	}
	output_printf(out, "; %llu %s\n", (unsigned long long)h->total,
		      wait ? "waits" : "statements");
}

static void stat_json(struct stat *stat, const struct stat_histogram *h)
{
	struct output *out = &stat->loop.out;
	const struct histogram_row *first = h->counts;
	const char *by = by_names[own.by];
	const struct server server = server_set_common(&stat->loop.banner.servers,
						       first->engine->name);

	json_head(out, "{\"type\":\"histogram\",\"time\":\"", stat->wall_ns, &server);
	json_number(out, ",\"interval\":", stat->loop.counted);
	json_string(out, ",\"wait\":\"", own.wait.name);
	if (by && *first->group) {
		output_printf(out, ",\"%s\":\"", strcmp(by, "db") ? by : "database");
		escape_json(out, first->group, strlen(first->group), false);
		output_char(out, '"');
	}
	json_number(out, ",\"count\":", h->total);
	for (size_t i = 0; i < PERCENTILES; i++) {
		output_printf(out, ",\"%s_ms\":", percentiles[i].name);
		output_fixed(out, stat_percentile(h, percentiles[i].permille), 6);
	}
	histogram_buckets(out, &h->slots, stat_unit_ns());
	output_string(out, "}\n");
}

/* Print the title of a histogram. */
static void stat_title(struct stat *stat, const struct histogram_row *first)
{
	struct output *out = &stat->loop.out;
	const char *by = by_names[own.by];

	output_char(out, '\n');
	output_string(out, first->engine->title);
	if (own.wait.name)
		output_printf(out, ", wait = %s", own.wait.name);
	if (by) {
		output_printf(out, ", %s = ", by);
		if (*first->group)
			escape_terminal(out, first->group, strlen(first->group), false);
		else
			output_char(out, '-');
	}
	output_string(out, ":\n");
}

/* Print the line of a heat map, below a title if the last one was of another histogram. */
static void stat_heat(struct stat *stat, const struct stat_histogram *h)
{
	struct output *out = &stat->loop.out;

	if (stat->titled.engine != h->counts->engine ||
	    strcmp(stat->titled.group, h->counts->group)) {
		stat_title(stat, h->counts);
		stat->titled = *h->counts;
		stat->lines = 0;
	}
	if (stat->lines++ % AXIS_LINES == 0)
		heatmap_axis(&stat->heatmap, out);
	heatmap_line(&stat->heatmap, out, stat->wall_ns, h->counts, h->ncounts);
}

static void stat_print(struct stat *stat, const struct stat_histogram *h)
{
	stat->shown += h->total;
	if (own.heatmap) {
		stat_heat(stat, h);
	} else if (!h->total || stat->export.standard) {
		return;
	} else if (stat->loop.options.json) {
		stat_json(stat, h);
	} else {
		stat_title(stat, h->counts);
		stat_text(stat, h);
	}
}

/* Collect the leading ones of @n @counts that belong to one histogram. Return their number. */
static size_t stat_take(struct stat_histogram *h, const struct histogram_row *counts, size_t n)
{
	*h = (struct stat_histogram){ .counts = counts };
	for (; h->ncounts < n; h->ncounts++) {
		const struct histogram_row *count = &counts[h->ncounts];

		if (strcmp(count->engine->name, counts->engine->name) ||
		    strcmp(count->group, counts->group))
			break;
		h->total += count->count;
		h->slots.count[count->coarse % HISTOGRAM_SLOTS] += count->count;
	}
	return h->ncounts;
}

/* Print the counts since the last time. Return 0 or -errno. */
static int stat_show(struct stat *stat)
{
	struct histogram_row *counts, *now;
	ssize_t n = stat->loop.source->histogram(&stat->loop, &counts);
	struct stat_histogram h;

	if (n < 0)
		return (int)n;
	now = malloc(((size_t)n + 1) * sizeof(*now));
	if (!now) {
		free(counts);
		return -ENOMEM;
	}
	memcpy(now, counts, (size_t)n * sizeof(*now));
	stat_subtract(stat, counts, (size_t)n);
	stat->wall_ns = loop_wall(&stat->loop);
	if (!stat->export.standard && !own.heatmap)
		loop_stamp(&stat->loop, stat->wall_ns);
	for (size_t i = 0; i < (size_t)n;) {
		i += stat_take(&h, counts + i, (size_t)n - i);
		stat_print(stat, &h);
	}
	free(counts);
	free(stat->before);
	stat->before = now;
	stat->nbefore = (size_t)n;
	loop_count(&stat->loop);
	return output_flush(&stat->loop.out);
}

static void stat_begin(struct loop *loop)
{
	export_begin(&((struct stat *)loop)->export);
	if (loop->options.json || ((struct stat *)loop)->export.standard)
		return;
	banner_headline(loop);
	output_flush(&loop->out);
}

static int stat_tick(struct loop *loop)
{
	struct stat *stat = (struct stat *)loop;
	int err = loop_interval(loop) ? stat_show(stat) : 0;

	export_tick(&stat->export);
	return err;
}

static int stat_finish(struct loop *loop, int *err)
{
	struct stat *stat = (struct stat *)loop;

	if (!loop->done)
		*err = stat_show(stat);
	return *err ? EXIT_OK : export_finish(&stat->export);
}

static void stat_summary(struct loop *loop, struct summary *summary)
{
	struct stat *stat = (struct stat *)loop;

	tracing_summary(loop, summary);
	summary->printed = stat->shown;
	summary->printed_noun = own.wait.name ? "waits" : NULL;
}

/* Only what is exported is reported. It is not printed. */
static bool stat_statement(void *arg, const struct statement *statement)
{
	export_statement(&((struct stat *)arg)->export, statement, 0, NULL);
	return false;
}

/* Adapt @config, which is that of slow. */
static void stat_config(struct loop *loop, struct tracer_config *config)
{
	bool filter = filter_any(&config->sink.filter);

	config->sink.statement = stat_statement;
	config->sink.stat_unit_ns = stat_unit_ns();
	config->sink.stat_by = own.by;
	if (own.wait.name) {
		config->why = config->sink.stat_waits = true;
		config->wait_part = own.wait.part;
		config->wait_call = own.wait.call;
		loop->banner.subject = "waits in database queries";
		loop->banner.than = " longer than ";
	}
	/*
	 * Without a filter the kernel groups by the user or database that it reads in the server's
	 * memory; these are not compared with a process title, as they have been counted by then.
	 */
	config->identify = filter;
	config->rows = false;
	export_config(&((struct stat *)loop)->export, config);
	loop->nap_ms = filter || config->sink.records ? 0 : DRAIN_MS;
	if (!config->sink.filter.match)
		config->text_bytes = config->sink.records ? EXPORT_TEXT : OPTION_TEXT_MIN * 4;
	if (own.by == STAT_BY_COMMAND && config->text_bytes < EXPORT_TEXT)
		config->text_bytes = EXPORT_TEXT;
}

static int stat_run(struct loop *loop)
{
	struct tracer_config config;
	int status;

	status = export_open(&((struct stat *)loop)->export, loop);
	if (status != EXIT_OK)
		return status;
	heatmap_open(&((struct stat *)loop)->heatmap);
	tracing_config(loop, &config);
	stat_config(loop, &config);
	status = tracing_start(loop, &config);
	return status == EXIT_OK ? loop_run(loop) : status;
}

static void stat_close(struct loop *loop)
{
	export_close(&((struct stat *)loop)->export);
	free(((struct stat *)loop)->before);
}

static const struct loop_ops stat_ops = {
	.size = sizeof(struct stat), .noun = "statements",
	.losses = LOSSES_OF_SESSIONS | LOSSES_OF_TEXTS,
	.run = stat_run, .close = stat_close, .begin = stat_begin,
	.drain = tracing_drain, .tick = stat_tick, .detach = tracing_detach,
	.finish = stat_finish, .summary = stat_summary,
};

static const struct option_row option_microseconds = {
	.letter = 'u', .name = "microseconds",
	.help = "use microseconds instead of milliseconds",
	OPTION_OWN(own.microseconds),
};

static const struct option_row option_part_metrics = {
	.name = "why",
	.help = "with metrics, also export the time by part",
	.member = offsetof(struct options, why),
};

static int set_by(struct option_parser *p, const struct option_row *row, const char *value)
{
	for (size_t i = STAT_BY_ALL + 1; i < ARRAY_SIZE(by_names); i++) {
		if (strcmp(value, by_names[i]))
			continue;
		own.by = (enum stat_by)i;
		return 0;
	}
	return option_refuse(p, row, value, "unknown group");
}

static void complete_by(struct output *out)
{
	for (size_t i = STAT_BY_ALL + 1; i < ARRAY_SIZE(by_names); i++)
		output_printf(out, "%s\n", by_names[i]);
}

static const struct option_row option_by = {
	.name = "by", .arg = "WHAT",
	.help = "one histogram per command, db, user or status",
	.accepts = "expected command, db, user or status",
	.set = set_by, .complete = complete_by, OPTION_OWN(own.by),
};

static int set_wait(struct option_parser *p, const struct option_row *row, const char *value)
{
	if (breakdown_by_name(value, &own.wait.part, &own.wait.call))
		return option_refuse(p, row, value, "unknown wait");
	own.wait.name = value;
	return 0;
}

static void complete_wait(struct output *out)
{
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		output_printf(out, "%s\n", breakdown_part_name((enum breakdown_part)i));
	output_string(out, "pread64\npwrite64\nfdatasync\nepoll_wait\npage_fault\n");
}

#define LISTED(part, name, help)	name ", "

static const struct option_row option_wait = {
	.name = "wait", .arg = "WHAT",
	.help = "count waits inside statements: lock, fdatasync, ...",
	.accepts = "expected a part of the time (" BREAKDOWN_WAITS_FOR(LISTED) "cpu, runqueue) "
		   "or a system call (pread64, fdatasync, ...)",
	.set = set_wait, .complete = complete_wait, OPTION_OWN(own.wait),
	.live = true,
};

static const struct option_row option_heatmap = {
	.name = "heatmap",
	.help = "with -i: latency over time, a line of shades each",
	OPTION_OWN(own.heatmap),
};

static const struct option_row *const stat_options[] = {
	&option_min, &option_pid, &option_path, &option_duration, &option_interval,
	&option_count_intervals, &option_microseconds, &option_by, &option_wait, &option_heatmap,
	&option_openmetrics, &option_otlp_metrics, &option_part_metrics, &option_start,
	&option_done, &option_text_arg, &option_engine, &option_user, &option_db, &option_client,
	&option_app, &option_backend, &option_match, &option_container, &option_text, &option_json,
	&option_strict, &option_sample, &option_max_overhead, &option_keep_privileges,
	&option_force, &option_threshold, &option_exe, &option_verbose, &option_help,
	&option_version, NULL
};

static bool metrics_with_others(const struct options *opts)
{
	return export_conflicts(opts->json + own.heatmap);
}

static bool parts_without_metrics(const struct options *opts)
{
	return opts->why && !export_is_wanted();
}

static bool heatmap_with_json(const struct options *opts)
{
	return own.heatmap && opts->json;
}

static bool heatmap_without_interval(const struct options *opts)
{
	return own.heatmap && !opts->interval_ns;
}

static bool status_of_waits(const struct options *opts)
{
	return own.wait.name && own.by == STAT_BY_STATUS && !opts->has_match && !opts->user &&
	       !opts->database && !opts->client && !opts->application && !opts->backend &&
	       !opts->container;
}

static const struct option_rule rule_metrics = EXPORT_RULE(metrics_with_others);

static const struct option_rule rule_parts = {
	parts_without_metrics, "--why", "requires --openmetrics or --otlp-metrics",
	"specify one of them, or use the commands slow or top",
};

static const struct option_rule rule_heatmap_json = {
	heatmap_with_json, "--heatmap", "cannot be combined with --json", "omit one of them",
};

static const struct option_rule rule_heatmap_interval = {
	heatmap_without_interval, "--heatmap", "requires -i", "specify -i SECONDS",
};

static const struct option_rule rule_status = {
	status_of_waits, "--by status",
	"cannot be combined with --wait, as the status is unknown during a wait",
	"use command, db or user, or add a filter",
};

static bool sample_with_waits(const struct options *opts)
{
	return opts->sample_ns && own.wait.name;
}

static const struct option_rule rule_sample_waits = {
	sample_with_waits, "--sample", "cannot be combined with --wait, which is of probes",
	"omit one of them",
};

static const struct option_rule *const stat_rules[] = {
	&rule_metrics, &rule_parts, &rule_sample_waits, &rule_heatmap_json,
	&rule_heatmap_interval, RULES_OF_PROBES,
	&rule_status, &rule_count_intervals, NULL
};

const struct command command_stat = {
	.name = "stat",
	.alias = "dbstat",
	.replays = true,
	.summary = "print a histogram of statement durations (alias dbstat)",
	.invocation = "dbslower stat",
	.usage = "[ENGINE] [THRESHOLD] [OPTION...]",
	.about =
	"Print a histogram and percentiles of the durations of statements in running\n"
	"database servers, on exit or at each interval. Statements are counted in the\n"
	"kernel. With THRESHOLD, only statements that take longer.\n",
	.examples =
	"  dbslower stat                 until Ctrl-C, in ms\n"
	"  dbslower stat postgres -u     PostgreSQL, in microseconds\n"
	"  dbslower stat -i 5 -n 3       three intervals of five seconds\n"
	"  dbslower stat --by command    one histogram each for select, insert, ...\n"
	"  dbslower stat --wait futex -u waits for mutexes and conditions\n"
	"  dbslower stat --heatmap -i 1  latency over time, a line each second\n"
	"  dbslower stat --openmetrics /var/lib/prometheus/node-exporter/dbslower.prom\n"
	"  dbslower stat -x /opt/db --start db:query__start --done db:query__done\n"
	COMMAND_EXIT_STATUS,
	.words = WORDS_STATEMENTS,
	.options = stat_options,
	.rules = stat_rules,
	.loop = &stat_ops,
	.run = loop_command,
};
