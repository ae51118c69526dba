/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands, one file each, and the table that they are chosen from. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>

/* Exit statuses, the same for all. */
#define EXIT_OK		0
#define EXIT_FAILED	1	/* it could not do its work, or lost something under --strict */
#define EXIT_USAGE	2

struct options;
struct output;

/* The command that a row of the options belongs to: one bit each. */
enum command_id {
	COMMAND_SLOW = 1 << 0,
	COMMAND_LIST = 1 << 1,
	COMMAND_STAT = 1 << 2,
	COMMAND_TOP = 1 << 3,
	COMMAND_TRACE = 1 << 4,
	COMMAND_DOCTOR = 1 << 5,
	COMMAND_LOCKS = 1 << 6,
};

/* What the words of a command line are that are no options. */
enum command_words {
	WORDS_STATEMENTS,	/* a database and a threshold */
	WORDS_FREE,		/* files, which have a '/', and anything else */
	WORDS_PROBES,		/* files, and probes as trace_spec.h has them */
};

struct command {
	enum command_id id;
	enum command_words words;
	const char *name;	/* the first word that chooses it */
	const char *alias;	/* a link of this name is this command; NULL: none */
	const char *summary;	/* for the list of commands */
	const char *invocation;	/* how it is called, for messages: "dbslower list" */
	const char *usage, *about, *examples;	/* texts of --help */
	/* Runs it: @argv[0] is any name. The exit status. */
	int (*run)(const struct command *command, int argc, char *argv[]);
};

extern const struct command command_table[];	/* the default first; the last has no name */

/*
 * The command that @argv asks for: by the name that the program was called by, else by the
 * first word, else the default. *@taken is the number of words that this took.
 */
const struct command *command_choose(int argc, char *const argv[], int *taken);

/* The command that the word @name chooses, or NULL. */
const struct command *command_find(const char *name);

/*
 * What each command begins with: opens @out and @err on the standard streams, parses the command
 * line, and answers --help and --version. True: go on; else the exit status is in *@status, and all
 * was said. The options borrow @argv.
 */
bool command_options(const struct command *command, int argc, char *argv[],
		     struct options *options, struct output *out, struct output *err, int *status);

/* Prints statements slower than a threshold. */
int cmd_slow(const struct command *command, int argc, char *argv[]);

/* Prints histograms of how long statements take. */
int cmd_stat(const struct command *command, int argc, char *argv[]);

/* Prints statements grouped by fingerprint. */
int cmd_top(const struct command *command, int argc, char *argv[]);

/* Prints waits for locks, and who holds them. */
int cmd_locks(const struct command *command, int argc, char *argv[]);

/* Prints hits of any probes. */
int cmd_trace(const struct command *command, int argc, char *argv[]);

/* Prints the USDT probes of files, processes or servers. */
int cmd_list(const struct command *command, int argc, char *argv[]);

/* Says what stands in the way of tracing, or proves that nothing does. */
int cmd_doctor(const struct command *command, int argc, char *argv[]);

#endif
