/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The trace that a statement belongs to, where its client says so: in a comment as sqlcommenter
 * writes it, whose traceparent is what W3C's Trace Context has in a header of that name.
 */
#ifndef SQL_TRACEPARENT_H
#define SQL_TRACEPARENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sql/fingerprint.h"

#define TRACE_DIGITS	32
#define SPAN_DIGITS	16

/* Lower-case hexadecimal digits, neither all 0. */
struct traceparent {
	char trace[TRACE_DIGITS + 1], span[SPAN_DIGITS + 1];
	uint8_t flags;
};

/*
 * Looks for it in the comments of the @len bytes of @text, any bytes, of which @cut says that they
 * go on. Whether there is one; of several that are valid, the last counts.
 */
bool traceparent_find(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
		      struct traceparent *parent);

#endif
