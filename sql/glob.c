// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/glob.h"

#include <stddef.h>
#include <string.h>

bool glob_is_pattern(const char *word)
{
	return strpbrk(word, "*?[");
}

/*
 * Return whether the set that begins at @p, after its [, contains @c. *@end is the position after
 * its ], NULL without one.
 */
static bool set_contains(const char *p, unsigned char c, const char **end)
{
	bool negated = *p == '!' || *p == '^', has = false;
	const char *first = p += negated;

	/* A ] in the first position is a member. */
	for (; *p && (*p != ']' || p == first); p++) {
		unsigned char low = (unsigned char)*p, high = low;

		if (p[1] == '-' && p[2] && p[2] != ']') {
			high = (unsigned char)p[2];
			p += 2;
		}
		has |= low <= c && c <= high;
	}
	*end = *p ? p + 1 : NULL;
	return has != negated;
}

/* Return whether the first element of @p matches the byte @c. *@next is the position after it. */
static bool element_matches(const char *p, char c, const char **next)
{
	const char *end;
	bool has;

	*next = p + 1;
	if (*p == '?')
		return true;
	if (*p != '[')
		return *p == c;
	has = set_contains(p + 1, (unsigned char)c, &end);
	if (!end)
		return c == '[';
	*next = end;
	return has;
}

bool glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL, *next;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern && element_matches(pattern, *text, &next)) {
			pattern = next;
			text++;
		} else if (star) {
			/* Backtracking to the last * is enough: the part before it matches. */
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
