/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The words of the command trace: each selects probes, and the values to show of their hits.
 *
 *	[KIND:][FILE:]PROVIDER:PROBE	a USDT probe; FILE is optional if PATH, -l or -p is given
 *	[KIND:]FILE:FUNCTION		a function
 *	[KIND:]NAME			either of them, in the files of PATH, -l and -p
 *
 * KIND is u (USDT probe), p (function) or r (return of a function). A filter in brackets may
 * follow, and then "FORMAT", VALUE, ... or VALUE[:s], ...
 */
#ifndef CLI_TRACE_PARSE_H
#define CLI_TRACE_PARSE_H

#include "probe/request.h"

#define TRACE_FORMAT	512		/* bytes of a format */

/* A value to show. */
struct trace_field {
	struct expression value;
	const char *name;		/* text of the expression, borrowed from the word */
	size_t name_len;
	char conversion;		/* d, u, x, o, c, p, s; 0: by the type of the value */
	unsigned int bits;		/* size of the number according to the format */
	char flags[8];			/* of the format: "-20" */
};

struct trace_spec {
	struct probe_request request;	/* points into this structure */
	char *head;			/* owned: the first part of the word, cut into pieces */
	const char *file;		/* in ->head; NULL: the files of PATH, -l and -p */
	struct expression filter;
	struct trace_field fields[REQUEST_FIELDS];
	bool has_format;
	char format[TRACE_FORMAT];	/* unescaped, without the conversions */
	/* Offsets in ->format: [0] is 0, [i] is that of conversion i, the last one is the end. */
	size_t piece[REQUEST_FIELDS + 2];
};

/* An error in a word. */
struct trace_error {
	const char *why;
	size_t at;			/* offset in the word */
};

/*
 * Parse @word; @files: PATH, -l or -p is given. Return 0, -ENOMEM, or -EINVAL with the reason in
 * @error. @spec must not be moved; free it by trace_spec_free(), after an error too.
 */
int trace_spec_parse(struct trace_spec *spec, const char *word, bool files,
		     struct trace_error *error);

/* Parse @text, a value with an optional conversion, as of --hist. Return as above. */
int trace_field_parse(struct trace_field *field, const char *text, struct trace_error *error);

/* Make the first @count of ->fields the fields of ->request; 0: all arguments. */
void trace_spec_fields(struct trace_spec *spec, unsigned int count);

void trace_spec_free(struct trace_spec *spec);

#endif
