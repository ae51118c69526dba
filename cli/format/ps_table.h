/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sessions of ps as a table or JSON. */
#ifndef CLI_FORMAT_PS_TABLE_H
#define CLI_FORMAT_PS_TABLE_H

#include <stdbool.h>

#include "cli/output.h"
#include "cli/suggest.h"
#include "db/ps/ps.h"

#define PS_COLUMNS	24
#define PS_DEFAULT_COLUMNS "id,user,db,client,state,xact,time,wait,blocked_by,query"

struct ps_column;

struct ps_table {
	struct output *out;
	unsigned int width;		/* of the terminal; 0: lines are not cut */
	const struct ps_column *column[PS_COLUMNS];
	unsigned int count;
};

/*
 * Append the columns named in @spec, separated by commas. Return 0; -ENOENT for an unknown name, of
 * which @bad is set to the word; or -E2BIG for too many.
 */
int ps_table_columns(struct ps_table *table, const char *spec, struct suggestion *bad);

/* Append the names that ps_table_columns() accepts, separated by ", ". */
void ps_table_names(struct output *out);

void ps_table_header(const struct ps_table *table);

/* Append a row. @depth: of the session in a tree, its text is indented. @now_ns: CLOCK_REALTIME */
void ps_table_row(const struct ps_table *table, const struct ps_session *session,
		  unsigned int depth, uint64_t now_ns);

/* Append a line of JSON. */
void ps_json(struct output *out, const struct ps_session *session, uint64_t now_ns);

#endif
