/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Escape foreign text, so that it is valid UTF-8 without control characters, on a terminal and in
 * JSON.
 *
 * @cut: the text continues after its last byte. If that splits a UTF-8 character, its first part
 * is dropped and is not regarded as invalid.
 */
#ifndef CLI_FORMAT_ESCAPE_H
#define CLI_FORMAT_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/output.h"

/*
 * Append @len bytes of @text for a terminal. A run of tabs and line ends becomes one space. Other
 * control characters below U+0080 and bytes that are not UTF-8 become \xNN, other control
 * characters and invisible ones \u{NNNN}.
 */
void escape_terminal(struct output *out, const void *text, size_t len, bool cut);

/*
 * Return how many of the @len bytes of @text escape_terminal() writes within @room columns: whole
 * characters, with the marks that combine with them. *@columns (may be NULL) is their width.
 */
size_t escape_fit(const void *text, size_t len, size_t room, size_t *columns);

/* Return the number of terminal columns of the text as escape_terminal() writes it. */
size_t escape_width(const void *text, size_t len);

/*
 * Append @len bytes of @text as a JSON string without its quotes. Bytes that are not UTF-8 become
 * U+FFFD. Return false if there were any.
 */
bool escape_json(struct output *out, const void *text, size_t len, bool cut);

/*
 * Copy the NUL-terminated @text to @to, cut at @size bytes with the NUL. Control characters but the
 * line end, invisible characters, and bytes that are not UTF-8, become "?". Return the length.
 */
size_t escape_copy(char *to, size_t size, const char *text);

/* Append such a copy as a label's value of metrics, without its quotes. */
void escape_label(struct output *out, const char *text);

#endif
