// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/command.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/option.h"
#include "cli/version.h"

const struct command command_table[] = {
	{ COMMAND_SLOW, WORDS_STATEMENTS, "slow", NULL,
	  "statements slower than a threshold: the default", "dbslower",
	  "[mysql|postgres] [THRESHOLD] [OPTION...]",
	  "Prints the statements of running database servers that take longer than the\n"
	  "threshold: a number of ms, or one with a unit (ns, us, ms, s). It is 1 ms if\n"
	  "not given. Without a database, all servers that are found.\n",
	  "  dbslower                      everything slower than 1 ms\n"
	  "  dbslower postgres 30          PostgreSQL statements slower than 30 ms\n"
	  "  dbslower mysql 250us -d 60    MySQL and MariaDB, for a minute\n"
	  "  dbslower -m 0 --json          all statements, as JSON\n"
	  "  dbslower -p 1234 -t -o time,user,db,ms,status,query\n"
	  "\n"
	  "Exit status: 0 fine; 1 failed, or lost something under --strict; 2 usage.\n",
	  cmd_slow },
	{ COMMAND_LIST, WORDS_FREE, "list", "tplist",
	  "USDT probes of a file, a library or a process; also called tplist", "dbslower list",
	  "[-l LIB | -p PID | PATH] [OPTION...] [FILTER...]",
	  "Prints the USDT probes of a file (a word with a '/') or a library; of a process\n"
	  "and the libraries that it maps, or with -l of these only; without any, of the\n"
	  "database servers that are found. A filter is a piece of provider:name or a glob.\n"
	  "Files may be of any architecture; reading them takes no privileges.\n",
	  "  dbslower list                         those of the servers that run here\n"
	  "  dbslower list -l c                    those of libc\n"
	  "  dbslower list -v /usr/bin/python3 gc  with numbers of sites and arguments\n"
	  "  dbslower list -vv -p 1234 '*:query*'  with sites and arguments\n"
	  "\n"
	  "Exit status: 0 fine; 1 failed, or there are no such probes; 2 usage.\n",
	  cmd_list },
	{ COMMAND_STAT, WORDS_STATEMENTS, "stat", "dbstat",
	  "a histogram of how long statements take; also called dbstat", "dbslower stat",
	  "[mysql|postgres] [THRESHOLD] [OPTION...]",
	  "Counts the statements of running database servers by how long they take, in the\n"
	  "kernel, and prints a histogram and percentiles at the end or each interval. With\n"
	  "a threshold, only those that take longer.\n",
	  "  dbslower stat                 until Ctrl-C, in ms\n"
	  "  dbslower stat postgres -u     PostgreSQL, in microseconds\n"
	  "  dbslower stat -i 5 -n 3       three times five seconds\n"
	  "  dbslower stat --by command    select, insert, update… apart\n"
	  "  dbslower stat --wait futex -u    waits in that system call, inside statements\n"
	  "  dbslower stat -x /opt/db --start db:query__start --done db:query__done\n"
	  "\n"
	  "Exit status: 0 fine; 1 failed, or lost something under --strict; 2 usage.\n",
	  cmd_stat },
	{ COMMAND_TOP, WORDS_STATEMENTS, "top", NULL,
	  "statements grouped by fingerprint: calls, times, rows, errors", "dbslower top",
	  "[mysql|postgres] [THRESHOLD] [OPTION...]",
	  "Groups the statements of running database servers that differ in their values\n"
	  "only, and prints which cost most since the start: on a terminal again and\n"
	  "again, else at the end or each interval. With a threshold, only of those that\n"
	  "take longer. Statements that run for a second and more stand under the table.\n",
	  "  dbslower top                  until Ctrl-C\n"
	  "  dbslower top -d 60 --json     a minute, as JSON\n"
	  "  dbslower top postgres --sort p99 --lines 5\n"
	  "  dbslower top --sort lock      which wait longest for locks; any part of --why\n"
	  "\n"
	  "Exit status: 0 fine; 1 failed, or lost something under --strict; 2 usage.\n",
	  cmd_top },
	{ COMMAND_LOCKS, WORDS_STATEMENTS, "locks", NULL,
	  "waits for locks: how long, for what, and who holds it", "dbslower locks",
	  "[mysql|postgres] [THRESHOLD] [OPTION...]",
	  "Prints the waits for locks of running database servers that take longer than the\n"
	  "threshold (1 ms if not given): what was waited for, the statement that waited,\n"
	  "and who held the lock, with its statement. Of PostgreSQL also the mode, LWLocks,\n"
	  "deadlocks, and how long the holder has been idle in its transaction.\n",
	  "  dbslower locks                        waits longer than 1 ms, as they end\n"
	  "  dbslower locks 100 -p 1234            longer than 100 ms, of one server\n"
	  "  dbslower locks --stat -d 60           a table of what was waited for\n"
	  "  dbslower locks -d 10 --dot waits.dot  who waited for whom; dot -Tsvg draws it\n"
	  "\n"
	  "Exit status: 0 fine; 1 failed, or lost something under --strict; 2 usage.\n",
	  cmd_locks },
	{ COMMAND_TRACE, WORDS_PROBES, "trace", NULL,
	  "hits of any USDT probe or function of any file or process", "dbslower trace",
	  "[PATH | -l LIB | -p PID] [OPTION...] PROBE...",
	  "Prints the hits of USDT probes and functions. A probe is PROVIDER:PROBE or a\n"
	  "name, also as a glob, in the files that are named; or FILE:PROVIDER:PROBE,\n"
	  "FILE:FUNCTION; with u: (USDT), p: (function) or r: (its return) before it. In\n"
	  "the same word a filter and what to print can follow, in the manner of printf or\n"
	  "as values with commas; else all arguments of a USDT probe are printed.\n",
	  "  dbslower trace ./app test-app:test-probe\n"
	  "  dbslower trace -l c setjmp                the library libc.so.6\n"
	  "  dbslower trace -p 1234 '*:query*start'    whatever file it is in\n"
	  "  dbslower trace 'u:./app:shop:order (arg1 > 10) \"%d %s\", arg1, arg2'\n"
	  "  dbslower trace './app:work (arg1 == \"x\" || arg2 != 0) arg1:s, arg2'\n"
	  "  dbslower trace --ret /bin/bash 'readline \"%s\", retval'\n"
	  "  dbslower trace --count 'c:getenv arg1:s'  by the first argument, a string\n"
	  "  dbslower trace --hist arg3 -d 10 c:write  of the third argument\n"
	  "\n"
	  "Exit status: 0 fine; 1 failed, or lost something under --strict; 2 usage.\n",
	  cmd_trace },
	{ COMMAND_DOCTOR, WORDS_FREE, "doctor", NULL,
	  "what stands in the way of tracing here, and what to do about it", "dbslower doctor",
	  "[--self-test] [FILE...] [OPTION...]",
	  "Says what this kernel can do and what we may do; which servers run, and where\n"
	  "probes would go on each; and what to do about each obstacle. Nothing is\n"
	  "attached. Of files it says the same, which takes no privileges but to read them.\n"
	  "With --self-test it attaches to itself and proves that tracing works, in less\n"
	  "than a second and without a database.\n",
	  "  dbslower doctor                       this host and the servers that run on it\n"
	  "  dbslower doctor /usr/sbin/mariadbd    what can be seen of this server\n"
	  "  dbslower doctor --self-test           whether tracing works at all\n"
	  "  dbslower doctor --json                all of it, for a support ticket\n"
	  "\n"
	  "Exit status: 0 nothing stands in the way; 1 something does; 2 usage.\n",
	  cmd_doctor },
	{ .name = NULL },
};

const struct command *command_find(const char *name)
{
	for (const struct command *command = command_table; command->name; command++)
		if (!strcmp(command->name, name))
			return command;
	return NULL;
}

const struct command *command_choose(int argc, char *const argv[], int *taken)
{
	const char *path = argc > 0 ? argv[0] : "", *slash = strrchr(path, '/');
	const struct command *command;

	*taken = 0;
	for (command = command_table; command->name; command++)
		if (command->alias && !strcmp(command->alias, slash ? slash + 1 : path))
			return command;
	command = argc > 1 ? command_find(argv[1]) : NULL;
	if (!command)
		return command_table;
	*taken = 1;
	return command;
}

/* Answers --help or --version if one is asked for. Whether one was. */
static bool command_answer(const struct command *command, const struct options *options,
			   struct output *out)
{
	if (options->help)
		option_help(command, out);
	else if (options->version)
		output_printf(out, "dbslower %s\n", version_text);
	return options->help || options->version;
}

bool command_options(const struct command *command, int argc, char *argv[],
		     struct options *options, struct output *out, struct output *err, int *status)
{
	output_init(out, STDOUT_FILENO);
	output_init(err, STDERR_FILENO);
	/* Errors of write(2) instead, which are said. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	*status = EXIT_USAGE;
	if (option_parse(command, argc, argv, options, err)) {
		output_flush(err);
		return false;
	}
	if (command_answer(command, options, out)) {
		*status = message_output(err, output_flush(out));
		return false;
	}
	return true;
}
