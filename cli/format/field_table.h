/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Statements as a table for people. */
#ifndef CLI_FORMAT_FIELD_TABLE_H
#define CLI_FORMAT_FIELD_TABLE_H

#include "cli/format/fields.h"

/* A table that is being printed. */
struct field_table {
	struct field_list list;
	uint64_t start_ns;		/* time zero of column time, CLOCK_MONOTONIC */
	bool wall;			/* column time is the local time of day instead */
	/* Cache: the beginning "HH:MM:" of the times of day in this minute since 1970. */
	uint64_t wall_minute;
	char wall_text[6];
};

/* Start a table with the columns in @list, which is copied. */
void field_table_init(struct field_table *table, const struct field_list *list,
		      uint64_t start_ns, bool wall);

/* Append the line of headers. */
void field_table_header(struct output *out, const struct field_table *table);

/* Append the line of a statement. An unknown or empty value is "-". */
void field_table_row(struct output *out, struct field_table *table, const struct statement *st);

/* Append, in brackets, why a statement has no text, or that it is cut; nothing for a whole text. */
void field_query_note(struct output *out, const struct statement *st);

#endif
