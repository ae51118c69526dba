/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Glob patterns, matched byte by byte. The C library's fnmatch() would link the tables of all
 * Unicode characters.
 */
#ifndef SQL_GLOB_H
#define SQL_GLOB_H

#include <stdbool.h>

/* Return whether @word is a pattern, that is, contains *, ? or [. */
bool glob_is_pattern(const char *word);

/*
 * Return whether @pattern matches all of @text: * any sequence of bytes, ? any byte, [a-z] one byte
 * of the set, [!a-z] one outside. A [ without a ] matches itself. Takes at most as many steps as
 * the product of both lengths.
 */
bool glob_match(const char *pattern, const char *text);

#endif
