// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/format/escape.h"
#include "cli/option/complete.h"
#include "cli/suggest.h"
#include "cli/tables.h"
#include "host/elf_map.h"

/* Files of servers are mapped for reading, and their owners can truncate them meanwhile. */
static void main_sigbus(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != BUS_ADRERR || !elf_map_fault(info->si_addr))
		signal(sig, SIG_DFL);
}

/*
 * "help" prints the --help of the default command, "help COMMAND" its. @more: what follows it, or
 * NULL. Return the status.
 */
static int main_help(char *program, const char *name, const char *more)
{
	static struct output err;
	const struct command *command = name ? command_find(name) : command_table[0];
	char option[] = "--help", *words[] = { program, option, NULL };
	struct suggestion known = { .word = name, .len = name ? strlen(name) : 0 };

	if (command && !more)
		return command->run(command, 2, words);
	output_init(&err, STDERR_FILENO);
	if (command) {
		output_string(&err, "dbslower: help: too many arguments; specify one command\n");
		output_flush(&err);
		return EXIT_USAGE;
	}
	output_string(&err, *name ? "dbslower: " : "dbslower: ''");
	escape_terminal(&err, name, known.len, false);
	if (command_is_other(name)) {
		output_string(&err, ": " COMMAND_OTHER "\n");
		output_flush(&err);
		return EXIT_USAGE;
	}
	output_string(&err, ": unknown command; ");
	for (size_t i = 0; command_table[i]; i++)
		suggestion_add(&known, command_table[i]->name);
	suggestion_print(&known, "", &err);
	output_string(&err, known.best ? "\n" : "dbslower --help lists them\n");
	output_flush(&err);
	return EXIT_USAGE;
}

int main(int argc, char *argv[])
{
	struct sigaction action = { .sa_sigaction = main_sigbus, .sa_flags = SA_SIGINFO };
	const struct command *command;
	int fd, taken;

	/* No descriptor opened later must take the number of a standard one that is closed. */
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
	/* Texts of statements must not be in a core dump, nor readable by others of this user. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	sigaction(SIGBUS, &action, NULL);
	/* A shell that is not interactive starts what has an & with it ignored. */
	signal(SIGINT, SIG_DFL);
	if (complete_is_asked(argc, argv))
		return complete_run(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "--tables"))
		return tables_print();
	if (argc > 1 && !command_of_program(argv[0]) && !strcmp(argv[1], "help"))
		return main_help(argv[0], argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
	command = command_choose(argc, argv, &taken);
	return command->run(command, argc - taken, argv + taken);
}
