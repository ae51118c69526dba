/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli/: the command line and the output. Directly in it: main, the commands (cmd_NAME.c), the loop,
 * the sources of events, output and messages. Rooms: option, format, top, trace, report, doctor.
 * It does not call bpf(2).
 */

/* The commands: one file each, with its row, and the table of those that are linked. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of all commands. */
#define EXIT_OK		0
#define EXIT_FAILED	1	/* failure, or losses with --strict */
#define EXIT_USAGE	2

/* The end of --help for commands that trace. */
#define COMMAND_EXIT_STATUS \
	"\n" \
	"Exit status: 0 success; 1 failure, or losses with --strict; 2 usage error.\n"

struct loop_ops;
struct option_row;
struct option_rule;
struct source;

/* The meaning of words that are not options. */
enum command_words {
	WORDS_STATEMENTS,	/* a database and a threshold */
	WORDS_RECORDING,		/* a file, then the same */
	WORDS_SESSION,		/* a database and the number of a session */
	WORDS_FREE,		/* files, which have a '/', and anything else */
	WORDS_PROBES,		/* files, and probes as in cli/trace/parse.h */
};

struct command {
	const char *name;		/* the first word that selects it */
	const char *alias;		/* a program name that selects it; NULL: none */
	const char *summary;		/* for the list of commands */
	const char *invocation;		/* for messages: "dbslower list" */
	const char *usage, *about, *examples;	/* of --help */
	enum command_words words;
	unsigned int paths;		/* files that may be given; 0: OPTION_PATHS */
	uint64_t threshold_ns;		/* unless one is given */
	uint32_t text_bytes;		/* default of --text; 0: that of most */
	bool transactions;		/* its columns are those of transactions */
	const struct option_row *const *options;	/* in the order of --help; ends in NULL */
	const struct option_rule *const *rules;	/* the first broken one counts; the same, or NULL */
	const struct loop_ops *loop;	/* of a command that traces, for loop_command() */
	bool replays;			/* it can also replay a recording; then, while it does: */
	const struct source *source;	/* the recording; NULL: live */
	const char *recording;		/* its path */
	/* Run it; @argv[0] is any name. Return the exit status. */
	int (*run)(const struct command *command, int argc, char *argv[]);
};

/* The linked commands, the default one first; ends in NULL. The Makefile writes it. */
extern const struct command *const command_table[];

/*
 * Return the command that @argv selects: by the program's name, else by the first word, else the
 * default one. Set *@taken to the number of words that were used for this.
 */
const struct command *command_choose(int argc, char *const argv[], int *taken);

/* Return the command whose alias is the file name of @path, or NULL. */
const struct command *command_of_program(const char *path);

/* Return the command called @name, or NULL. */
const struct command *command_find(const char *name);

/* The names of the commands that were not linked, each between blanks, and what is said of one. */
extern const char command_others[];
#define COMMAND_OTHER	"this file was built without it; dbslower --help lists the commands it has"

/* Return whether @word is one of them. */
bool command_is_other(const char *word);

#endif
