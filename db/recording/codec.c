// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/codec.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES	10	/* of the longest number */

/* Make room for @len bytes more. */
static bool encoder_room(struct encoder *e, size_t len)
{
	size_t room = e->room ? e->room : 4096;
	uint8_t *data;

	if (e->failed || len > e->limit - e->len)
		return !(e->failed = true);
	if (len <= e->room - e->len)
		return true;
	while (room < e->len + len)
		room *= 2;
	data = realloc(e->data, room);
	if (!data)
		return !(e->failed = true);
	e->data = data;
	e->room = room;
	return true;
}

void encode_number(struct encoder *e, uint64_t value)
{
	if (!encoder_room(e, NUMBER_BYTES))
		return;
	for (; value > 0x7f; value >>= 7)
		e->data[e->len++] = (uint8_t)(value | 0x80);
	e->data[e->len++] = (uint8_t)value;
}

void encode_difference(struct encoder *e, uint64_t a, uint64_t b)
{
	uint64_t difference = a - b;

	encode_number(e, difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0));
}

void encode_bytes(struct encoder *e, const void *data, size_t len)
{
	if (!len || !encoder_room(e, len))
		return;
	memcpy(e->data + e->len, data, len);
	e->len += len;
}

void encode_string(struct encoder *e, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	encode_number(e, text ? len + 1 : 0);
	encode_bytes(e, text, len);
}

void encoder_free(struct encoder *e)
{
	free(e->data);
	*e = (struct encoder){ .limit = e->limit };
}

/* Read nothing more. Return 0. */
static uint64_t decoder_fail(struct decoder *d)
{
	d->failed = true;
	d->at = d->end;
	return 0;
}

uint64_t decode_number(struct decoder *d)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < NUMBER_BYTES && d->at < d->end; i++) {
		uint8_t byte = *d->at++;

		value |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80))
			return i == NUMBER_BYTES - 1 && byte > 1 ? decoder_fail(d) : value;
	}
	return decoder_fail(d);
}

uint64_t decode_difference(struct decoder *d, uint64_t from)
{
	uint64_t value = decode_number(d);

	return from + (value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

const uint8_t *decode_bytes(struct decoder *d, uint64_t len)
{
	const uint8_t *data = d->at;

	if (d->failed || len > (size_t)(d->end - d->at)) {
		decoder_fail(d);
		return NULL;
	}
	d->at += len;
	return data;
}

const char *decode_string(struct decoder *d, size_t *len)
{
	uint64_t number = decode_number(d);
	const uint8_t *text;

	*len = 0;
	if (!number)
		return NULL;
	text = decode_bytes(d, number - 1);
	if (text && memchr(text, '\0', number - 1)) {
		decoder_fail(d);
		text = NULL;
	}
	*len = text ? number - 1 : 0;
	return (const char *)text;
}

void decode_copy(struct decoder *d, char *to, size_t size)
{
	size_t len;
	const char *text = decode_string(d, &len);

	len = len < size ? len : size - 1;
	if (text)
		memcpy(to, text, len);
	to[len] = '\0';
}

void decode_name(struct decoder *d, char *to, size_t size)
{
	decode_copy(d, to, size);
	for (; *to; to++)
		if (*to < ' ' || *to > '~' || *to == '"' || *to == '\\')
			*to = '?';
}

void crc32c_init(struct crc32c *crc)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value >> 1 ^ (value & 1 ? 0x82f63b78 : 0);
		crc->table[0][i] = value;
	}
	for (int n = 1; n < 8; n++)
		for (uint32_t i = 0; i < 256; i++)
			crc->table[n][i] = crc->table[n - 1][i] >> 8 ^
					   crc->table[0][(uint8_t)crc->table[n - 1][i]];
}

static uint32_t four_bytes(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint32_t crc32c_of(const struct crc32c *crc, const void *data, size_t len)
{
	const uint8_t *at = data, *end = at + len;
	uint32_t value = UINT32_MAX;

	for (; end - at >= 8; at += 8) {
		uint32_t low = value ^ four_bytes(at), high = four_bytes(at + 4);

		value = crc->table[7][low & 0xff] ^ crc->table[6][low >> 8 & 0xff] ^
			crc->table[5][low >> 16 & 0xff] ^ crc->table[4][low >> 24] ^
			crc->table[3][high & 0xff] ^ crc->table[2][high >> 8 & 0xff] ^
			crc->table[1][high >> 16 & 0xff] ^ crc->table[0][high >> 24];
	}
	while (at < end)
		value = value >> 8 ^ crc->table[0][(uint8_t)(value ^ *at++)];
	return ~value;
}
