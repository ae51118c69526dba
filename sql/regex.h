/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns of --match: a substring, or a POSIX extended regular expression (. [] * + ? {} | ()
 * ^ $), both without regard to the case of ASCII letters. A regular expression becomes an NFA by
 * Thompson's construction, and all of its states are simulated at once: the time is bounded by the
 * length of the text times the number of states, for any text and pattern. The C library's
 * implementation is a quarter of the size of this program.
 */
#ifndef SQL_REGEX_H
#define SQL_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REGEX_NODES	256
#define REGEX_SETS	16
#define REGEX_SET_SIZE	32	/* bytes: a bit for each byte value */

/* A state of the NFA. */
struct regex_node {
	uint8_t kind;
	uint16_t next, other;		/* the following states; @other of a fork only */
	uint16_t set;			/* index of a set, or the value of a single byte */
};

struct regex {
	const char *text;		/* borrowed: the substring; NULL: the NFA below */
	size_t len;
	uint16_t start;
	size_t nnodes, nsets;
	struct regex_node nodes[REGEX_NODES];
	uint8_t sets[REGEX_SETS][REGEX_SET_SIZE];	/* distinct */
};

/*
 * Parse @source: "/REGEX/", or else a substring, which must outlive @regex. Return 0; -EINVAL for a
 * syntax error; -E2BIG if there are too many states or sets. On failure *@at is the position of the
 * error in @source.
 */
int regex_parse(struct regex *regex, const char *source, size_t *at);

/* Return whether @regex matches anywhere in the @len bytes of @text. */
bool regex_match(const struct regex *regex, const char *text, size_t len);

#endif
