// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command locks: waits for locks as they end, or a table of them, and who held what. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "cli/locks_print.h"
#include "cli/message.h"
#include "cli/loop.h"

#define SLEEP_MAX_MS	5000	/* how long a loss may stay unsaid */
#define NAP_MS		1	/* a holder is looked up while it holds */

struct cmd_locks {
	struct loop loop;		/* first: what it is called with */
	struct locks *locks;
	struct locks_view view;
	void (*server)(void *arg, const struct tracer_server *server);
	uint64_t shown, said;		/* waits; losses that were said */
	int dot;			/* file; -1: none */
	bool terminal, done, running, ending;
};

static void locks_wait(void *arg, const struct lock_wait *wait)
{
	struct cmd_locks *cmd = arg;
	const struct options *options = &cmd->loop.options;

	if (cmd->done)
		return;
	/* What was only asked for will come again. */
	if (cmd->dot >= 0 && (!wait->running || cmd->ending))
		locks_graph_wait(&cmd->view, wait);
	if (options->stat && (!wait->running || cmd->ending)) {
		locks_sum_wait(&cmd->view, wait);
	} else {
		if (wait->running && !cmd->running && !options->json)
			output_string(&cmd->loop.out, "Still waiting:\n");
		cmd->running = wait->running;
		locks_show_wait(&cmd->view, wait);
	}
	if (cmd->terminal)
		output_flush(&cmd->loop.out);
	if (!wait->running)
		cmd->done = ++cmd->shown == options->count;
}

static void locks_server(void *arg, const struct tracer_server *server)
{
	struct cmd_locks *cmd = arg;
	struct tracer_server shown = *server;

	/* What statements have is no matter here. */
	shown.has = ~0u;
	cmd->server(arg, &shown);
	if (cmd->loop.options.verbose && server->engine->has_lwlocks &&
	    !(server->has & TARGET_HAS_LWLOCKS))
		output_string(&cmd->loop.err, "  LWLock waits are not seen: this server has "
			      "neither USDT probes nor PGSemaphoreLock()\n");
}

static void locks_begin(struct loop *loop)
{
	struct cmd_locks *cmd = (struct cmd_locks *)loop;

	if (loop->options.json)
		return;
	loop_headline(loop);
	if (!loop->options.stat)
		locks_show_header(&cmd->view);
	output_flush(&loop->out);
}

static void locks_say_summary(struct cmd_locks *cmd, const struct summary *summary)
{
	output_printf(&cmd->loop.err, "dbslower: %llu waits, %llu shown",
		      (unsigned long long)summary->statements, (unsigned long long)cmd->shown);
	message_losses(&cmd->loop.err, summary);
	output_flush(&cmd->loop.err);
}

/* Says what was lost since it was last said. */
static void locks_report(struct cmd_locks *cmd)
{
	struct summary summary;

	locks_summary(cmd->locks, &summary);
	if (summary.ring_full + summary.table_full == cmd->said)
		return;
	cmd->said = summary.ring_full + summary.table_full;
	locks_say_summary(cmd, &summary);
}

static int locks_loop(struct cmd_locks *cmd)
{
	uint64_t reported_ns = loop_now();
	int filled, fd, err = 0;

	while (!cmd->done && !err) {
		filled = locks_drain(cmd->locks);
		if (cmd->loop.asked)
			locks_running(cmd->locks);
		cmd->loop.asked = false;
		err = output_flush(&cmd->loop.out);
		if (loop_now() - reported_ns > 1000000000u) {
			reported_ns = loop_now();
			locks_report(cmd);
		}
		if (cmd->done || err)
			break;
		fd = filled ? -EAGAIN : locks_sleep(cmd->locks);
		cmd->done = loop_wait(&cmd->loop, fd >= 0 ? fd : -1,
				      fd >= 0 ? SLEEP_MAX_MS : NAP_MS);
	}
	return err;
}

static int locks_table(struct cmd_locks *cmd)
{
	struct lwlock_count *counts;
	ssize_t n = locks_lwlocks(cmd->locks, &counts);

	if (n < 0)
		return (int)n;
	for (ssize_t i = 0; i < n; i++)
		cmd->shown += counts[i].sum.count;
	locks_show_sums(&cmd->view, counts, (size_t)n);
	free(counts);
	return output_flush(&cmd->loop.out);
}

/* Writes the graph. EXIT_OK or EXIT_FAILED. */
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
	locks_show_graph(&cmd->view, out);
	err = output_flush(out);
	free(out);
	return message_output(&cmd->loop.err, err);
}

static int locks_end(struct cmd_locks *cmd, int err)
{
	const struct options *options = &cmd->loop.options;
	struct summary summary;
	int graph, status;

	locks_detach(cmd->locks);
	cmd->done = err || (options->count && cmd->shown >= options->count);
	while (locks_drain(cmd->locks) > 0)
		continue;
	cmd->ending = true;
	locks_running(cmd->locks);
	if (!err && options->stat)
		err = locks_table(cmd);
	graph = locks_graph(cmd);
	locks_summary(cmd->locks, &summary);
	summary.table_full += cmd->view.unsummed;
	summary.printed = cmd->shown;
	if (options->json && !err)
		locks_show_summary(&cmd->view, &summary);
	if (!err)
		err = output_flush(&cmd->loop.out);
	status = message_output(&cmd->loop.err, err);
	if (err != -EPIPE)
		locks_say_summary(cmd, &summary);
	if (status == EXIT_OK && options->strict && message_lost(&summary))
		status = EXIT_FAILED;
	return status == EXIT_OK ? graph : status;
}

/* The file of --dot: before anything is traced it is known whether it can be written. */
static int locks_dot(struct cmd_locks *cmd)
{
	const char *path = cmd->loop.options.dot;
	struct error error = { .kind = ERROR_NONE };

	if (!path)
		return EXIT_OK;
	cmd->dot = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
	if (cmd->dot >= 0)
		return EXIT_OK;
	error_set(&error, ERROR_FILE, -errno, path, NULL);
	message_error(&cmd->loop.err, &error);
	output_flush(&cmd->loop.err);
	return EXIT_FAILED;
}

static int locks_run(struct cmd_locks *cmd)
{
	struct loop *loop = &cmd->loop;
	struct locks_config config = { .sum_lwlocks = loop->options.stat, .wait = locks_wait };
	struct error error = { .kind = ERROR_NONE };
	struct sandbox sandbox;
	int status = locks_dot(cmd);

	if (status != EXIT_OK)
		return status;
	loop_config(loop, &config.tracer);
	cmd->server = config.tracer.server;
	config.tracer.server = locks_server;
	if (locks_open(&cmd->locks, &config, &error)) {
		message_error(&loop->err, &error);
		output_flush(&loop->err);
		error_clear(&error);
		return EXIT_FAILED;
	}
	status = loop_ready(loop);
	if (status != EXIT_OK)
		return status;
	if (!loop->options.keep_privileges) {
		locks_sandbox(cmd->locks, &sandbox);
		loop_sandbox(loop, &sandbox);
	}
	loop_started(loop, locks_features(cmd->locks), locks_targets(cmd->locks));
	return locks_end(cmd, locks_loop(cmd));
}

int cmd_locks(const struct command *command, int argc, char *argv[])
{
	struct cmd_locks *cmd = calloc(1, sizeof(*cmd));
	struct loop *loop;
	int ret = EXIT_FAILED;

	if (!cmd)
		return message_no_memory();
	loop = &cmd->loop;
	cmd->dot = -1;
	loop->begin = locks_begin;
	loop->subject = "lock waits";
	loop->than = " longer than ";
	cmd->terminal = isatty(STDOUT_FILENO);
	if (loop_options(loop, command, argc, argv, &ret)) {
		cmd->view = (struct locks_view){
			.out = &loop->out, .json = loop->options.json,
			.wall = loop->options.wall, .start_ns = loop->start_ns,
		};
		ret = locks_run(cmd);
	}
	locks_close(cmd->locks);
	locks_view_free(&cmd->view);
	if (cmd->dot >= 0)
		close(cmd->dot);
	free(cmd);
	return ret;
}
