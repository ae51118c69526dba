// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command slow, the default: statements slower than a threshold, as they end. */
#include <stddef.h>
#include <string.h>

#include "cli/banner.h"
#include "cli/command.h"
#include "cli/format/breakdown.h"
#include "cli/format/field_json.h"
#include "cli/format/field_table.h"
#include "cli/format/log.h"
#include "cli/format/otlp.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/tracing.h"

static struct {
	const struct format_log *format;	/* of the output; NULL: none of a log */
	const char *otlp;			/* file for spans, "-": the standard output */
	bool raw;				/* texts of spans with their literals */
	bool prepares;
} own;

struct slow {
	struct loop loop;		/* first: callbacks receive it */
	struct field_table table;
	struct otlp otlp;
};

static void slow_print(struct slow *slow, const struct statement *statement)
{
	const struct options *options = &slow->loop.options;
	struct output *out = &slow->loop.out;

	if (options->json) {
		field_json(out, statement);
		return;
	}
	if (own.format) {
		if (!statement->running)
			own.format->statement(out, statement);
		return;
	}
	loop_begin_event(&slow->loop, !statement->running);
	field_table_row(out, &slow->table, statement);
	/* A column alone may have requested the breakdown. */
	if (statement->why && (options->why || options->use || options->phases))
		breakdown_text(out, statement);
}

static bool slow_statement(void *arg, const struct statement *statement)
{
	struct slow *slow = arg;
	struct loop *loop = arg;
	bool ended = !statement->running && !statement->prepare;

	if (loop->done)
		return false;
	if (!otlp_is_standard(&slow->otlp))
		slow_print(slow, statement);
	/* Only a statement that has ended is a span. */
	if (ended)
		otlp_statement(&slow->otlp, statement);
	loop_end_event(loop, ended);
	return true;
}

static void slow_begin(struct loop *loop)
{
	struct slow *slow = (struct slow *)loop;

	slow->table.start_ns = loop->start_ns;
	if (loop->host)
		otlp_host(&slow->otlp, loop->host);
	if (loop->options.json || own.format || otlp_is_standard(&slow->otlp))
		return;
	banner_headline(loop);
	field_table_header(&loop->out, &slow->table);
	output_flush(&loop->out);
}

/* Write the spans. A failure ends the loop; slow_finish() reports it. */
static int slow_tick(struct loop *loop)
{
	if (otlp_flush(&((struct slow *)loop)->otlp) < 0)
		loop->failed = loop->done = true;
	return 0;
}

/* Open the file of --otlp, before privileges are dropped. Return EXIT_OK or EXIT_FAILED. */
static int slow_otlp(struct slow *slow)
{
	struct loop *loop = &slow->loop;
	struct error error = { .kind = ERROR_NONE };
	int err = otlp_open(&slow->otlp, own.otlp, &loop->out);

	if (!err)
		return EXIT_OK;
	error_set(&error, ERROR_OUTPUT, err, own.otlp, NULL);
	return loop_refuse(loop, &error);
}

/* Report a failure to write the spans. */
static int slow_finish(struct loop *loop, int *err)
{
	struct slow *slow = (struct slow *)loop;
	const char *path = own.otlp;
	int error = otlp_flush(&slow->otlp);

	(void)err;
	if (!error || otlp_is_standard(&slow->otlp))
		return EXIT_OK;
	return message_unwritten(&loop->err, path, error);
}

/* A log and spans have all fields. */
static void slow_config(struct loop *loop, struct tracer_config *config)
{
	tracing_config(loop, config);
	config->events = true;
	config->sink.statement = slow_statement;
	config->prepares = own.prepares;
	config->identify |= own.format || own.otlp;
	config->rows |= own.format || own.otlp;
	config->query_ids |= own.otlp != NULL;
	config->sink.spans = own.otlp;
	config->sink.redact_spans = own.otlp && !own.raw;
}

static int slow_run(struct loop *loop)
{
	struct slow *slow = (struct slow *)loop;
	struct tracer_config config;
	int status = slow_otlp(slow);

	if (status != EXIT_OK)
		return status;
	field_table_init(&slow->table, &loop->options.columns, loop->start_ns, loop->options.wall);
	slow_config(loop, &config);
	status = tracing_start(&slow->loop, &config);
	if (status != EXIT_OK)
		return status;
	otlp_stoppable(&slow->otlp, loop->stop);
	return loop_run(loop);
}

static void slow_close(struct loop *loop)
{
	otlp_close(&((struct slow *)loop)->otlp);
}

static const struct loop_ops slow_ops = {
	.size = sizeof(struct slow), .noun = "statements", .unfinished = "Still running:\n",
	.losses = LOSSES_OF_SESSIONS | LOSSES_OF_TEXTS, .report = LOOP_REPORT_TEXTS,
	.run = slow_run, .close = slow_close, .begin = slow_begin,
	.drain = tracing_drain, .sleep = tracing_sleep, .tick = slow_tick,
	.running = tracing_running, .detach = tracing_detach, .finish = slow_finish,
	.summary = tracing_summary,
};

static const struct option_row option_count_statements = {
	.letter = 'n', .name = "count", .arg = "COUNT",
	.help = "stop after printing this many statements",
	.accepts = "expected a whole number",
	.set = option_set_number, .member = offsetof(struct options, count),
};

static const struct option_row option_columns = {
	.letter = 'o', .name = "columns", .arg = "NAME[,...]",
	.help = "print these columns, see below",
	.accepts = "expected column names, separated by commas",
	.set = option_set_columns, .complete = option_complete_columns,
};

static int set_format(struct option_parser *p, const struct option_row *row, const char *value)
{
	for (const struct format_log *format = format_logs; format->name; format++) {
		if (strcmp(value, format->name))
			continue;
		own.format = format;
		return 0;
	}
	return option_refuse(p, row, value, "unknown format");
}

static void complete_format(struct output *out)
{
	for (const struct format_log *format = format_logs; format->name; format++)
		output_printf(out, "%s\n", format->name);
}

static const struct option_row option_format = {
	.name = "format", .arg = "NAME",
	.help = "print the log of a server: pgbadger or slowlog",
	.accepts = "expected pgbadger or slowlog",
	.set = set_format, .complete = complete_format, OPTION_OWN(own.format),
};

static const struct option_row option_otlp = {
	.name = "otlp", .arg = "FILE",
	.help = "append statements to FILE as OpenTelemetry spans",
	.accepts = "expected the path of a file, or - for standard output",
	.set = option_set_word, .complete = option_complete_files, OPTION_OWN(own.otlp),
};

static int set_otlp_text(struct option_parser *p, const struct option_row *row, const char *value)
{
	bool raw = !strcmp(value, "raw");

	if (!raw && strcmp(value, "sanitized"))
		return option_refuse(p, row, value, "unknown kind of text");
	own.raw = raw;
	return 0;
}

static void complete_otlp_text(struct output *out)
{
	output_string(out, "sanitized\nraw\n");
}

static const struct option_row option_otlp_text = {
	.name = "otlp-text", .arg = "KIND",
	.help = "texts of spans: sanitized (default) or raw",
	.accepts = "expected sanitized or raw",
	.set = set_otlp_text, .complete = complete_otlp_text, OPTION_OWN(own.raw),
};

static const struct option_row option_phases = {
	.name = "phases",
	.help = "print the times of parsing, planning and execution",
	.member = offsetof(struct options, phases),
};

static const struct option_row option_prepares = {
	.name = "prepares",
	.help = "also print what only prepares (postgresql)",
	OPTION_OWN(own.prepares),
};

static const struct option_row *const slow_options[] = {
	&option_min, &option_pid, &option_path, &option_duration, &option_count_statements,
	&option_start, &option_done, &option_text_arg, &option_engine, &option_user, &option_db,
	&option_client, &option_app, &option_backend, &option_match, &option_container,
	&option_text, &option_redact, &option_columns, &option_wall, &option_why, &option_use,
	&option_nested, &option_otlp, &option_otlp_text, &option_phases, &option_prepares,
	&option_json, &option_format, &option_strict, &option_sample, &option_max_overhead,
	&option_keep_privileges, &option_force, &option_threshold, &option_exe, &option_verbose,
	&option_help, &option_version, NULL
};

static bool format_with_others(const struct options *opts)
{
	return own.format && (opts->json || opts->columns.count || output_is_standard(own.otlp));
}

static bool spans_with_others(const struct options *opts)
{
	return output_is_standard(own.otlp) && (opts->json || opts->columns.count);
}

static bool span_texts_alone(const struct options *opts)
{
	return own.raw && (!own.otlp || opts->redact);
}

static const struct option_rule rule_format = {
	format_with_others, "--format",
	"cannot be combined with --json, -o or --otlp -, which write to the same output",
	"omit one of them",
};

static const struct option_rule rule_spans = {
	spans_with_others, "--otlp -",
	"cannot be combined with --json or -o, which write to the same output",
	"specify a file, or omit --json and -o",
};

static const struct option_rule rule_span_texts = {
	span_texts_alone, "--otlp-text raw", "requires --otlp, and excludes --redact",
	"specify --otlp FILE, or omit --redact",
};

static const struct option_rule *const slow_rules[] = {
	&rule_json_columns, &rule_format, &rule_spans, &rule_span_texts, RULES_OF_PROBES, NULL
};

const struct command command_slow = {
	.name = "slow",
	.replays = true,
	.summary = "print statements slower than a threshold (the default)",
	.invocation = "dbslower",
	.usage = "[ENGINE] [THRESHOLD] [OPTION...]",
	.about =
	"Print the statements of running database servers that take longer than\n"
	"THRESHOLD, as they end. THRESHOLD is in milliseconds or has a unit (ns, us, ms,\n"
	"s); the default is 1 ms. Without a database name, all servers are traced.\n",
	.examples =
	"  dbslower                      all servers, slower than 1 ms\n"
	"  dbslower postgres 30          PostgreSQL, slower than 30 ms\n"
	"  dbslower mysql 250us -d 60    MySQL and MariaDB, for one minute\n"
	"  dbslower -m 0 --json          all statements, as JSON\n"
	"  dbslower -p 1234 -t -o time,user,db,ms,status,query\n"
	COMMAND_EXIT_STATUS,
	.words = WORDS_STATEMENTS,
	.threshold_ns = 1000000,
	.options = slow_options,
	.rules = slow_rules,
	.loop = &slow_ops,
	.run = loop_command,
};
