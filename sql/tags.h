/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tags of a statement, from comments in the format of sqlcommenter: key='value' pairs which
 * are URL-encoded, and in which a backslash quotes the next character.
 */
#ifndef SQL_TAGS_H
#define SQL_TAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "sql/fingerprint.h"

#define TAGS_MAX	16
#define TAGS_BYTES	1024

struct tag {
	const char *key, *value;	/* any bytes, of the text or of ->bytes of the tags */
	size_t key_len, len;
};

struct tags {
	unsigned int count;
	size_t used;			/* of ->bytes */
	struct tag tag[TAGS_MAX];
	char bytes[TAGS_BYTES];
};

/*
 * Call @each for each pair in the comments of @text, which may be any bytes: key and value are not
 * decoded. @cut: the statement continues after @text.
 */
void tags_each(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
	       void (*each)(void *arg, const struct tag *tag), void *arg);

/* Decode @len bytes into the @size bytes of @to; drop the rest. Return the length. */
size_t tags_decode(const char *from, size_t len, char *to, size_t size);

/*
 * Fill @tags with the first TAGS_MAX tags of different keys that fit. @text must outlive them.
 * Return whether there is one.
 */
bool tags_find(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
	       struct tags *tags);

/* Return the tag with this key, or NULL. */
const struct tag *tags_get(const struct tags *tags, const char *key, size_t len);

#endif
