// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/suggest.h"

#include <stdint.h>
#include <string.h>

#define WORD_MAX	24	/* longer words are not compared */
#define LONG_WORD	7	/* from this length on two changes are allowed */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Return the number of changes that make @a, of @m letters, equal to @b, of @n: insertions,
 * removals, replacements, and exchanges of neighbours, of which no letter is changed again. Both
 * are of WORD_MAX letters at most.
 */
static size_t word_distance(const char *a, size_t m, const char *b, size_t n)
{
	uint8_t rows[3][WORD_MAX + 1], *last = rows[0], *row = rows[1], *before = rows[2], *free;

	for (size_t j = 0; j <= n; j++)
		last[j] = (uint8_t)j;
	for (size_t i = 1; i <= m; i++) {
		row[0] = (uint8_t)i;
		for (size_t j = 1; j <= n; j++) {
			size_t d = least(last[j], row[j - 1]) + 1u;

			d = least(d, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = least(d, before[j - 2] + 1u);
			row[j] = (uint8_t)d;
		}
		free = before;
		before = last;
		last = row;
		row = free;
	}
	return last[n];
}

void suggestion_add(struct suggestion *s, const char *known)
{
	size_t len = strlen(known), distance;

	if (s->len < 2 || s->len > WORD_MAX || len > WORD_MAX)
		return;
	if (!strncmp(known, s->word, s->len))
		distance = 1;
	else
		distance = word_distance(s->word, s->len, known, len);
	if (distance > (s->len < LONG_WORD ? 1 : 2) ||
	    (s->best && (distance > s->distance ||
			 (distance == s->distance && len >= strlen(s->best)))))
		return;
	s->best = known;
	s->distance = distance;
}

void suggestion_print(const struct suggestion *s, const char *before, struct output *out)
{
	if (s->best)
		output_printf(out, "did you mean %s%s?", before, s->best);
}
