/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A line of a terminal that is never wider than the terminal: what does not fit is cut. */
#ifndef CLI_FORMAT_LINE_H
#define CLI_FORMAT_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/output.h"

/* Start with ->used 0. */
struct line {
	struct output *out;
	size_t width;			/* columns; SIZE_MAX: unlimited */
	size_t used;			/* columns written so far */
};

/* Append printable ASCII characters. */
void line_text(struct line *line, const char *text);

/* The same of a format of printf(), of less than 256 bytes. Slow. */
void line_printf(struct line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Append @len bytes of @text as escape_terminal() does, in at most @room columns; @cut as there.
 * Return the number of bytes that fitted.
 */
size_t line_foreign(struct line *line, const char *text, size_t len, bool cut, size_t room);

/* Append a foreign, NUL-terminated @text as far as it fits. */
void line_name(struct line *line, const char *text);

/* Append spaces up to column @column, counted from 0. */
void line_pad(struct line *line, size_t column);

#endif
