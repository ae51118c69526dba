// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/option/check.h"

#include <string.h>

static bool json_with_columns(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->json && (opts->columns.count || opts->session_columns);
}

static bool is_standard(const char *path)
{
	return path && !strcmp(path, "-");
}

static bool format_with_others(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->format && (opts->json || opts->columns.count || is_standard(opts->otlp));
}

static bool spans_with_others(const struct command *command, const struct options *opts)
{
	(void)command;
	return is_standard(opts->otlp) && (opts->json || opts->columns.count);
}

static bool metrics_with_others(const struct command *command, const struct options *opts)
{
	(void)command;
	return is_standard(opts->openmetrics) + is_standard(opts->otlp_metrics) &&
	       is_standard(opts->openmetrics) + is_standard(opts->otlp_metrics) + opts->json +
	       opts->heatmap > 1;
}

/* Of the commands that count in the kernel. */
static bool parts_without_metrics(const struct command *command, const struct options *opts)
{
	return !strcmp(command->name, "stat") && opts->why && !opts->openmetrics &&
	       !opts->otlp_metrics;
}

static bool heatmap_with_json(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->heatmap && opts->json;
}

static bool heatmap_without_interval(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->heatmap && !opts->interval_ns;
}

static bool trigger_alone(const struct command *command, const struct options *opts)
{
	(void)command;
	return !opts->memory && (opts->on_slow_ns || opts->on_lock_ns || opts->on_errors ||
				 opts->after_ns || opts->max_files);
}

static bool too_many_files(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->max_files > OPTION_FILES_MAX;
}

static bool span_texts_alone(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->otlp_raw && (!opts->otlp || opts->redact);
}

static bool has_both_probes(const struct options *opts)
{
	return opts->start && opts->done && (opts->path_count || opts->pid_count);
}

static bool start_alone(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->start && !has_both_probes(opts);
}

static bool done_alone(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->done && !has_both_probes(opts);
}

static bool text_arg_alone(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->text_arg && !opts->start;
}

static bool start_with_engine(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->start && opts->engine;
}

static bool count_with_histogram(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->count_hits && opts->histogram;
}

static bool status_of_waits(const struct command *command, const struct options *opts)
{
	(void)command;
	return opts->wait && opts->stat_by == STAT_BY_STATUS && !opts->has_match && !opts->user &&
	       !opts->database && !opts->client && !opts->application &&
	       !opts->container;
}

/* Only ps ends at once. */
static bool duration_without_interval(const struct command *command, const struct options *opts)
{
	return !strcmp(command->name, "ps") && opts->duration_ns && !opts->interval_ns;
}

static bool count_without_interval(const struct command *command, const struct options *opts)
{
	return option_find(command, "interval", strlen("interval")) &&
	       !option_find(command, "max", strlen("max")) && opts->count && !opts->interval_ns;
}

/* Options that exclude or require each other; the first broken rule is reported. */
static const struct {
	bool (*broken)(const struct command *command, const struct options *opts);
	const char *subject, *cause, *remedy;
} rules[] = {
	{ json_with_columns, "-o", "cannot be combined with --json, which prints all fields",
	  "omit one of them" },
	{ format_with_others, "--format",
	  "cannot be combined with --json, -o or --otlp -, which write to the same output",
	  "omit one of them" },
	{ spans_with_others, "--otlp -",
	  "cannot be combined with --json or -o, which write to the same output",
	  "specify a file, or omit --json and -o" },
	{ span_texts_alone, "--otlp-text raw", "requires --otlp, and excludes --redact",
	  "specify --otlp FILE, or omit --redact" },
	{ metrics_with_others, "-",
	  "can receive one of --openmetrics, --otlp-metrics, --json and --heatmap",
	  "specify files for the others" },
	{ parts_without_metrics, "--why", "requires --openmetrics or --otlp-metrics",
	  "specify one of them, or use the commands slow or top" },
	{ heatmap_with_json, "--heatmap", "cannot be combined with --json", "omit one of them" },
	{ heatmap_without_interval, "--heatmap", "requires -i", "specify -i SECONDS" },
	{ trigger_alone, "--on-slow, --on-lock, --on-error-rate, --after, --max-files",
	  "require --memory", "specify --memory 8M" },
	{ too_many_files, "--max-files", "too large", "expected a number up to 1000" },
	{ start_alone, "--start", "requires --done and one of -x, -p",
	  "specify --start, --done and -x PATH" },
	{ done_alone, "--done", "requires --start and one of -x, -p",
	  "specify --start, --done and -x PATH" },
	{ text_arg_alone, "--text-arg", "requires --start and --done",
	  "specify --start, --done and -x PATH" },
	{ start_with_engine, "--start", "cannot be combined with a database",
	  "omit the name of the database" },
	{ count_with_histogram, "--count", "cannot be combined with --hist",
	  "omit one of them" },
	{ status_of_waits, "--by status",
	  "cannot be combined with --wait, as the status is unknown during a wait",
	  "use command, db or user, or add a filter" },
	{ count_without_interval, "-n", "counts intervals and requires -i", "specify -i SECONDS" },
	{ duration_without_interval, "-d", "ends what -i repeats and requires it",
	  "specify -i SECONDS" },
};

int option_parse(const struct command *command, int argc, char *const argv[],
		 struct options *opts, struct output *err)
{
	struct option_parser p = { .command = command, .opts = opts, .err = err };
	int ret = option_read(&p, argc, argv);

	if (ret)
		return ret;
	for (size_t i = 0; !opts->help && !opts->version && i < sizeof(rules) / sizeof(rules[0]);
	     i++) {
		if (!rules[i].broken(command, opts))
			continue;
		option_message(&p, NULL, rules[i].subject, strlen(rules[i].subject));
		return option_message_end(&p, rules[i].cause, rules[i].remedy);
	}
	if (!opts->columns.count)
		field_default(&opts->columns);
	return 0;
}
