// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/uuid.h"

#include <string.h>

#include "base/hex.h"

#define SHA1_BLOCK	64
#define SHA1_LENGTH	8	/* of the number of bits at the end */

/* SHA-1, FIPS 180-4. UUIDs need no protection from collisions that somebody computes. */
struct sha1 {
	uint32_t state[5];
	uint8_t block[SHA1_BLOCK];
	uint64_t bytes;
};

static uint32_t sha1_rotate(uint32_t value, unsigned int bits)
{
	return value << bits | value >> (32 - bits);
}

/* Return f(t; b, c, d) + K(t). */
static uint32_t sha1_function(unsigned int t, const uint32_t v[5])
{
	switch (t / 20) {
	case 0:
		return ((v[1] & v[2]) | (~v[1] & v[3])) + 0x5a827999;
	case 1:
		return (v[1] ^ v[2] ^ v[3]) + 0x6ed9eba1;
	case 2:
		return ((v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])) + 0x8f1bbcdc;
	}
	return (v[1] ^ v[2] ^ v[3]) + 0xca62c1d6;
}

static void sha1_block(struct sha1 *sha1)
{
	uint32_t w[80] = { 0 }, v[5];

	memcpy(v, sha1->state, sizeof(v));
	for (unsigned int t = 0; t < 80; t++) {
		uint32_t next = 0;

		for (unsigned int i = 4 * t; t < 16 && i < 4 * t + 4; i++)
			next = next << 8 | sha1->block[i];
		w[t] = t < 16 ? next :
				sha1_rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
		next = sha1_rotate(v[0], 5) + sha1_function(t, v) + v[4] + w[t];
		memmove(v + 1, v, 4 * sizeof(*v));
		v[2] = sha1_rotate(v[2], 30);
		v[0] = next;
	}
	for (int i = 0; i < 5; i++)
		sha1->state[i] += v[i];
}

static void sha1_add(struct sha1 *sha1, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++) {
		sha1->block[sha1->bytes++ % SHA1_BLOCK] = bytes[i];
		if (sha1->bytes % SHA1_BLOCK == 0)
			sha1_block(sha1);
	}
}

static void sha1_end(struct sha1 *sha1)
{
	uint64_t bits = sha1->bytes * 8;
	uint8_t length[SHA1_LENGTH];

	for (int i = 0; i < SHA1_LENGTH; i++)
		length[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha1_add(sha1, "\x80", 1);
	while (sha1->bytes % SHA1_BLOCK != SHA1_BLOCK - SHA1_LENGTH)
		sha1_add(sha1, "", 1);
	sha1_add(sha1, length, sizeof(length));
}

void uuid_of_name(const uint8_t space[UUID_BYTES], const void *name, size_t len,
		  char text[UUID_TEXT])
{
	struct sha1 sha1 = { .state = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
					0xc3d2e1f0 } };
	size_t at = 0;

	sha1_add(&sha1, space, UUID_BYTES);
	sha1_add(&sha1, name, len);
	sha1_end(&sha1);
	for (unsigned int i = 0; i < 2 * UUID_BYTES; i++) {
		unsigned int digit = sha1.state[i / 8] >> (28 - 4 * (i % 8)) & 15;

		if (i == 8 || i == 12 || i == 16 || i == 20)
			text[at++] = '-';
		/* The version and the variant. */
		text[at++] = HEX_DIGITS[i == 12 ? 5 : i == 16 ? 8 | (digit & 3) : digit];
	}
	text[at] = '\0';
}
