// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/shape.h"

#include <string.h>

#define REPLACEMENTS_MAX	127	/* the number of one byte */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Return the length of the literal at the start of the @len bytes of @text; 0: there is none. */
static size_t literal_length(const char *text, size_t len)
{
	const char *end;
	size_t n = 0;

	if (*text == '\'' || *text == '"') {
		end = memchr(text + 1, *text, len - 1);
		return end ? (size_t)(end - text) + 1 : len;
	}
	while (n < len && is_digit(text[n]))
		n++;
	return n;
}

uint64_t shape_hash(const char *text, size_t len)
{
	uint64_t hash = 0;
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		n = literal_length(text + i, len - i);
		hash = (hash ^ (n ? 0 : (uint8_t)text[i])) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
		n += !n;
	}
	return hash;
}

bool shape_difference(struct encoder *out, const char *base, size_t base_len, const char *text,
		      size_t len)
{
	size_t count_at = out->len, copied = 0, n, m, i, j;
	uint8_t count = 0;

	encode_number(out, 0);
	for (i = j = 0; i < base_len && j < len; i += n, j += m) {
		n = literal_length(base + i, base_len - i);
		m = literal_length(text + j, len - j);
		if (!n != !m || (!n && base[i] != text[j]) || out->failed)
			return false;
		if (!n || (n == m && !memcmp(base + i, text + j, n))) {
			n = m = n + !n;
			copied += n;
			continue;
		}
		if (count++ == REPLACEMENTS_MAX)
			return false;
		encode_number(out, copied);
		encode_number(out, n);
		encode_number(out, m);
		encode_bytes(out, text + j, m);
		copied = 0;
	}
	if (i < base_len || j < len || out->failed)
		return false;
	out->data[count_at] = count;
	return true;
}

/* Append @n bytes from @from to @text, which has @len bytes. Return the new length. */
static size_t apply_bytes(struct decoder *d, const uint8_t *from, uint64_t n, char *text,
			  size_t len, size_t room)
{
	if (d->failed || n > room - len) {
		d->failed = true;
		return len;
	}
	if (n)
		memcpy(text + len, from, n);
	return len + n;
}

size_t shape_apply(struct decoder *d, const char *base, size_t base_len, char *text, size_t room)
{
	struct decoder from = { .at = (const uint8_t *)base,
				.end = (const uint8_t *)base + base_len };
	uint64_t count = decode_number(d), copied, replaced, inserted;
	const uint8_t *bytes;
	size_t len = 0;

	for (; count && !d->failed && !from.failed; count--) {
		copied = decode_number(d);
		replaced = decode_number(d);
		inserted = decode_number(d);
		bytes = decode_bytes(&from, copied);
		len = apply_bytes(d, bytes, bytes ? copied : 0, text, len, room);
		decode_bytes(&from, replaced);
		bytes = decode_bytes(d, inserted);
		len = apply_bytes(d, bytes, bytes ? inserted : 0, text, len, room);
	}
	d->failed |= from.failed;
	return apply_bytes(d, from.at, (uint64_t)(from.end - from.at), text, len, room);
}
