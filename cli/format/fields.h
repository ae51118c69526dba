/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli/format/: events as text: tables, JSON, OTLP, metrics, the formats of servers' logs,
 * histograms; and the escaping of foreign bytes for each of these.
 * It traces nothing, and knows no options.
 */

/*
 * The fields of a statement: one row each, from which columns (-o), JSON members and OpenTelemetry
 * attributes are made, as well as the lists of columns in --help and in error messages.
 */
#ifndef CLI_FORMAT_FIELDS_H
#define CLI_FORMAT_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/output.h"
#include "cli/suggest.h"
#include "db/event.h"

#define FIELD_LIST_MAX	32

enum field_type {
	FIELD_STRING,
	FIELD_NUMBER,
	FIELD_FLAG,
	FIELD_MS,		/* a duration in ns, shown in ms */
	FIELD_TIME,		/* ns after the start of the statement, shown as a time */
	FIELD_QUERY,		/* the text of the statement */
	FIELD_QUERY_OF,		/* the text behind it */
	FIELD_QUERY_BYTES,	/* the same bytes in base64; only if they are not valid UTF-8 */
	FIELD_PARTS,		/* members of struct event_breakdown, written by breakdown.c: */
	FIELD_WAITS,
	FIELD_WORKERS,
	FIELD_PHASES,
	FIELD_USE,
	FIELD_LIST,		/* words, separated by commas; in JSON an array */
	FIELD_TAGS,		/* all; as a column, that with the name of the column */
};

/* Data that must be collected for a field, as bits. */
#define FIELD_NEEDS_IDENTITY	0x01	/* user, database and client, or the container */
#define FIELD_NEEDS_ROWS	0x02
#define FIELD_NEEDS_BREAKDOWN	0x04
#define FIELD_NEEDS_PHASES	0x08
#define FIELD_NEEDS_TAGS	0x10
#define FIELD_NEEDS_QUERY_ID	0x20

#define FIELD_OF_STATEMENTS	1
#define FIELD_OF_TRANSACTIONS	2

/* The value of a field; which members are valid depends on the type. */
struct field_value {
	const char *text;		/* of strings, lists and texts: borrowed bytes */
	size_t len;
	uint64_t number;		/* FIELD_NUMBER, FIELD_FLAG, FIELD_MS, FIELD_TIME */
	char buf[128];			/* room for a ->text that is made from a number */
};

/*
 * A field. Its keys are JSON texts from the comma up to the value, as ",\"user\":\"", with their
 * lengths, so that writing one is a copy.
 */
struct field {
	const char *column;		/* name for -o; NULL: no column */
	const char *header, *help;
	const char *json;		/* key of the JSON member */
	const char *attribute;		/* key in a span; FIELD_PARTS, FIELD_USE: its first part */
	/* Fill @value. Return false if the value is unknown. */
	bool (*get)(const struct statement *st, unsigned int which, struct field_value *value);
	uint16_t which;			/* passed to get(): a part, a phase or an offset */
	uint8_t type;			/* enum field_type */
	uint8_t json_len, attribute_len;	/* 0: none */
	uint8_t position;		/* of the attribute: ascending in a span */
	uint8_t needs;			/* FIELD_NEEDS_* */
	uint8_t of;			/* FIELD_OF_*: what has the column; 0: both */
	uint8_t width;			/* of the column; 0: no padding */
	bool right;			/* aligned to the right */
};

/* In the order of the columns and of the JSON members; ends with a row without get(). */
extern const struct field field_rows[];

/* Return those with a JSON member, in their order, and NULL after the last. */
const struct field *const *field_members(void);

/* The columns selected by -o, in their order. All zero: none. */
struct field_list {
	bool transactions;		/* they are of transactions, else of statements */
	const struct field *field[FIELD_LIST_MAX];
	const char *tag[FIELD_LIST_MAX];	/* FIELD_TAGS: the name, borrowed, .. */
	size_t tag_len[FIELD_LIST_MAX];		/* .. and its length */
	unsigned int count;
};

/*
 * Append the columns named in @spec, separated by commas, to @list, which borrows it. Return 0,
 * -ENOENT for an unknown name, -EINVAL for an empty one or -E2BIG for more than FIELD_LIST_MAX;
 * then *@bad is the name, a part of @spec of *@bad_len bytes, and the columns before it have been
 * appended.
 */
int field_parse(struct field_list *list, const char *spec, const char **bad, size_t *bad_len);

/* Set @list to the default columns. */
void field_default(struct field_list *list);

/* Return the FIELD_NEEDS_* bits of all columns in @list. */
uint32_t field_needs(const struct field_list *list);

/* Append the names of the columns that field_parse() accepts, separated by ", ". */
void field_names(struct output *out, bool transactions);

/* Consider these names, see suggest.h. */
void field_suggest(struct suggestion *s, bool transactions);

/* Append the default columns, and an indented line for each one: its name and description. */
void field_help(struct output *out, bool transactions);

#endif
