/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The trace context of a statement, from a comment in the format of sqlcommenter: key='value' pairs
 * with URL-encoded values. The value of traceparent is that of the header of W3C Trace Context.
 */
#ifndef SQL_TRACEPARENT_H
#define SQL_TRACEPARENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sql/fingerprint.h"

#define TRACE_DIGITS	32
#define SPAN_DIGITS	16

/* IDs in lower-case hexadecimal digits, not all 0, with a NUL. */
struct traceparent {
	char trace[TRACE_DIGITS + 1], span[SPAN_DIGITS + 1];
	uint8_t flags;
};

#define TRACEPARENT	(2 + 1 + TRACE_DIGITS + 1 + SPAN_DIGITS + 1 + 2 + 1)	/* with the NUL */

/* Write the value of the header, of version 00. */
void traceparent_write(const struct traceparent *parent, char text[TRACEPARENT]);

/*
 * Parse the @len bytes of a value of the header, of any version, which may be any bytes and may be
 * URL-encoded. Return whether it is valid; else *@parent is unchanged.
 */
bool traceparent_parse(const char *value, size_t len, struct traceparent *parent);

/*
 * Parse the traceparent in the comments of the @len bytes of @text, which may be any bytes. @cut:
 * the statement continues after @text. Return whether there is a valid one; of several the last
 * counts.
 */
bool traceparent_find(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
		      struct traceparent *parent);

#endif
