/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Statements as a table for people, in columns chosen by name as with ps -o. */
#ifndef CLI_FIELDS_H
#define CLI_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/output.h"
#include "db/statement.h"

#define COLUMN_MAX 32

struct column;

/* The chosen columns, in their order; all zero is none. */
struct column_list {
	const struct column *column[COLUMN_MAX];
	unsigned int count;
};

/* A table being printed. */
struct column_view {
	struct column_list list;
	uint64_t start_ns;		/* what the time column counts from, CLOCK_MONOTONIC */
	bool wall;			/* it shows local wall-clock time instead */
	uint64_t wall_minute;		/* the minute since 1970 that .. */
	char wall_text[6];		/* .. this "HH:MM:" is */
};

/*
 * Adds the columns named in @spec, separated by commas, to @list. Returns 0;
 * -ENOENT for a name that does not exist, -EINVAL for one that is missing,
 * -E2BIG for more than COLUMN_MAX columns, with the name in *@bad (a piece
 * of @spec) and *@bad_len. What was added before an error stays.
 */
int column_parse(struct column_list *list, const char *spec, const char **bad, size_t *bad_len);

/* Sets @list to the default columns: time, pid, ms, query. */
void column_default(struct column_list *list);

/* Whether a column shows the number of rows. */
bool column_wants_rows(const struct column_list *list);

/* Whether a column shows who is connected and where: user, database, client, container. */
bool column_wants_identity(const struct column_list *list);

/* Whether a column shows a part of where the time went, or a phase. */
bool column_wants_why(const struct column_list *list);

/* Whether a column shows a phase. */
bool column_wants_phases(const struct column_list *list);

/* Adds all names that column_parse() knows, separated by ", ". */
void column_names(struct output *out);

/* Adds a line for each column that there is, indented: its name and what it shows. */
void column_help(struct output *out);

/*
 * Starts a table of the columns in @list, which is copied. Times are counted
 * from @start_ns (CLOCK_MONOTONIC), or are those of the clock on the wall.
 */
void column_init(struct column_view *view, const struct column_list *list, uint64_t start_ns,
		 bool wall);

/* Adds the line of headers. */
void column_header(struct output *out, const struct column_view *view);

/* Adds the line of one statement. What is not known is "-". */
void column_row(struct output *out, struct column_view *view, const struct statement *st);

#endif
