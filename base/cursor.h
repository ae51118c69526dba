/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bounds-checked access to untrusted bytes.
 *
 * A read past the end returns zero, sets ->bad and leaves the position at
 * the end, so that a parser may read a whole header and check ->bad once.
 * The bytes are borrowed; they must outlive the cursor. Sizes and positions
 * are in bytes.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const unsigned char *data;
	size_t size;
	size_t pos;
	bool big_endian;
	bool bad;
};

/* Return a cursor at the start of the @size bytes at @data. */
static inline struct cursor cursor_over(const void *data, size_t size, bool big_endian)
{
	return (struct cursor){ .data = data, .size = size, .big_endian = big_endian };
}

/* Return the number of bytes between the position and the end. */
static inline size_t cursor_left(const struct cursor *c)
{
	return c->size - c->pos;
}

/* Consume @n bytes. Return them, or NULL with ->bad set if fewer are left. */
static inline const unsigned char *cursor_bytes(struct cursor *c, size_t n)
{
	const unsigned char *p;

	if (n > cursor_left(c)) {
		c->bad = true;
		c->pos = c->size;
		return NULL;
	}
	p = c->size ? c->data + c->pos : c->data;
	c->pos += n;
	return p;
}

/* Move to absolute position @pos; past the end sets ->bad. */
static inline void cursor_seek(struct cursor *c, uint64_t pos)
{
	if (pos > c->size) {
		c->bad = true;
		pos = c->size;
	}
	c->pos = (size_t)pos;
}

/* Consume an unsigned integer of @n bytes (1, 2, 4, 8) in the cursor's byte order. */
static inline uint64_t cursor_uint(struct cursor *c, unsigned int n)
{
	const unsigned char *p = cursor_bytes(c, n);
	uint64_t value = 0;

	for (unsigned int i = 0; p && i < n; i++)
		value |= (uint64_t)p[i] << 8 * (c->big_endian ? n - 1 - i : i);
	return value;
}

/*
 * Consume a NUL-terminated string. Return it, with its length without the NUL
 * in *@len, or NULL with ->bad set if the bytes end before a NUL.
 */
static inline const char *cursor_string(struct cursor *c, size_t *len)
{
	for (size_t n = 0; n < cursor_left(c); n++) {
		const char *s = (const char *)c->data + c->pos;

		if (!s[n]) {
			c->pos += n + 1;
			*len = n;
			return s;
		}
	}
	c->bad = true;
	c->pos = c->size;
	*len = 0;
	return NULL;
}

#endif
