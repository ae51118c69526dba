// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command replay: another command on a recording. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/format/escape.h"
#include "cli/message.h"
#include "cli/option/table.h"
#include "cli/replay.h"
#include "cli/start.h"

#define OPTIONS_MAX	64

/* Print @text on standard error. Return EXIT_USAGE. */
static int replay_refuse(struct output *err, const char *word, const char *text)
{
	output_string(err, "dbslower: ");
	escape_terminal(err, word, strlen(word), false);
	output_printf(err, ": %s\n", text);
	output_flush(err);
	return EXIT_USAGE;
}

/* List the options of @command that are of use for a recording in @options. */
static void replay_options(const struct command *command, const struct option_row **options)
{
	size_t n = 0;

	options[n++] = &option_since;
	options[n++] = &option_until;
	for (size_t i = 0; command->options[i] && n < OPTIONS_MAX; i++)
		if (!command->options[i]->live)
			options[n++] = command->options[i];
	options[n] = NULL;
}

/* Run @command on the recording @path, with the @argc words at @argv, of which the first is any. */
static int replay_command(const struct command *command, const char *path, int argc, char *argv[])
{
	const struct option_row *options[OPTIONS_MAX + 1];
	struct command replayed = *command;
	char invocation[64];

	snprintf(invocation, sizeof(invocation), "dbslower replay FILE %s", command->name);
	replay_options(command, options);
	replayed.source = &source_recording;
	replayed.recording = path;
	replayed.invocation = invocation;
	replayed.options = options;
	replayed.about = "Print what a recording of dbslower record has, as this command prints it "
			 "live.\n";
	replayed.examples = "";
	return command->run(&replayed, argc, argv);
}

/* Return why another command is refused. */
static const char *replay_others(void)
{
	static char words[256];
	const char *before = "";
	int at = snprintf(words, sizeof(words), "cannot be replayed; specify ");

	for (size_t i = 0; command_table[i]; i++) {
		if (!command_table[i]->replays || (size_t)at >= sizeof(words))
			continue;
		at += snprintf(words + at, sizeof(words) - (size_t)at, "%s%s", before,
			       command_table[i]->name);
		before = " or ";
	}
	return words;
}

static int replay_run(const struct command *command, int argc, char *argv[])
{
	static struct output out, err;
	static struct options options;
	const struct command *chosen = command_find("slow");
	int status;

	/* Without a file, this is --help or an error. */
	if (argc < 2 || *argv[1] == '-' || !*argv[1]) {
		status = start_command(command, argc, argv, &options, &out, &err);
		return status == START_GO ? replay_refuse(&err, "replay", "no recording; specify "
							  "FILE first: dbslower replay FILE") :
					    status;
	}
	output_init(&err, STDERR_FILENO);
	if (argc > 2 && command_find(argv[2])) {
		chosen = command_find(argv[2]);
		if (!chosen->replays)
			return replay_refuse(&err, argv[2], replay_others());
		return replay_command(chosen, argv[1], argc - 2, argv + 2);
	}
	if (!chosen)
		return replay_refuse(&err, "slow", "not in this file; specify a command");
	return replay_command(chosen, argv[1], argc - 1, argv + 1);
}

static const struct option_row *const replay_rows[] = {
	&option_since, &option_until, &option_help, &option_version, NULL
};

const struct command command_replay = {
	.name = "replay",
	.summary = "print a recording as slow, stat, top, ... do",
	.invocation = "dbslower replay",
	.usage = "FILE [COMMAND] [OPTION...]",
	.about =
	"Run COMMAND (such as top or locks; default slow) on a recording of dbslower\n"
	"record in place of this host: without privileges, on any machine. Its options\n"
	"are those of the live command but for those that select processes;\n"
	"dbslower replay FILE COMMAND --help lists them.\n",
	.examples =
	"  dbslower replay incident.rec 100             statements longer than 100 ms\n"
	"  dbslower replay incident.rec top --sort p99  by fingerprint\n"
	"  dbslower replay incident.rec locks --since 14:05 --until 14:10\n"
	"  dbslower replay incident.rec --json --match orders\n"
	"\n"
	"Exit status: 0 success; 1 failure; 2 usage error.\n",
	.words = WORDS_FREE,
	.options = replay_rows,
	.run = replay_run,
};
