// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command transactions: those longer than a threshold, as they end or at the end. */
#include <stddef.h>

#include "cli/banner.h"
#include "cli/command.h"
#include "cli/format/field_json.h"
#include "cli/format/field_table.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/tracing.h"

struct transactions {
	struct loop loop;		/* first: callbacks receive it */
	struct field_table table;
};

/* Called for each transaction. */
static bool transactions_print(void *arg, const struct statement *statement)
{
	struct loop *loop = arg;
	bool ended = !statement->transaction->open;

	if (loop->done)
		return false;
	loop_begin_event(loop, ended);
	if (loop->options.json)
		field_json(&loop->out, statement);
	else
		field_table_row(&loop->out, &((struct transactions *)loop)->table, statement);
	loop_end_event(loop, ended);
	return true;
}

static void transactions_begin(struct loop *loop)
{
	((struct transactions *)loop)->table.start_ns = loop->start_ns;
	if (loop->options.json)
		return;
	banner_headline(loop);
	field_table_header(&loop->out, &((struct transactions *)loop)->table);
	output_flush(&loop->out);
}

static int transactions_run(struct loop *loop)
{
	struct transactions *cmd = (struct transactions *)loop;
	struct tracer_config config;
	int status;

	loop->banner.subject = "database transactions";
	loop->banner.than = " longer than ";
	loop->banner.transactions = true;
	field_table_init(&cmd->table, &loop->options.columns, loop->start_ns, loop->options.wall);
	tracing_config(loop, &config);
	config.transactions = true;
	config.rows = false;
	config.sink.statement = transactions_print;
	status = tracing_start(&cmd->loop, &config);
	return status == EXIT_OK ? loop_run(loop) : status;
}

static const struct loop_ops transactions_ops = {
	.size = sizeof(struct transactions), .noun = "transactions", .unfinished = "Still open:\n",
	.losses = LOSSES_OF_SESSIONS, .report = LOOP_REPORT_EVENTS,
	.run = transactions_run, .begin = transactions_begin,
	.drain = tracing_drain, .sleep = tracing_sleep, .running = tracing_running,
	.detach = tracing_detach, .summary = tracing_summary,
};

static const struct option_row option_min_transactions = {
	.letter = 'm', .name = "min", .arg = "MS",
	.help = "same as THRESHOLD; 0 selects all transactions",
	.accepts = OPTION_DURATIONS,
	.set = option_set_minimum,
};

static const struct option_row option_count_transactions = {
	.letter = 'n', .name = "count", .arg = "COUNT",
	.help = "stop after printing this many that have ended",
	.accepts = "expected a whole number",
	.set = option_set_number, .member = offsetof(struct options, count),
};

static const struct option_row option_transaction_columns = {
	.letter = 'o', .name = "columns", .arg = "NAME[,...]",
	.help = "print these columns, see below",
	.accepts = "expected column names, separated by commas",
	.set = option_set_columns, .complete = option_complete_transaction_columns,
};

static const struct option_row *const transactions_options[] = {
	&option_min_transactions, &option_pid, &option_path, &option_duration,
	&option_count_transactions, &option_engine, &option_user, &option_db, &option_client,
	&option_app, &option_backend, &option_match, &option_container, &option_text,
	&option_redact, &option_transaction_columns, &option_wall, &option_json, &option_strict,
	&option_max_overhead, &option_keep_privileges, &option_force, &option_threshold,
	&option_exe, &option_verbose, &option_help, &option_version, NULL
};

static const struct option_rule *const transactions_rules[] = { &rule_json_columns, NULL };

const struct command command_transactions = {
	.name = "transactions",
	.replays = true,
	.summary = "print transactions longer than a threshold",
	.invocation = "dbslower transactions",
	.usage = "[ENGINE] [THRESHOLD] [OPTION...]",
	.about =
	"Print the transactions of running database servers that take longer than\n"
	"THRESHOLD, as they end, and those that are open when tracing ends. THRESHOLD is\n"
	"in milliseconds or has a unit (ns, us, ms, s); the default is 1 s. A statement\n"
	"outside of a transaction block is a transaction of one statement. --match\n"
	"compares the text of the longest statement.\n",
	.examples =
	"  dbslower transactions                  all servers, longer than 1 s\n"
	"  dbslower transactions postgres 100     PostgreSQL, longer than 100 ms\n"
	"  dbslower transactions 10s -d 1h --user app --json\n"
	"  dbslower transactions -o ms,idle,state,user,query\n"
	COMMAND_EXIT_STATUS,
	.words = WORDS_STATEMENTS,
	.threshold_ns = 1000000000,
	.transactions = true,
	.options = transactions_options,
	.rules = transactions_rules,
	.loop = &transactions_ops,
	.run = loop_command,
};
