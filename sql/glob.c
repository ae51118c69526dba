// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/glob.h"

#include <stddef.h>
#include <string.h>

bool glob_is_pattern(const char *word)
{
	return strpbrk(word, "*?[");
}

/* Whether the set at @p, behind its [, has @c. *@end is behind its ], NULL where there is none. */
static bool set_has(const char *p, unsigned char c, const char **end)
{
	bool none = *p == '!' || *p == '^', has = false;
	const char *first = p += none;

	/* A ] that comes first is one of the set. */
	for (; *p && (*p != ']' || p == first); p++) {
		unsigned char low = (unsigned char)*p, high = low;

		if (p[1] == '-' && p[2] && p[2] != ']') {
			high = (unsigned char)p[2];
			p += 2;
		}
		has |= low <= c && c <= high;
	}
	*end = *p ? p + 1 : NULL;
	return has != none;
}

/* Whether what @p starts with has the byte @c. *@next is behind it. */
static bool one_has(const char *p, char c, const char **next)
{
	const char *end;
	bool has;

	*next = p + 1;
	if (*p == '?')
		return true;
	if (*p != '[')
		return *p == c;
	has = set_has(p + 1, (unsigned char)c, &end);
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
		} else if (*pattern && one_has(pattern, *text, &next)) {
			pattern = next;
			text++;
		} else if (star) {
			/* Only the last star need take more: what stood before it has its place. */
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
