/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names by patterns, byte by byte. libc's fnmatch() brings tables of all the world's letters. */
#ifndef SQL_GLOB_H
#define SQL_GLOB_H

#include <stdbool.h>

/* Whether @word is a pattern: has a *, ? or [. */
bool glob_is_pattern(const char *word);

/*
 * Whether @pattern has all of @text: * is any piece, ? any byte, [a-z] one of these, [!a-z] none of
 * them. A [ without its ] is itself. At most as many steps as the lengths multiplied.
 */
bool glob_match(const char *pattern, const char *text);

#endif
