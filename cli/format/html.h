/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Foreign text in HTML: no byte of it becomes markup, neither in an element nor in the quoted value
 * of an attribute. Control characters, invisible ones and bytes that are not UTF-8 become visible,
 * as by escape_terminal().
 */
#ifndef CLI_FORMAT_HTML_H
#define CLI_FORMAT_HTML_H

#include "cli/output.h"

/*
 * Append @len bytes of @text on one line: a run of tabs and line ends becomes one space. @cut: the
 * text continues after its last byte, see escape.h.
 */
void html_text(struct output *out, const void *text, size_t len, bool cut);

/* The same, but keep tabs and line ends. */
void html_lines(struct output *out, const void *text, size_t len, bool cut);

/* Append the NUL-terminated @text by html_text(); nothing if it is NULL. */
void html_string(struct output *out, const char *text);

/* Append as html_text() as many characters as fit into @columns, and "..." if that is not all. */
void html_short(struct output *out, const void *text, size_t len, size_t columns);

#endif
