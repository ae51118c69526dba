/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Texts that differ only in literals, in a recording: the later one is stored as its difference
 * from the first one. A literal is a number of digits, or what is between quotes; that is fast, and
 * a literal that is mistaken costs space only.
 */
#ifndef DB_RECORDING_SHAPE_H
#define DB_RECORDING_SHAPE_H

#include "db/recording/codec.h"

/* Return a hash of the @len bytes of @text without the literals. */
uint64_t shape_hash(const char *text, size_t len);

/*
 * Append the difference of @text from @base: the number of replacements; of each, the bytes of
 * @base before it, the bytes of @base that it replaces, its length and its bytes. Return false if
 * they differ in more than literals; then the caller removes what was appended.
 */
bool shape_difference(struct encoder *out, const char *base, size_t base_len, const char *text,
		      size_t len);

/*
 * Return whether @text has no quotes, comments or other characters that make the meaning of a digit
 * depend on more than its neighbours.
 */
bool shape_is_plain(const char *text, size_t len);

enum shape_change {
	SHAPE_SAME,		/* the texts are equal */
	SHAPE_NUMBERS,		/* if the base is plain, they differ in whole numbers only */
	SHAPE_OTHER,
};

/*
 * Read a difference from @base and write the text to the @room bytes of @text. Return its length;
 * @d->failed if it is invalid or longer.
 */
size_t shape_apply(struct decoder *d, const char *base, size_t base_len, char *text, size_t room,
		   enum shape_change *change);

#endif
