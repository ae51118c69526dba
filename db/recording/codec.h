/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The primitives of recordings, see docs/recording.md: numbers of variable length, and strings.
 * Appending and reading return no error: after the first one, ->failed is set, nothing more is
 * appended, and what is read is 0 or "".
 */
#ifndef DB_RECORDING_CODEC_H
#define DB_RECORDING_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Empty if all zero. */
struct encoder {
	uint8_t *data;			/* owned, ->room bytes; NULL: none yet */
	size_t len, room;
	size_t limit;			/* bytes that ->data may grow to */
	bool failed;			/* no memory, or the limit is reached */
};

/* Append @value in 1 to 10 bytes, 7 bits each, the lowest first; bit 7: more bytes follow. */
void encode_number(struct encoder *e, uint64_t value);

/* Append the difference @a - @b so that small ones of either sign are short. */
void encode_difference(struct encoder *e, uint64_t a, uint64_t b);

/* Append @len bytes without their length. */
void encode_bytes(struct encoder *e, const void *data, size_t len);

/* Append the length of @text plus 1, and its bytes; 0 for NULL. */
void encode_string(struct encoder *e, const char *text);

void encoder_free(struct encoder *e);

/* Bytes to read, borrowed. */
struct decoder {
	const uint8_t *at, *end;
	bool failed;			/* there were fewer than expected, or they are invalid */
};

uint64_t decode_number(struct decoder *d);

/* Return @from plus the difference that follows. */
uint64_t decode_difference(struct decoder *d, uint64_t from);

/* Return the next @len bytes, borrowed, or NULL if there are fewer. */
const uint8_t *decode_bytes(struct decoder *d, uint64_t len);

/*
 * Return the bytes of a string, borrowed and without a NUL, and set *@len; NULL if it is unknown.
 * A string with a NUL in it is invalid.
 */
const char *decode_string(struct decoder *d, size_t *len);

/* Copy a string to the @size bytes of @to, cut if longer; "" if it is unknown. */
void decode_copy(struct decoder *d, char *to, size_t size);

/*
 * The same of a name that is printed as it is: each byte that is not printable ASCII, and each
 * quote and backslash, becomes a ?.
 */
void decode_name(struct decoder *d, char *to, size_t size);

/* CRC32C: polynomial 0x1edc6f41, reflected, as in iSCSI (RFC 3720). */
struct crc32c {
	uint32_t table[8][256];		/* [n]: of a byte that n others follow */
};

void crc32c_init(struct crc32c *crc);

/* Return the CRC32C of the @len bytes of @data. */
uint32_t crc32c_of(const struct crc32c *crc, const void *data, size_t len);

#endif
