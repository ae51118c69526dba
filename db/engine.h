/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What there is to know about a database server, as a table: how it is
 * recognised, and which probes and functions mark a statement's steps.
 */
#ifndef DB_ENGINE_H
#define DB_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of a statement besides its text and times, as bits. */
#define TARGET_HAS_ROWS	0x01
#define TARGET_HAS_STATUS	0x02
#define TARGET_HAS_USER	0x04
#define TARGET_HAS_DATABASE	0x08
#define TARGET_HAS_CLIENT	0x10
#define TARGET_HAS_WHO	0x1c	/* any of these three */
#define TARGET_HAS_CHANGES	0x20	/* rows that were changed; those that were sent are ROWS */
/* The server may leave prepared statements to another place, and that place is known. */
#define TARGET_LEAVES_PREPARED	0x40
#define TARGET_HAS_PREPARED	0x80
#define TARGET_HAS_PHASES	0x100
#define TARGET_HAS_SORTS	0x200
#define TARGET_HAS_SORT_SPACE	0x400	/* and what they took */
#define TARGET_HAS_LIGHT	0x800	/* waits for PostgreSQL's LWLocks */

/*
 * What a program of bpf/ calls as arg_NAME(). Of the rows of one name the first is used that can
 * be.
 */
struct engine_arg {
	const char *name;	/* "arg_text" */
	const char *only_with;	/* a symbol that the file must have; NULL: none */
	int probe_arg;		/* the USDT probe's argument of that number, from 1 */
	/*
	 * Or a spec of usdt/spec.h's own grammar, with numbers that are read off the instructions
	 * of exported functions (usdt/accessor.h):
	 *	{NAME}		the offset of the member that accessor NAME hands out
	 *	{NAME+8}	eight bytes behind it
	 *	{NAME:inner}	the offset behind the pointer that it follows
	 *	{NAME:expected}	the value that it compares with; alone, it is the argument
	 *	{=NAME}		the offset of the member that setter NAME sets
	 *	{?NAME}		the offset of the pointer whose member NAME compares with a constant
	 *	{NAME~PATTERN}	the offset in an instruction of NAME
	 *	%{owner}	the register with the object, see engine_probe.member, or %arg0
	 * NULL: the fallback.
	 */
	const char *spec;
	int fallback;		/* where that cannot be resolved; -1: the probe is useless then */
};

/* What is asked for, as bits: where statements' time goes, their phases, and what they use. */
#define ENGINE_WHY	0x01
#define ENGINE_PHASES	0x02
#define ENGINE_USE	0x04

/*
 * One way to see a step of a statement. Of the rows of one step the first that the file has is
 * used.
 */
struct engine_probe {
	const char *step;			/* "completion"; its rows follow each other */
	const char *program;			/* in bpf/ */
	const char *provider, *probe;		/* a USDT probe, or: */
	const char *function;			/* a function's symbol: its entry, or */
	const char *calls;			/* … each call of this one in it, … */
	const char *member;			/* … of a member, that of this accessor; NULL: any */
	const char *only_with;			/* a symbol that the file must have; NULL: none */
	bool optional;				/* the server can be traced without this step */
	bool on_return;				/* … of the function, without arguments */
	uint32_t asked;				/* only where one of these is asked for; 0: always */
	uint32_t has;				/* TARGET_SHOWS_… of the step itself */
	const struct engine_arg *args;		/* ends with one of no name; NULL: none */
};

/* A list of rows for ->args. */
#define ENGINE_ARGS(...) ((const struct engine_arg[]){ __VA_ARGS__, { .name = NULL } })

/* Who is connected, as far as it is known; the strings are "" where it is not. */
struct identity {
	char user[64], database[64], client[96];
};

/* Where a process of the server keeps what it does; all of them are needed. */
struct engine_activity {
	const char *text;	/* variable: pointer to the statement's text; NULL: none runs */
	const char *begun;	/* function that returns a variable: when, in us since 2000 */
	const char *client;	/* variable: a pointer, not NULL where a client is served */
	const char *replication;	/* variable of a byte: it serves replication */
};

struct engine {
	const char *name;			/* in JSON and on the command line: "postgresql" */
	const char *title;			/* "PostgreSQL" */
	/* Its name where its version has the word @variant, and where not; NULL: the title. */
	const char *variant, *plain;
	const char *const *executables;		/* file names of the server, NULL-terminated */
	const char *const *signature_symbols;		/* exported symbols that only the server has */
	/* Where its version is: behind these words in the file, or in this variable of it. */
	const char *version_words, *version_symbol;
	const struct engine_probe *probes;
	size_t nprobes;
	uint64_t timed_commands;		/* constant of bpf/ */
	bool one_row_count;			/* of rows that were sent and that were changed */
	/* Values that every program of the file may ask for, whatever its probe. */
	const struct engine_arg *common;	/* as engine_probe.args */
	/* Reads who is connected off a process's command line; NULL: it is not there. */
	void (*identify)(const char *cmdline, size_t len, struct identity *identity);
	const struct engine_activity *activity;	/* NULL: it is not known */
	/*
	 * Where a session is an object, functions that return where it has its text;
	 * NULL-terminated.
	 */
	const char *const *query_accessors;
	/* How a client's host and port are written, as in a title. */
	void (*client)(const char *host, const char *port, char *client, size_t size);
};

/* What holds where an engine says nothing: a row for each argument of bpf/ that may be absent. */
extern const struct engine_arg engine_defaults[];	/* as engine_probe.args */

extern const struct engine *const engine_table[];	/* NULL-terminated */

/* Whether there is an engine called @name ("postgresql"). Several can share a name. */
bool engine_known(const char *name);

/* Return whether @file (no directory) is the name of a server of one of the engines. */
bool engine_is_executable(const char *file);

/* The name of the engines whose server's file is called @file (no folder), or NULL. */
const char *engine_of_file(const char *file);

#endif
