// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command plan: what a session executes, with the plans, read from the server's memory. */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/format/plan_print.h"
#include "cli/format/ps_table.h"
#include "cli/interval.h"
#include "cli/message.h"
#include "cli/option/table.h"
#include "cli/start.h"
#include "cli/tracing.h"
#include "db/ps/ps.h"
#include "db/sink.h"
#include "host/clock.h"

#define CLEAR		"\033[H\033[2J"	/* of a terminal: to the top left, and erase all */

struct cmd_plan {
	struct options options;
	struct output out, err;
	struct output notes;		/* servers that cannot be read, if none has it */
	struct ps_table table;		/* of the session's row */
	struct ps *ps;
	struct ps_list list;
	struct ps_session *session;	/* of ->list; NULL: not one */
	bool redraw;			/* the output is a terminal, and shows the last plan */
};

static void cmd_plan_error(void *arg, const struct error *error)
{
	struct cmd_plan *cmd = arg;

	message_error(&cmd->notes, error);
}

/* Say why there is no plan. Return the exit status. */
static int cmd_plan_refuse(struct cmd_plan *cmd)
{
	unsigned long long session = cmd->options.session;

	if (!cmd->list.n) {
		output_flush(&cmd->notes);
		output_printf(&cmd->err, "dbslower: session %llu: it does not exist, or has ended; "
			      "dbslower ps prints those that exist\n", session);
	} else if (!cmd->session) {
		output_printf(&cmd->err, "dbslower: session %llu: several servers have one; select "
			      "the server by -p or -x\n", session);
	} else {
		output_printf(&cmd->err, "dbslower: session %llu: its plan cannot be read; those "
			      "of PostgreSQL from 10 to 19 can\n", session);
	}
	output_flush(&cmd->err);
	return EXIT_FAILED;
}

/* Read the sessions with this ID. Return the exit status. */
static int sessions_read(struct cmd_plan *cmd, uint64_t id)
{
	struct error error = { .kind = ERROR_NONE };

	ps_list_free(&cmd->list);
	output_init(&cmd->notes, STDERR_FILENO);
	if (!ps_read(cmd->ps, id, &cmd->list, &error))
		return EXIT_OK;
	cmd_plan_error(cmd, &error);
	output_flush(&cmd->notes);
	error_clear(&error);
	return EXIT_FAILED;
}

/*
 * Read the session to ->session, or, if it is a parallel worker, the one of its server for which it
 * works. Return the exit status.
 */
static int cmd_plan_read(struct cmd_plan *cmd)
{
	int status = sessions_read(cmd, cmd->options.session);
	uint32_t server = 0;

	cmd->session = status == EXIT_OK && cmd->list.n == 1 ? cmd->list.session : NULL;
	if (!cmd->session || !cmd->session->leader)
		return status;
	server = cmd->session->server->pid;
	status = sessions_read(cmd, cmd->session->leader);
	cmd->session = NULL;
	for (size_t i = 0; status == EXIT_OK && i < cmd->list.n; i++)
		if (cmd->list.session[i].server->pid == server)
			cmd->session = &cmd->list.session[i];
	if (!cmd->session)
		ps_list_free(&cmd->list);
	return status;
}

static void session_print(struct cmd_plan *cmd, struct ps_session *s, uint64_t now_ns)
{
	const struct sink_config sink = { .redact = cmd->options.redact };
	struct output *out = &cmd->out;

	sink_session(&sink, s);
	if (cmd->options.json) {
		plan_json(out, s->plan, s->plan_len);
		output_char(out, '\n');
		return;
	}
	ps_table_header(&cmd->table);
	ps_table_row(&cmd->table, s, 0, now_ns);
	if (s->plan_len)
		plan_text(out, s->plan, s->plan_len);
	else
		output_string(out, "no statement with a plan is executed\n");
}

/* Read and print the plan once, for interval_repeat(). */
static int cmd_plan_once(void *arg)
{
	struct cmd_plan *cmd = arg;
	int status = cmd_plan_read(cmd);

	if (status != EXIT_OK)
		return status;
	if (cmd->session && cmd->session->plan) {
		if (cmd->redraw)
			output_string(&cmd->out, CLEAR);
		session_print(cmd, cmd->session, clock_ns(CLOCK_REALTIME));
	} else {
		status = cmd_plan_refuse(cmd);
	}
	ps_list_free(&cmd->list);
	return status == EXIT_OK ? interval_flush(&cmd->out, &cmd->err) : status;
}

static int cmd_plan_run(struct cmd_plan *cmd)
{
	const struct options *options = &cmd->options;
	struct winsize size;

	cmd->table.out = &cmd->out;
	ps_table_columns(&cmd->table, PS_DEFAULT_COLUMNS, &(struct suggestion){ .word = NULL });
	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		cmd->table.width = size.ws_col;
	cmd->redraw = options->interval_ns && !options->json && isatty(STDOUT_FILENO);
	cmd->ps = ps_open(&(struct ps_config){
		.servers = tracing_servers(options),
		.text_bytes = options->text_bytes,
		.arg = cmd, .error = cmd_plan_error,
	});
	return cmd->ps ? interval_repeat(options, cmd_plan_once, cmd) : message_no_memory();
}

static int cmd_plan(const struct command *command, int argc, char *argv[])
{
	struct cmd_plan *cmd = calloc(1, sizeof(*cmd));
	int status;

	if (!cmd)
		return message_no_memory();
	status = start_command(command, argc, argv, &cmd->options, &cmd->out, &cmd->err);
	if (status == START_GO)
		status = cmd_plan_run(cmd);
	ps_close(cmd->ps);
	free(cmd);
	return status;
}

static const struct option_row *const plan_options[] = {
	&option_pid, &option_path, &option_interval, &option_count_intervals, &option_engine,
	&option_redact, &option_json, &option_exe, &option_help, &option_version, NULL
};

static bool no_session(const struct options *opts)
{
	return !opts->session;
}

static const struct option_rule rule_session = {
	no_session, "plan", "requires the ID of a session",
	"dbslower ps prints them: dbslower plan 4711",
};

static const struct option_rule *const plan_rules[] = {
	&rule_session, &rule_count_intervals, NULL
};

const struct command command_plan = {
	.name = "plan",
	.summary = "print the plan of what a session executes, and how far it is",
	.invocation = "dbslower plan",
	.usage = "[ENGINE] SESSION [OPTION...]",
	.about =
	"Print what a session of PostgreSQL executes: its statement, those that functions\n"
	"execute in it, and open cursors, each with its plan as EXPLAIN has it, and what\n"
	"the nodes have done so far. They are read from the memory of the server; nothing\n"
	"is attached. SESSION: its ID, as dbslower ps prints it.\n",
	.examples =
	"  dbslower plan 4711                # of process 4711\n"
	"  dbslower plan 4711 -i 1           # again every second\n"
	"  dbslower plan 4711 --json         # as EXPLAIN (FORMAT JSON), for a viewer\n"
	"\n"
	"Exit status: 0 success; 1 failure; 2 usage error.\n",
	.words = WORDS_SESSION,
	.options = plan_options,
	.rules = plan_rules,
	.run = cmd_plan,
};
