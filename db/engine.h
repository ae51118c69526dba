/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/: database servers. Directly in it: the types of an engine (here), the registry of all,
 * statements and their way from a record to the command, and the tracer. Rooms: discover, session,
 * count, locks, ps, overhead, selftest, recording; and one for each engine, with all that is true
 * of that only.
 * It prints nothing and knows no options. Only the registry, db/engines.c, names an engine.
 */

/*
 * Database engine descriptors: how to detect a server, which probes delimit a statement, and
 * where its values are. Everything here is constant data; db/engines.h lists the descriptors.
 */
#ifndef DB_ENGINE_H
#define DB_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sql/fingerprint.h"

/* Properties of a statement that can be read besides its text and times; bits. */
#define TARGET_HAS_ROWS	0x01		/* rows sent */
#define TARGET_HAS_STATUS	0x02
#define TARGET_HAS_USER	0x04
#define TARGET_HAS_DATABASE	0x08
#define TARGET_HAS_CLIENT	0x10
#define TARGET_HAS_WHO	0x1c		/* any of user, database and client */
#define TARGET_HAS_CHANGES	0x20	/* rows changed */
/* Prepared statements end in a function of their own. TARGET_HAS_PREPARED: it is probed. */
#define TARGET_LEAVES_PREPARED	0x40
#define TARGET_HAS_PREPARED	0x80
#define TARGET_HAS_PHASES	0x100
#define TARGET_HAS_SORTS	0x200
#define TARGET_HAS_SORT_SPACE	0x400	/* memory and disk space of sorts */
#define TARGET_HAS_LWLOCKS	0x800
#define TARGET_HAS_TRANSACTIONS	0x1000	/* which statements end them */

#define TARGET_HAS_EXAMINED	0x2000	/* rows read */
#define TARGET_HAS_LOCKED	0x4000	/* when it had its locks .. */
#define TARGET_HAS_LOCK_TIME	0x8000	/* .. or how long it waited for them */
#define TARGET_HAS_ERRNO	0x10000
#define TARGET_HAS_WAIT_ERRORS	0x20000	/* why a wait for a lock failed */
/* Statements by others than clients, whose ends are probed if the second bit is set. */
#define TARGET_HAS_EVENTS	0x40000
#define TARGET_ENDS_EVENTS	0x80000
#define TARGET_HAS_APPLIED	0x100000	/* by replicas .. */
#define TARGET_ENDS_APPLIED	0x200000
#define TARGET_HAS_ROW_CHANGES	0x400000	/* .. in row format */
#define TARGET_ENDS_ROW_CHANGES	0x800000
#define TARGET_HAS_INIT	0x1000000	/* of init_file */
#define TARGET_ENDS_INIT	0x2000000
#define TARGET_HAS_EXECUTED	0x4000000	/* the texts behind EXECUTE .. */
#define TARGET_HAS_FETCHED	0x8000000	/* .. and behind FETCH and MOVE */
#define TARGET_HAS_NESTED	0x10000000	/* statements in routines, .. */
#define TARGET_ENDS_NESTED	0x20000000	/* .. whose ends are probed */
/* Those that not all engines have. */
#define TARGET_NOT_OF_ALL \
	(TARGET_HAS_EXAMINED | TARGET_HAS_LOCKED | TARGET_HAS_LOCK_TIME | TARGET_HAS_ERRNO | \
	 TARGET_HAS_EVENTS | TARGET_HAS_APPLIED | TARGET_HAS_ROW_CHANGES | TARGET_HAS_INIT | \
	 TARGET_HAS_EXECUTED | TARGET_HAS_FETCHED | TARGET_HAS_NESTED)

/*
 * An argument of the BPF programs, which call it as arg_NAME(). Of consecutive rows with the same
 * name, the first one that can be resolved is used.
 */
struct engine_arg {
	const char *name;	/* "arg_text" */
	const char *only_with;	/* use the row only if the file has this symbol; NULL: always */
	int probe_arg;		/* number of the USDT probe's argument, from 1; 0: use ->spec */
	/*
	 * An argument spec as in usdt/spec.h. Numbers in braces are decoded from the instructions
	 * of exported functions, see usdt/accessor.h:
	 *	{NAME}		offset of the member that accessor NAME returns
	 *	{NAME+8}	that offset plus 8; any of these may be followed by +N or -N
	 *	{NAME:inner}	offset applied after the pointer that NAME follows
	 *	{NAME:expected}	constant that NAME compares with; alone, it is the argument
	 *	{NAME:element}	distance from NAME to the member of an array's first element, and ..
	 *	{NAME:index}	.. to the variable that is the index of the element it returns
	 *	{=NAME}		offset of the member that setter NAME stores to
	 *	{>NAME}		the same of the third argument of NAME
	 *	{<NAME}		offset of the member that NAME passes as first argument
	 *	{?NAME}		offset of the pointer whose member NAME compares with a constant
	 *	{*NAME:inner}	offset of the member that NAME returns of what a variable points to
	 *	{|NAME}		offset of the member of which NAME sets constant bits, which are ..
	 *	{|NAME:expected}	.. these
	 *	{&NAME}		offset of the member whose address NAME passes to the first call
	 *	{NAME>8}	offset of the member that NAME copies to 8 of its third argument
	 *	{NAME~PATTERN}	offset operand of the instruction of NAME that matches PATTERN
	 *	{^NAME}		operand with the return address of NAME, which has the site
	 *	%{owner}	register that holds the object, see engine_probe.owner; else %arg0
	 * NULL: always use ->fallback.
	 */
	const char *spec;
	int fallback;		/* value if it cannot be resolved; -1: do not use the probe */
};

/* Optional measurements that the user may ask for; bits of engine_probe.asked. */
#define ENGINE_WHY	0x01	/* the time breakdown */
#define ENGINE_PHASES	0x02	/* durations of the phases of a statement */
#define ENGINE_USE	0x04	/* resource usage */
#define ENGINE_TRANSACTIONS	0x08
#define ENGINE_IDENTITY	0x10	/* the client of a session */
#define ENGINE_NESTED	0x20	/* statements in routines */

/*
 * A probe for a step of a statement. Consecutive rows with the same step are alternatives: the
 * first one that the file has is used.
 */
struct engine_probe {
	const char *step;			/* "completion" */
	const char *program;			/* BPF program to attach */
	const char *provider, *probe;		/* the USDT probe, or: */
	const char *function;			/* entry of this function, or */
	const char *calls;			/* … each call to this function within it, … */
	bool locals;	/* … and in functions behind it that are not exported; … */
	const char *member;			/* … on the member that this accessor returns */
	const char *owner;	/* register that holds the object: "arg1"; NULL: see ->member */
	const char *only_with;			/* use only if the file has this symbol; or NULL */
	bool optional;				/* the server can be traced without this step */
	bool on_return;				/* return of the function; it has only %ret */
	uint32_t asked;				/* only if one of these was asked for; 0: always */
	uint32_t has;				/* TARGET_HAS_* that this probe provides */
	uint32_t needs;				/* those that a probe before it must provide */
	uint8_t backend;			/* enum event_backend of its sessions, if known */
	const struct engine_arg *args;		/* ends with a row without name; NULL: none */
};

/* A terminated list of argument rows. */
#define ENGINE_ARGS(...) ((const struct engine_arg[]){ __VA_ARGS__, { .name = NULL } })

/* Probes for all steps of a statement. */
struct engine_probe_set {
	const struct engine_probe *probes;
	size_t nprobes;
};

/* Symbols of a process that serves one session. They are used only if the file has all of them. */
struct engine_activity {
	const char *text;	/* variable: pointer to the statement's text; NULL: idle */
	const char *begun;	/* function that returns a variable: start, in us since 2000 */
	const char *client;	/* variable: pointer, not NULL if the process serves a client */
	const char *replication;	/* variable, one byte: the process serves replication */
	const char *application;	/* variable: pointer to the name of the client's */
	const char *transaction;	/* variable: pointer, not NULL in a transaction .. */
	const char *transaction_begun;	/* .. and function that returns its start, as ->begun */
};

struct elf;
struct process_memory;

/*
 * What is known of a server: ->bytes without pointers to what it owns, initially zero. It is found
 * in the file, copied for each user, and completed from a process.
 */
struct state_ops {
	size_t bytes;
	/*
	 * Find the symbols and offsets in @elf. @is_program is for process_read(). Return 0, or
	 * -ENOENT: they are not there.
	 */
	int (*find)(void *state, const struct elf *elf, bool (*is_program)(const char *name));
	/* Read the server's names from @memory of a process of release @version. May be NULL. */
	void (*names)(void *state, const struct process_memory *memory, const char *version);
};

struct lock_ops;
struct object_places;
struct ps_ops;
struct who;

/* A product that shares its probes with others of the engine, identified by its version string. */
struct engine_brand {
	const char *version_word;	/* substring of the version; "" matches any */
	const char *title;		/* "MariaDB" */
	const char *otel_system;	/* db.system.name of OpenTelemetry's conventions */
};

struct engine {
	const char *name;			/* in the output: "postgresql" */
	const char *const *words;		/* on the command line, NULL-terminated */
	const char *title;			/* "PostgreSQL" */
	const char *otel_system;		/* db.system.name of OpenTelemetry's conventions */
	/* Used if the version is known; the last one matches any. NULL: none. */
	const struct engine_brand *brands;
	enum fingerprint_dialect dialect;
	const char *const *executables;		/* file names of the server, NULL-terminated */
	/* Beginnings of the file names of the server as a library; NULL: there is none. */
	const char *const *embedded;
	const char *const *signature_symbols;	/* exported by the server only, NULL-terminated */
	/* The version string: after these words in .rodata, or in this variable; or NULL. */
	const char *version_words, *version_symbol;
	/* Alternatives: the first set whose required steps the file has is used. */
	const struct engine_probe_set *probe_sets;
	size_t nprobe_sets;
	/* Arguments that are the same at every probe; terminated as engine_probe.args. */
	const struct engine_arg *common;
	uint64_t timed_commands;		/* that run statements; bits by number & 63 */
	bool one_row_count;			/* rows sent and rows changed are one number */
	/* If a session is an object: find in @elf what it has where; else NULL. */
	void (*find_object)(const struct elf *elf, struct object_places *places);
	const struct lock_ops *lock_ops;	/* see db/locks/ops.h; NULL: locks are not traced */
	const struct ps_ops *ps_ops;	/* see db/ps/ops.h; NULL: sessions are not listed */
	bool has_lwlocks;			/* PostgreSQL's LWLocks */
	bool has_stages;			/* MySQL's, which breakdown_wait.event names */
	/*
	 * Return the wait event in which a commit waits for standbys in release @version, or 0:
	 * unknown. NULL: there are no wait events.
	 */
	uint32_t (*replication)(const char *version);
	/* Parse user, database and client from a process title; NULL: titles do not have them. */
	void (*identify)(const char *cmdline, size_t len, struct who *who);
	/* Return whether its transaction has failed, but is not at its end; NULL: the same. */
	bool (*aborted)(const char *title, size_t len);
	/*
	 * Read the names of a database and a user, of which 0 is none, from the catalog of the
	 * server that process @pid belongs to: foreign bytes, "" if unknown. NULL: it has none.
	 */
	void (*names)(uint32_t pid, uint32_t database, uint32_t user, struct who *who);
	const struct engine_activity *activity_variables;	/* NULL: unknown */
	/* Write a client's host and port to @client as a process title has them. */
	void (*client)(const char *host, const char *port, char *client, size_t size);
};

/*
 * Fallbacks for arguments that an engine does not describe: one row for each argument that may be
 * absent. Terminated as engine_probe.args.
 */
extern const struct engine_arg engine_defaults[];

#endif
