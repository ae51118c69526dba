// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command report: a recording as one HTML page. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/command.h"
#include "cli/format/short.h"
#include "cli/message.h"
#include "cli/option/table.h"
#include "cli/replay.h"
#include "cli/report/report.h"
#include "cli/start.h"
#include "cli/tracing.h"
#include "cli/version.h"

struct cmd_report {
	struct options options;
	struct output out, err;
	struct replay *replay;
	struct report *report;
};

/*
 * Return the time of an event by the host's clock or, if that was set, by the time since the start:
 * the page has columns of equal time, as --since counts it.
 */
static uint64_t cmd_report_time(const struct cmd_report *cmd, uint64_t start_ns, uint64_t wall_ns)
{
	uint64_t even_ns = replay_wall(cmd->replay, start_ns);

	if (!wall_ns || (wall_ns < even_ns + NS_PER_S && even_ns < wall_ns + NS_PER_S))
		return wall_ns;
	return even_ns;
}

static bool cmd_report_statement(void *arg, const struct statement *statement)
{
	const struct cmd_report *cmd = arg;
	struct statement s = *statement;

	s.wall_ns = cmd_report_time(cmd, s.start_ns, s.wall_ns);
	report_statement(cmd->report, &s);
	return true;
}

static bool cmd_report_wait(void *arg, const struct lock_wait *wait)
{
	const struct cmd_report *cmd = arg;
	struct lock_wait w = *wait;

	w.wall_ns = cmd_report_time(cmd, w.start_ns, w.wall_ns);
	report_wait(cmd->report, &w);
	return true;
}

static void cmd_report_server(void *arg, const struct server_info *server)
{
	report_server(((struct cmd_report *)arg)->report, server->title, server->version,
		      server->npids ? server->pids[0] : 0, server->path, NULL);
}

/* Create the page's head from what the recording says of itself. */
static struct report *cmd_report_new(struct cmd_report *cmd, uint64_t since_ns, uint64_t until_ns)
{
	const struct replay_info *info = replay_info(cmd->replay);
	char threshold[SHORT_TEXT];
	uint64_t threshold_ns = info->threshold_ns > cmd->options.threshold_ns ?
				info->threshold_ns : cmd->options.threshold_ns;
	const struct report_config config = {
		.host = info->host, .version = version_text, .source = cmd->options.file,
		.threshold = threshold_ns ? short_duration(threshold, threshold_ns) :
					    "none: all statements",
		.begin_ns = replay_wall(cmd->replay, since_ns > info->start_ns ? since_ns :
						     info->start_ns),
		.end_ns = replay_wall(cmd->replay, until_ns < info->end_ns ? until_ns :
						   info->end_ns),
	};

	return report_new(&config);
}

/* Add all events once. Return 0 or -errno. */
static int cmd_report_drain(struct cmd_report *cmd)
{
	int ret;

	do
		ret = replay_drain(cmd->replay, UINT64_MAX);
	while (ret > 0);
	replay_running(cmd->replay);
	return ret;
}

/* Add all events. Return 0 or -errno. */
static int cmd_report_read(struct cmd_report *cmd, uint64_t since_ns, uint64_t until_ns)
{
	const struct options *options = &cmd->options;
	const struct replay_config config = {
		.engine = options->engine, .threshold_ns = options->threshold_ns,
		.why = true, .use = true, .phases = true,
		.since_ns = since_ns, .until_ns = until_ns,
		.sink = {
			.filter = tracing_filter(options), .redact = options->redact,
			.nested = true, .arg = cmd,
			.statement = cmd_report_statement, .wait = cmd_report_wait,
		},
		.arg = cmd, .server = cmd_report_server,
	};
	struct summary summary;
	int ret = replay_start(cmd->replay, &config);

	if (ret)
		return ret;
	ret = cmd_report_drain(cmd);
	if (ret)
		return ret;
	ret = report_again(cmd->report);
	if (ret)
		return ret;
	replay_rewind(cmd->replay);
	ret = cmd_report_drain(cmd);
	replay_summary(cmd->replay, &summary, false);
	report_losses(cmd->report, &summary);
	return ret;
}

/* Add what is missing, which is also reported on standard error. */
static void cmd_report_damage(struct cmd_report *cmd)
{
	const struct reader_damage *damage = replay_damage(cmd->replay);

	if (damage->missing || damage->broken)
		report_damage(cmd->report, "Parts of the recording are missing or damaged; their "
			      "events are not in this report.");
	if (damage->unended)
		report_damage(cmd->report, "The recording has no end: the recorder was killed, or "
			      "was still running.");
	replay_report(cmd->replay, cmd->options.file, &cmd->err);
}

/* Write the page of the recording, which is open. Return the exit status. */
static int cmd_report_write(struct cmd_report *cmd)
{
	uint64_t since_ns, until_ns;
	int status = replay_read_path(cmd->replay, cmd->options.file, 0, NULL, &cmd->err), err;

	if (status == EXIT_OK)
		status = replay_times(cmd->replay, &since_ns, &until_ns, &cmd->err);
	if (status != EXIT_OK)
		return status;
	cmd->report = cmd_report_new(cmd, since_ns, until_ns);
	if (!cmd->report)
		return message_no_memory();
	err = cmd_report_read(cmd, since_ns, until_ns);
	if (err)
		return message_unread(&cmd->err, cmd->options.file, err);
	cmd_report_damage(cmd);
	err = report_write(cmd->report, &cmd->out);
	if (!err)
		err = output_flush(&cmd->out);
	return message_output(&cmd->err, err);
}

static int cmd_report_check(struct cmd_report *cmd)
{
	const char *cause = !cmd->options.file ?
		"no recording; specify one: dbslower report FILE >report.html" :
		isatty(STDOUT_FILENO) ?
		"standard output is a terminal; redirect it: dbslower report FILE >report.html" :
		NULL;

	if (!cause)
		return EXIT_OK;
	output_printf(&cmd->err, "dbslower: report: %s\n", cause);
	output_flush(&cmd->err);
	return EXIT_USAGE;
}

/* Return the exit status. */
static int cmd_report_page(struct cmd_report *cmd)
{
	int status = cmd_report_check(cmd);

	if (status == EXIT_OK)
		status = replay_open_path(&cmd->replay, cmd->options.file, &cmd->err);
	return status == EXIT_OK ? cmd_report_write(cmd) : status;
}

static int cmd_report_run(const struct command *command, int argc, char *argv[])
{
	struct cmd_report *cmd = calloc(1, sizeof(*cmd));
	int status;

	if (!cmd)
		return message_no_memory();
	status = start_command(command, argc, argv, &cmd->options, &cmd->out, &cmd->err);
	if (status == START_GO)
		status = cmd_report_page(cmd);
	report_free(cmd->report);
	replay_close(cmd->replay);
	free(cmd);
	return status;
}

static const struct option_row *const cmd_report_options[] = {
	&option_min, &option_since, &option_until, &option_engine, &option_user, &option_db,
	&option_client, &option_app, &option_backend, &option_match, &option_container,
	&option_redact, &option_threshold, &option_help, &option_version, NULL
};

const struct command command_report = {
	.name = "report",
	.summary = "write a recording as an HTML page",
	.invocation = "dbslower report",
	.usage = "FILE [ENGINE] [THRESHOLD] [OPTION...]",
	.about =
	"Write what dbslower record has recorded in FILE to standard output, as one HTML\n"
	"page that needs no network: latency over time, time by part, statements by\n"
	"fingerprint, slow statements, lock waits. With THRESHOLD, only what took longer.\n",
	.examples =
	"  dbslower report incident.rec >incident.html\n"
	"  dbslower report incident.rec --since 14:05 --until 14:10 >incident.html\n"
	"  dbslower report incident.rec --redact >incident.html\n"
	"\n"
	"Exit status: 0 success; 1 failure; 2 usage error.\n",
	.words = WORDS_RECORDING,
	.options = cmd_report_options,
	.run = cmd_report_run,
};
