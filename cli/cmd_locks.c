// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command locks: lock waits as they end, or a table of them, with the lock holders. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/banner.h"
#include "cli/command.h"
#include "cli/format/locks_graph.h"
#include "cli/format/locks_json.h"
#include "cli/format/locks_table.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/tracing.h"
#include "host/open.h"

#define NAP_MS		1	/* holders are resolved while they hold the lock */

static struct {
	bool stat;			/* a table of locks, not each wait */
	const char *dot;		/* file for a graph of waits; NULL: none */
} own;

struct cmd_locks {
	struct loop loop;		/* first: callbacks receive it */
	struct locks_table table;
	struct locks_graph graph;
	void (*server)(void *arg, const struct server_info *server);
	uint64_t lines;			/* of the table, once it was printed */
	int dot;			/* file; -1: none */
};

static void locks_json_sums(struct cmd_locks *cmd)
{
	uint64_t wall_ns = loop_wall(&cmd->loop);

	for (size_t i = 0; i < cmd->table.sums.n; i++) {
		const struct locks_sum *sum = &locks_table_sums(&cmd->table)[i];
		const struct server server =
			server_set_common(&cmd->loop.banner.servers, sum->of.engine);

		locks_json_sum(&cmd->loop.out, sum, wall_ns, &server);
	}
}

static bool locks_wait(void *arg, const struct lock_wait *wait)
{
	struct cmd_locks *cmd = arg;
	const struct options *options = &cmd->loop.options;
	bool room = true;

	if (cmd->loop.done)
		return true;
	/* A wait shown on request is shown again when it ends. */
	if (cmd->dot >= 0 && (!wait->running || cmd->loop.ending))
		room = locks_graph_add(&cmd->graph, wait);
	if (own.stat && (!wait->running || cmd->loop.ending)) {
		room &= locks_table_add(&cmd->table, wait);
	} else {
		loop_begin_event(&cmd->loop, !wait->running);
		if (options->json)
			locks_json_wait(&cmd->loop.out, wait);
		else
			locks_table_wait(&cmd->table, wait);
	}
	loop_end_event(&cmd->loop, !wait->running);
	return room;
}

static void locks_server(void *arg, const struct server_info *server)
{
	struct cmd_locks *cmd = arg;
	struct server_info shown = *server;

	/* Do not report missing fields of statements: waits have none of them. */
	shown.has = ~0u;
	cmd->server(arg, &shown);
	if (cmd->loop.options.verbose && server->engine->has_lwlocks &&
	    !(server->has & TARGET_HAS_LWLOCKS))
		output_string(&cmd->loop.err, "  LWLock waits are not traced: neither USDT "
			      "probes nor returns of PGSemaphoreLock() are available\n");
}

static void locks_begin(struct loop *loop)
{
	struct cmd_locks *cmd = (struct cmd_locks *)loop;

	cmd->table.start_ns = loop->start_ns;
	if (loop->options.json)
		return;
	banner_headline(loop);
	if (!own.stat)
		locks_table_header(&cmd->table);
	output_flush(&loop->out);
}

static int locks_table(struct cmd_locks *cmd)
{
	struct lwlock_count *counts = NULL;
	ssize_t n = cmd->loop.source->lwlocks(&cmd->loop, &counts);

	if (n < 0)
		return (int)n;
	locks_table_add_lwlocks(&cmd->table, counts, (size_t)n);
	free(counts);
	locks_table_sort(&cmd->table);
	if (cmd->loop.options.json)
		locks_json_sums(cmd);
	else
		locks_table_print(&cmd->table);
	cmd->lines = cmd->table.sums.n;
	return output_flush(&cmd->loop.out);
}

/* Write the graph. Return EXIT_OK or EXIT_FAILED. */
static int locks_graph(struct cmd_locks *cmd)
{
	struct output *out;
	int err;

	if (cmd->dot < 0)
		return EXIT_OK;
	out = malloc(sizeof(*out));
	if (!out)
		return message_no_memory();
	output_init(out, cmd->dot);
	locks_graph_print(&cmd->graph, out);
	err = output_flush(out);
	free(out);
	return message_output(&cmd->loop.err, err);
}

static int cmd_locks_finish(struct loop *loop, int *err)
{
	struct cmd_locks *cmd = (struct cmd_locks *)loop;

	if (!*err && own.stat)
		*err = locks_table(cmd);
	return locks_graph(cmd);
}

static void cmd_locks_summary(struct loop *loop, struct summary *summary)
{
	struct cmd_locks *cmd = (struct cmd_locks *)loop;

	tracing_summary(loop, summary);
	summary->printed = own.stat ? cmd->lines : loop->counted;
	summary->printed_noun = own.stat ? "lines" : NULL;
}

/* Open the file of --dot, so that a failure is reported before anything is traced. */
static int locks_dot(struct cmd_locks *cmd)
{
	const char *path = own.dot;
	struct error error = { .kind = ERROR_NONE };

	cmd->dot = -1;
	if (!path)
		return EXIT_OK;
	cmd->dot = open_output(path, true);
	if (cmd->dot >= 0)
		return EXIT_OK;
	error_set(&error, ERROR_OUTPUT, cmd->dot, path, NULL);
	return loop_refuse(&cmd->loop, &error);
}

static int cmd_locks_run(struct loop *loop)
{
	struct cmd_locks *cmd = (struct cmd_locks *)loop;
	struct tracer_config config;
	int status;

	loop->nap_ms = NAP_MS;
	loop->banner.subject = "lock waits";
	loop->banner.than = " longer than ";
	locks_table_init(&cmd->table, &loop->out, loop->options.wall);
	locks_graph_init(&cmd->graph);
	status = locks_dot(cmd);
	if (status != EXIT_OK)
		return status;
	/* The table is of all waits, unless a threshold is given. */
	if (own.stat && !loop->options.has_threshold)
		loop->options.threshold_ns = 0;
	tracing_config(loop, &config);
	config.sink.wait = locks_wait;
	config.sum_lwlocks = own.stat;
	cmd->server = config.server;
	config.server = locks_server;
	status = tracing_start(&cmd->loop, &config);
	return status == EXIT_OK ? loop_run(loop) : status;
}

static void cmd_locks_close(struct loop *loop)
{
	struct cmd_locks *cmd = (struct cmd_locks *)loop;

	locks_table_free(&cmd->table);
	locks_graph_free(&cmd->graph);
	if (cmd->dot >= 0)
		close(cmd->dot);
}

static const struct loop_ops cmd_locks_ops = {
	.size = sizeof(struct cmd_locks), .noun = "waits", .unfinished = "Still waiting:\n",
	.report = LOOP_REPORT_EVENTS,
	.run = cmd_locks_run, .close = cmd_locks_close, .begin = locks_begin,
	.drain = tracing_drain, .sleep = tracing_sleep, .running = tracing_running,
	.detach = tracing_detach, .finish = cmd_locks_finish, .summary = cmd_locks_summary,
};

static const struct option_row option_min_waits = {
	.letter = 'm', .name = "min", .arg = "MS",
	.help = "same as THRESHOLD; 0 selects all waits",
	.accepts = OPTION_DURATIONS,
	.set = option_set_minimum,
};

static const struct option_row option_count_waits = {
	.letter = 'n', .name = "count", .arg = "COUNT",
	.help = "stop after printing this many waits",
	.accepts = "expected a whole number",
	.set = option_set_number, .member = offsetof(struct options, count),
};

static const struct option_row option_stat = {
	.name = "stat",
	.help = "print totals per lock; THRESHOLD defaults to 0",
	OPTION_OWN(own.stat),
};

static const struct option_row option_dot = {
	.name = "dot", .arg = "FILE",
	.help = "write the graph of waits to FILE, for Graphviz",
	.accepts = "expected the path of a file",
	.set = option_set_word, .complete = option_complete_files, OPTION_OWN(own.dot),
};

static const struct option_row *const locks_options[] = {
	&option_min_waits, &option_pid, &option_path, &option_duration, &option_count_waits,
	&option_stat, &option_dot, &option_engine, &option_user, &option_db, &option_client,
	&option_app, &option_backend, &option_match, &option_container, &option_text,
	&option_redact, &option_wall, &option_json, &option_strict, &option_keep_privileges,
	&option_force, &option_threshold, &option_exe, &option_verbose, &option_help,
	&option_version, NULL
};

const struct command command_locks = {
	.name = "locks",
	.replays = true,
	.summary = "print lock waits: duration, lock, and who holds it",
	.invocation = "dbslower locks",
	.usage = "[ENGINE] [THRESHOLD] [OPTION...]",
	.about =
	"Print the lock waits in running database servers that take longer than THRESHOLD\n"
	"(default 1 ms): the lock, the waiting statement, and the holder with its\n"
	"statement. For PostgreSQL also the lock mode, LWLocks, deadlocks, and how long\n"
	"the holder has been idle in its transaction.\n",
	.examples =
	"  dbslower locks                        waits longer than 1 ms, as they end\n"
	"  dbslower locks 100 -p 1234            longer than 100 ms, of one server\n"
	"  dbslower locks --stat -d 60           totals per lock, for one minute\n"
	"  dbslower locks -d 10 --dot waits.dot  a graph of waits; draw it with dot -Tsvg\n"
	COMMAND_EXIT_STATUS,
	.words = WORDS_STATEMENTS,
	.threshold_ns = 1000000,
	.options = locks_options,
	.loop = &cmd_locks_ops,
	.run = loop_command,
};
