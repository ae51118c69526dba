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

static bool is_letter(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

bool shape_is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i], next = i + 1 < len ? text[i + 1] : ' ';

		if (!is_letter(c) && !is_digit(c) && (!c || !strchr("_ \t\r\n.,;()=<>+-*/", c)))
			return false;
		if ((c == '-' && next == '-') || (c == '/' && next == '*'))
			return false;
	}
	return true;
}

static bool all_digits(const uint8_t *text, uint64_t len)
{
	uint64_t n = 0;

	while (n < len && is_digit((char)text[n]))
		n++;
	return n && n == len;
}

/* Return whether @c of a plain text, beside a digit, belongs to the same token. */
static bool joins_digit(uint8_t c)
{
	return is_letter((char)c) || is_digit((char)c) || c == '_' || c == '.';
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

size_t shape_apply(struct decoder *d, const char *base, size_t base_len, char *text, size_t room,
		   enum shape_change *change)
{
	struct decoder from = { .at = (const uint8_t *)base,
				.end = (const uint8_t *)base + base_len };
	uint64_t count = decode_number(d), copied, replaced, inserted;
	const uint8_t *bytes, *old;
	size_t len = 0;

	*change = count ? SHAPE_NUMBERS : SHAPE_SAME;
	for (; count && !d->failed && !from.failed; count--) {
		copied = decode_number(d);
		replaced = decode_number(d);
		inserted = decode_number(d);
		bytes = decode_bytes(&from, copied);
		len = apply_bytes(d, bytes, bytes ? copied : 0, text, len, room);
		old = decode_bytes(&from, replaced);
		bytes = decode_bytes(d, inserted);
		if (!old || !bytes || !all_digits(old, replaced) || !all_digits(bytes, inserted) ||
		    old == (const uint8_t *)base || joins_digit(old[-1]) ||
		    (from.at < from.end && joins_digit(*from.at)))
			*change = SHAPE_OTHER;
		len = apply_bytes(d, bytes, bytes ? inserted : 0, text, len, room);
	}
	d->failed |= from.failed;
	return apply_bytes(d, from.at, (uint64_t)(from.end - from.at), text, len, room);
}
