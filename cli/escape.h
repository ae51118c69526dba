/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Foreign text made safe to show. No byte of it reaches a terminal as a
 * control character, in JSON neither, and what is written is valid UTF-8.
 *
 * @cut says that the text goes on behind its last byte: where that splits a
 * UTF-8 character, its first part is dropped and does not count as invalid.
 */
#ifndef CLI_ESCAPE_H
#define CLI_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/output.h"

/*
 * Adds @len bytes of @text for people. A run of tabs and line ends becomes
 * one space; other control characters below U+0080 and bytes that are no
 * UTF-8 become \xNN; other controls and invisible characters \u{NNNN}.
 */
void escape_terminal(struct output *out, const void *text, size_t len, bool cut);

/* The number of terminal columns that escape_terminal() takes for the whole text. */
size_t escape_width(const void *text, size_t len);

/*
 * Adds @len bytes of @text as the inside of a JSON string, without the quotes.
 * What is no UTF-8 becomes U+FFFD. Returns whether everything was valid.
 */
bool escape_json(struct output *out, const void *text, size_t len, bool cut);

#endif
