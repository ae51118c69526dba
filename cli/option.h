/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line, of whichever command. */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "cli/fields.h"
#include "cli/command.h"
#include "cli/output.h"
#include "sql/regex.h"
#include "db/top.h"

#define OPTION_PIDS 64
#define OPTION_PATHS 16
#define OPTION_WORDS 16
#define OPTION_TEXT_MIN 16
#define OPTION_TEXT_MAX (1024 * 1024)

struct options {
	const char *engine;		/* "postgresql", "mysql"; NULL: whatever is found */
	uint64_t threshold_ns;		/* 0: all statements */
	uint32_t pids[OPTION_PIDS];	/* each once */
	unsigned int pid_count;
	const char *paths[OPTION_PATHS];	/* borrowed from argv */
	unsigned int path_count;
	const char *words[OPTION_WORDS];	/* those that are no files; borrowed */
	unsigned int word_count;
	const char *start, *done;	/* USDT probes around a statement; NULL: of known servers */
	unsigned int text_arg;
	const char *user, *database;	/* NULL: any */
	struct regex match;		/* what the text must have; all zero: anything */
	bool has_match;
	const char *container;		/* its id, the beginning of that, or its name; NULL: any */
	unsigned int verbose;		/* how often -v was given */
	uint64_t duration_ns;		/* 0: until a signal */
	uint64_t count;			/* 0: no limit */
	uint32_t text_bytes;		/* OPTION_TEXT_MIN to OPTION_TEXT_MAX */
	struct field_list columns;	/* never empty */
	bool json, wall, strict, micro, why, use, phases;
	bool redact;			/* texts without their literals */
	bool keep_privileges;		/* that are not needed once all is attached */
	uint64_t interval_ns;		/* 0: only at the end */
	enum stat_by stat_by;
	const char *wait;		/* what is counted is waits for this; NULL: statements */
	enum breakdown_part wait_part;	/* what that means: see breakdown_by_name() */
	uint32_t wait_call;
	enum top_order order;
	uint64_t lines;			/* of a table; 0: as many as fit */
	bool on_return, count_hits;
	const char *histogram;		/* the value to count by; NULL: none */
	unsigned int registers;		/* of functions, so many arguments */
	uint32_t denied;		/* features not to be used, by --force */
	bool self_test;
	bool stat;			/* a table of locks, not each wait */
	const char *otlp;		/* file for spans, "-": the standard output; NULL: none */
	const char *dot;		/* file for a graph of waits; NULL: none */
	bool help, version;		/* the first of them ends the parsing */
};

/*
 * Fills @opts from @argv, whose strings it keeps, by the options and words that
 * @command has; @argv[0] is passed over.
 * Options and words may come in any order. Returns 0, or -EINVAL after one
 * line on @err (not flushed) that names what is wrong and what is accepted.
 */
int option_parse(const struct command *command, int argc, char *const argv[],
		 struct options *opts, struct output *err);

/* The word of --by for @by; NULL for all. Static. */
const char *option_by_name(enum stat_by by);

/*
 * Reads a number that may have decimals and a unit (ns, us, ms, s) as
 * nanoseconds, exactly. Without a unit it counts @unit_ns (1, 1000, 1000000
 * or 1000000000). Returns 0, or -EINVAL with the reason in *@why ("is
 * negative"). At most INT64_MAX, so that it can be added to a clock.
 */
int option_duration(const char *text, uint64_t unit_ns, uint64_t *ns, const char **why);

/* Adds the text of @command's --help. */
void option_help(const struct command *command, struct output *out);

#endif
