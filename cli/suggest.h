/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The word that a misspelt one was probably meant to be. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

#include <stddef.h>

#include "cli/output.h"

/* All zero but for the misspelt word, which is borrowed. */
struct suggestion {
	const char *word;
	size_t len;
	const char *best;		/* borrowed; NULL: no word is similar */
	size_t distance;		/* of ->best */
};

/*
 * Consider @known, which is borrowed. Similar is a word that begins with the misspelt one, or that
 * one or two changes of a letter, or exchanges of neighbours, make equal to it: one in words of up
 * to six letters. Of several equally similar ones the shortest is kept.
 */
void suggestion_add(struct suggestion *s, const char *known);

/* Add "did you mean ", @before and the word to @out; nothing if no word is similar. */
void suggestion_print(const struct suggestion *s, const char *before, struct output *out);

#endif
