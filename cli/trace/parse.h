/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli/trace/: the command trace: the words of its command line, and the output of hits, stacks and
 * counts.
 * It knows no databases.
 */

/*
 * The words of the command trace: each selects probes, and the values to show of their hits.
 *
 *	[KIND:][FILE:]PROVIDER:PROBE	a USDT probe; FILE is optional if PATH, -l or -p is given
 *	[KIND:]FILE:FUNCTION		a function
 *	[KIND:]NAME			either of them, in the files of PATH, -l and -p
 *
 * KIND is u (USDT probe), p (function) or r (return of a function), or one of bpftrace's names. A
 * filter in brackets may follow, and then "FORMAT", VALUE, ... or VALUE[:s], ...
 */
#ifndef CLI_TRACE_PARSE_H
#define CLI_TRACE_PARSE_H

#include "probe/request.h"

#define TRACE_FORMAT	512		/* bytes of a format */

/* Conversions of fields that are not shown. */
enum trace_hidden {
	TRACE_LENGTH = '*',		/* the maximum length of the string that follows */
	TRACE_REST = '+',		/* the second half of comm */
};

/* A value to show. */
struct trace_field {
	struct expression value;
	const char *name;		/* text of the expression, borrowed from the word */
	size_t name_len;
	char conversion;		/* d, u, x, o, c, p, s; 0: by type; or enum trace_hidden */
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
	/* Offsets in ->format: the text before field i is from [i] to [i + 1]. */
	size_t piece[REQUEST_FIELDS + 2];
};

/* An error in a word. */
struct trace_error {
	const char *why;
	size_t at;			/* offset in the word */
};

/*
 * Parse @word, which has a path of @path bytes from byte @begin on and a colon behind it; 0: it
 * ends at the first colon or blank. @files: PATH, -l or -p is given. Return 0, -ENOMEM, or -EINVAL
 * with the reason in @error. @spec must not be moved; free it by trace_spec_free(), after an error
 * too.
 */
int trace_spec_parse(struct trace_spec *spec, const char *word, size_t begin, size_t path,
		     bool files, struct trace_error *error);

/* Return whether hits of @spec, parsed from @word, can be counted by its values: 0 or -EINVAL. */
int trace_spec_countable(const struct trace_spec *spec, const char *word,
			 struct trace_error *error);

/*
 * Insert @text, the value of a histogram, before the fields of a @spec that is countable. Return 0,
 * or -EINVAL with the reason in @error.
 */
int trace_spec_histogram(struct trace_spec *spec, const char *text, struct trace_error *error);

/* Insert the latency, which the kernel measures, before the fields of a countable @spec. */
void trace_spec_latency(struct trace_spec *spec);

static inline bool trace_field_hidden(const struct trace_field *field)
{
	return field->conversion == TRACE_LENGTH || field->conversion == TRACE_REST;
}

void trace_spec_free(struct trace_spec *spec);

#endif
