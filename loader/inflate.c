// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/inflate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEADER		10	/* of gzip, without optional fields */
#define TRAILER		8	/* checksum and size */
#define BITS_MAX	15	/* of a code */
#define LITERALS	288
#define DISTANCES	32
#define END_OF_BLOCK	256

struct inflate {
	const uint8_t *in;
	size_t in_size, in_at;
	uint32_t hold;			/* bits that were read but not used, the next one lowest */
	unsigned int held;		/* number of these bits */
	uint8_t *out;
	size_t out_size, out_at;
	bool failed;			/* the input is truncated or malformed */
};

/* A prefix code: the symbols by length and value, and the number of each length. */
struct code {
	uint16_t count[BITS_MAX + 1];
	uint16_t symbol[LITERALS];
};

/* Return the next @bits bits, or 0 with ->failed. */
static unsigned int take(struct inflate *s, unsigned int bits)
{
	unsigned int value;

	while (s->held < bits) {
		if (s->in_at == s->in_size) {
			s->failed = true;
			return 0;
		}
		s->hold |= (uint32_t)s->in[s->in_at++] << s->held;
		s->held += 8;
	}
	value = s->hold & ((1u << bits) - 1);
	s->hold >>= bits;
	s->held -= bits;
	return value;
}

/* RFC 1951, 3.2.2: codes of one length are consecutive, in the order of their symbols. */
static void code_build(struct code *code, const uint8_t *lengths, unsigned int n)
{
	unsigned int at = 0;

	memset(code->count, 0, sizeof(code->count));
	for (unsigned int bits = 1; bits <= BITS_MAX; bits++) {
		for (unsigned int i = 0; i < n; i++) {
			if (lengths[i] != bits)
				continue;
			code->symbol[at++] = (uint16_t)i;
			code->count[bits]++;
		}
	}
}

/* Return the next symbol, or END_OF_BLOCK with ->failed. */
static unsigned int code_next(struct inflate *s, const struct code *code)
{
	unsigned int value = 0, first = 0, before = 0;

	for (unsigned int bits = 1; bits <= BITS_MAX && !s->failed; bits++) {
		value = value << 1 | take(s, 1);
		first <<= 1;
		if (value >= first && value - first < code->count[bits])
			return code->symbol[before + value - first];
		first += code->count[bits];
		before += code->count[bits];
	}
	s->failed = true;
	return END_OF_BLOCK;
}

/* RFC 1951, 3.2.5: lengths from 3 in steps that double after every four symbols. */
static unsigned int length_of(struct inflate *s, unsigned int symbol)
{
	unsigned int extra = (symbol - 261) / 4;

	if (symbol < 265)
		return symbol - 254;
	if (symbol >= 285)
		return 258;
	return ((4 + (symbol - 261) % 4) << extra) + 3 + take(s, extra);
}

/* .. and distances from 1 in steps that double after every two. */
static unsigned int distance_of(struct inflate *s, unsigned int symbol)
{
	unsigned int extra = symbol / 2 - 1;

	if (symbol < 4)
		return symbol + 1;
	if (symbol >= 30) {
		s->failed = true;
		return 1;
	}
	return ((2 + symbol % 2) << extra) + 1 + take(s, extra);
}

/* Repeat @length bytes of the output from @distance bytes back. */
static void copy_back(struct inflate *s, unsigned int length, unsigned int distance)
{
	if (distance > s->out_at || length > s->out_size - s->out_at) {
		s->failed = true;
		return;
	}
	for (; length; length--, s->out_at++)
		s->out[s->out_at] = s->out[s->out_at - distance];
}

static void put(struct inflate *s, uint8_t byte)
{
	if (s->out_at == s->out_size)
		s->failed = true;
	else
		s->out[s->out_at++] = byte;
}

static void block_coded(struct inflate *s, const struct code *literals,
			const struct code *distances)
{
	unsigned int symbol, length;

	while (!s->failed) {
		symbol = code_next(s, literals);
		if (symbol == END_OF_BLOCK)
			return;
		if (symbol < END_OF_BLOCK) {
			put(s, (uint8_t)symbol);
			continue;
		}
		length = length_of(s, symbol);
		copy_back(s, length, distance_of(s, code_next(s, distances)));
	}
}

static void block_fixed(struct inflate *s)
{
	struct code literals, distances;
	uint8_t lengths[LITERALS];

	memset(lengths, 8, 144);
	memset(lengths + 144, 9, 112);
	memset(lengths + 256, 7, 24);
	memset(lengths + 280, 8, 8);
	code_build(&literals, lengths, LITERALS);
	memset(lengths, 5, DISTANCES);
	code_build(&distances, lengths, DISTANCES);
	block_coded(s, &literals, &distances);
}

/* RFC 1951, 3.2.7: the lengths of both codes, themselves coded. */
static void block_dynamic(struct inflate *s)
{
	static const uint8_t order[] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14,
					 1, 15 };
	unsigned int nliterals = take(s, 5) + 257, ndistances = take(s, 5) + 1;
	unsigned int n = take(s, 4) + 4, at = 0, symbol, repeat;
	uint8_t lengths[LITERALS + DISTANCES] = { 0 };
	struct code literals, distances;

	for (unsigned int i = 0; i < n; i++)
		lengths[order[i]] = (uint8_t)take(s, 3);
	code_build(&literals, lengths, sizeof(order));
	memset(lengths, 0, sizeof(lengths));
	while (!s->failed && at < nliterals + ndistances) {
		uint8_t length = 0;

		symbol = code_next(s, &literals);
		repeat = symbol < 16 ? 1 : symbol == 16 ? 3 + take(s, 2) :
			 symbol == 17 ? 3 + take(s, 3) : 11 + take(s, 7);
		if (symbol < 16)
			length = (uint8_t)symbol;
		else if (symbol == 16 && at)
			length = lengths[at - 1];
		if (at + repeat > nliterals + ndistances)
			s->failed = true;
		for (; repeat && !s->failed; repeat--)
			lengths[at++] = length;
	}
	code_build(&literals, lengths, nliterals);
	code_build(&distances, lengths + nliterals, ndistances);
	block_coded(s, &literals, &distances);
}

static void block_stored(struct inflate *s)
{
	unsigned int length;

	s->hold = 0;
	s->held = 0;
	length = take(s, 16);
	take(s, 16);
	while (length-- && !s->failed)
		put(s, (uint8_t)take(s, 8));
}

int inflate_gzip(const void *data, size_t size, void **out, size_t *out_size)
{
	const uint8_t *in = data, *end = in + size;
	struct inflate s = { .in = in };
	bool last = false;

	if (size < HEADER + TRAILER || in[0] != 0x1f || in[1] != 0x8b || in[2] != 8 || in[3])
		return -EINVAL;
	s.out_size = end[-4] | end[-3] << 8 | end[-2] << 16 | (size_t)end[-1] << 24;
	if (s.out_size > INFLATE_MAX)
		return -EINVAL;
	s.out = malloc(s.out_size + 1);
	if (!s.out)
		return -ENOMEM;
	s.in_at = HEADER;
	s.in_size = size - TRAILER;
	while (!last && !s.failed) {
		last = take(&s, 1);
		switch (take(&s, 2)) {
		case 0:
			block_stored(&s);
			break;
		case 1:
			block_fixed(&s);
			break;
		case 2:
			block_dynamic(&s);
			break;
		default:
			s.failed = true;
		}
	}
	if (s.failed || s.out_at != s.out_size) {
		free(s.out);
		return -EINVAL;
	}
	*out = s.out;
	*out_size = s.out_size;
	return 0;
}
