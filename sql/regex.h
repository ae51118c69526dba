/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What --match looks for: a piece of text, or an extended regular expression (POSIX.2: . [] * + ?
 * {} | () ^ $), both in any case of ASCII letters. The time is bounded by the text's length
 * times the number of states, whatever the two are; the C library's is a quarter of our size.
 */
#ifndef SQL_REGEX_H
#define SQL_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_NODES	256
#define PATTERN_SET	32	/* bytes: a bit map of bytes */

/* One state of the machine. */
struct regex_node {
	uint8_t kind;
	uint16_t next, other;		/* states that follow; @other of a fork only */
	uint16_t set;			/* which class; of a single byte, that byte */
};

struct regex {
	const char *text;		/* borrowed: the piece; NULL: the machine below */
	size_t len;
	uint16_t start;
	size_t nnodes, nsets;
	struct regex_node nodes[PATTERN_NODES];
	uint8_t sets[16][PATTERN_SET];	/* each once */
};

/*
 * Reads "/REGEX/", or else a piece of text, which must outlive the pattern. 0; -EINVAL: not of the
 * grammar; -E2BIG: more states or classes than there is room for. *@at is then where in @source.
 */
int regex_parse(struct regex *pattern, const char *source, size_t *at);

/* Whether the pattern is anywhere in the @len bytes of @text. */
bool regex_match(const struct regex *pattern, const char *text, size_t len);

#endif
