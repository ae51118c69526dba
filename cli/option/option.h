/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli/option/: the command line: the parser, the rows of options that commands share, rules between
 * options, --help, and completion.
 * It does nothing of what an option asks for.
 */

/* The parser of the command line, over the option rows of a command. */
#ifndef CLI_OPTION_OPTION_H
#define CLI_OPTION_OPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"
#include "cli/format/fields.h"
#include "cli/output.h"
#include "db/discover/announce.h"
#include "sql/regex.h"

#define OPTION_PATHS 16		/* files, unless the command permits more */
#define OPTION_PATHS_MAX 16384
#define OPTION_WORDS 16
#define OPTION_TEXT_MIN 16
#define OPTION_SIZE_MIN (1024 * 1024)
#define OPTION_OVERHEAD_MIN 100		/* millionths of a CPU */
#define OPTION_OVERHEAD_MAX 1000000000
#define OPTION_TEXT_MAX (1024 * 1024)

/* The remedies for a threshold and another duration that cannot be parsed. */
#define OPTION_UNITS ", or a number with a unit (ns, us, ms, s, m, h): "
#define OPTION_DURATIONS "expected milliseconds" OPTION_UNITS "30, 0.25, 250us, 1s"
#define OPTION_SECONDS "expected seconds" OPTION_UNITS "10, 0.5, 500ms, 1h"

/* What several commands share. A command's own options are variables of its file. */
struct options {
	const char *engine;		/* "postgresql", "mysql"; NULL: all that are found */
	uint64_t threshold_ns;		/* 0: all statements */
	bool has_threshold;		/* it was given */
	uint64_t session;		/* its ID; 0: not given */
	uint32_t pids[SERVER_PIDS];	/* each once */
	unsigned int pid_count;
	const char *paths[OPTION_PATHS_MAX];	/* borrowed from argv */
	unsigned int path_count;
	const char *words[OPTION_WORDS];	/* other than files; borrowed */
	unsigned int word_count;
	const char *file;		/* a recording; NULL: not given */
	const char *start, *done;	/* USDT probes around a statement; NULL: of known servers */
	unsigned int text_arg;		/* 0: the first one, if there is one */
	const char *user, *database, *client, *application, *backend;	/* NULL: any */
	struct regex match;		/* must match the text; all zero: any */
	bool has_match;
	const char *container;		/* its id, the beginning of that, or its name; NULL: any */
	unsigned int verbose;		/* how often -v was given */
	uint64_t duration_ns;		/* 0: until a signal */
	uint64_t sample_ns;		/* sample sessions at this interval; 0: trace by probes */
	uint64_t interval_ns;		/* 0: only at the end */
	uint64_t count;			/* 0: no limit */
	uint32_t text_bytes;		/* OPTION_TEXT_MIN to OPTION_TEXT_MAX */
	bool has_text;			/* it was given */
	struct field_list columns;	/* never empty */
	bool json, wall, strict, why, use, phases, nested;
	bool redact;			/* texts without their literals */
	bool keep_privileges;		/* after all probes are attached */
	uint32_t denied;		/* features not to be used, by --force */
	bool go_returns;		/* trace returns in Go programs, by --force .. */
	bool little_memory;		/* .. and load programs if it may not suffice */
	uint64_t max_overhead;		/* in millionths of a CPU; 0: no limit */
	uint64_t max_overhead_ns;	/* for how long it may be exceeded; 0: the default */
	bool help, version;		/* the first of them ends the parsing */
};

/* A command line being parsed. */
struct option_parser {
	const struct command *command;
	struct options *opts;
	struct output *err;
	const struct option_row *row;	/* the option before the current word, or NULL .. */
	const char *before;		/* .. and the word before that, or NULL */
	const char *threshold;		/* as it was given: as a word .. */
	bool minimum;			/* .. or by -m */
};

/* One option. A command has a list of them, in the order of --help. */
struct option_row {
	char letter;			/* 0: none */
	const char *name;
	const char *arg;		/* NULL: takes none */
	const char *help;		/* NULL: listed neither by --help nor by completion */
	const char *accepts;		/* the remedy: which arguments are valid */
	/* Parse @value. Return 0, or -EINVAL after a message. NULL: set a bool. */
	int (*set)(struct option_parser *p, const struct option_row *row, const char *value);
	/* What it sets: a member of struct options, or, by OPTION_OWN(), a variable. */
	size_t member;			/* offset */
	void *own;			/* NULL: none; all zero unless the option is given */
	size_t own_size;
	bool live;			/* of no use for a recording */
	/* Print candidates for the argument, see complete.h. NULL: none. */
	void (*complete)(struct output *out);
};

#define OPTION_OWN(variable)	.own = &(variable), .own_size = sizeof(variable)

/* A rule between options that exclude or require each other, see ->rules of struct command. */
struct option_rule {
	bool (*broken)(const struct options *opts);
	const char *subject, *cause, *remedy;	/* of the message */
};

/*
 * Return the length of the path of an existing file in the probe @word, which begins at *@begin,
 * perhaps behind a kind, and is followed by a colon. It may have blanks and colons. Of several the
 * shortest counts: a file that someone else creates cannot lengthen it. 0, also in *@begin: none.
 */
size_t option_probe_path(const char *word, size_t *begin);

/*
 * Parse @argv, whose strings are borrowed, to @opts and the command's own options; @argv[0] is
 * skipped. Options and words may come in any order. --help and --version end the parsing; else the
 * first broken rule of the command is reported. Return 0, or -EINVAL after one line on @err (not
 * flushed) that names the subject, the cause and what is valid.
 */
int option_parse(const struct command *command, int argc, char *const argv[],
		 struct options *opts, struct output *err);

/* Return what @row sets. */
void *option_target(struct option_parser *p, const struct option_row *row);

/* Return the option of @command with this letter, or NULL. */
const struct option_row *option_find_letter(const struct command *command, char letter);

/* Return the option of @command called @name, of @len bytes, or NULL. */
const struct option_row *option_find(const struct command *command, const char *name, size_t len);

/* Write the words of all engines: "mysql (or mariadb) and postgres (or postgresql, pg)". */
void option_engine_list(char *text, size_t size);

/* Add the first word of each engine, one a line. */
void option_engine_words(struct output *out);

/*
 * Parse a number that may have decimals and a unit (ns, us, ms, s, m, h) as nanoseconds, exactly.
 * Without a unit it counts @unit_ns (1, 1000, 1000000 or 1000000000). Return 0, or -EINVAL with the
 * cause in *@why ("too large"). At most INT64_MAX, so that it can be added to a clock.
 */
int option_read_duration(const char *text, uint64_t unit_ns, uint64_t *ns, const char **why);

/* Parse @len decimal digits. Return 0, -EINVAL or -ERANGE. */
int option_read_number(const char *text, size_t len, uint64_t *value);

/*
 * Start a message: "dbslower: " and the option and its value, either of which may be NULL, of which
 * the value has @len bytes.
 */
void option_message(struct option_parser *p, const struct option_row *row, const char *value,
		    size_t len);

/* End a message with the cause @why and the remedy @accepts, or NULL. Return -EINVAL. */
int option_message_end(struct option_parser *p, const char *why, const char *accepts);

/* End a message: there are more than @max of @what. Return -EINVAL. */
int option_message_many(struct option_parser *p, const char *what, int max);

/* Print a message on @value of @row (or, without @row, a word). Return -EINVAL. */
int option_refuse(struct option_parser *p, const struct option_row *row, const char *value,
		  const char *why);

/* Refuse a threshold that is given both as a word and by -m. Return -EINVAL. */
int option_refuse_thresholds(struct option_parser *p);

/* Add a file, given by option @row or, without it, as a word. Return 0 or -EINVAL. */
int option_add_path(struct option_parser *p, const struct option_row *row, const char *value);

#endif
