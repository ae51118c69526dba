/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The words of dbslower trace: which probes, and what of their hits.
 *
 *	[FILE:]PROVIDER:PROBE, FILE:FUNCTION or, where files are named apart, PROVIDER:PROBE or NAME;
 *	u:, p: or r: before it says that it is a USDT probe, a function or a function's return;
 *	then (FILTER); then "FORMAT", VALUE, ... or VALUE[:s], ...
 */
#ifndef CLI_TRACE_PARSE_H
#define CLI_TRACE_PARSE_H

#include "probe/request.h"

#define TRACE_FORMAT	512		/* bytes of a format */

struct trace_field {
	struct expression value;
	const char *name;		/* the expression as it was written, borrowed from the word */
	size_t name_len;
	char conversion;		/* d, u, x, o, c, p, s; 0: as its type is */
	unsigned int bits;		/* what the format says how many there are */
	char flags[8];			/* of the format: "-20" */
};

struct trace_spec {
	struct probe_request request;			/* borrows from here */
	char *head;			/* a copy of the word's beginning, cut into pieces */
	const char *file;		/* in ->head; NULL: those that are named apart */
	struct expression filter;
	struct trace_field fields[REQUEST_FIELDS];
	bool has_format;
	char format[TRACE_FORMAT];	/* unescaped, without its conversions, */
	size_t piece[REQUEST_FIELDS + 2];	/* which stand at [1], ...; [0] is 0, the last the end */
};

/* What is wrong with a word. */
struct trace_error {
	const char *why;
	size_t at;			/* bytes into the word */
};

/*
 * Reads @word; @files: files are named apart. 0, -EINVAL and why in @error, or -ENOMEM.
 * trace_spec_free() ends it; it must stay where it is.
 */
int trace_spec_parse(struct trace_spec *spec, const char *word, bool files,
		     struct trace_error *error);

/* Reads a value with its :s, as of --hist, which is all of @text. As above. */
int trace_field_parse(struct trace_field *field, const char *text, struct trace_error *error);

/* Makes @count values the fields of the aim: those of ->fields. */
void trace_spec_fields(struct trace_spec *spec, unsigned int count);

void trace_spec_free(struct trace_spec *spec);

#endif
