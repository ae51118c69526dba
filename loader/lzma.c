// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/lzma.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define HEADER		13	/* properties, size of the dictionary, size of the output */
#define STATES		12
#define POSITIONS	16	/* 2^pb at most */
#define SLOTS_TREE	4	/* the first slot of distances with a tree of bits .. */
#define SLOTS_ALIGN	14	/* .. and with direct bits before the lowest four */
#define LITERAL		0x300	/* probabilities of a context of a literal */
#define CONTEXT_BITS	4	/* lc + lp at most */
#define LENGTH_MIN	2
#define PROBABILITY	1024	/* of a bit that is 0: one half, in 2048ths */

struct length_code {
	uint16_t is_middle, is_high;
	uint16_t low[POSITIONS][8], middle[POSITIONS][8], high[256];
};

/* The probabilities of bits, by their contexts. */
struct model {
	uint16_t is_match[STATES][POSITIONS];
	uint16_t is_repeat[STATES], is_other[STATES], is_third[STATES], is_fourth[STATES];
	uint16_t is_long[STATES][POSITIONS];
	uint16_t slot[4][64];
	uint16_t tree[128 - SLOTS_ALIGN + 1];
	uint16_t align[16];
	struct length_code match, repeat;
	uint16_t literal[LITERAL << CONTEXT_BITS];
};

struct lzma {
	const uint8_t *in, *end;
	uint8_t *out;
	size_t at;			/* bytes of output */
	uint32_t range, code;
	unsigned int lc, lp, pb;
	unsigned int state;		/* the kinds of the last symbols */
	uint32_t distance[4];		/* the last ones, less 1; the latest first */
	bool failed;			/* the input is truncated or malformed */
	struct model model;
};

static void range_normalize(struct lzma *s)
{
	if (s->range >> 24)
		return;
	s->range <<= 8;
	s->code <<= 8;
	if (s->in < s->end)
		s->code |= *s->in++;
	else
		s->failed = true;
}

static unsigned int range_bit(struct lzma *s, uint16_t *zero)
{
	uint32_t bound = (s->range >> 11) * *zero;
	bool bit = s->code >= bound;

	if (bit) {
		s->range -= bound;
		s->code -= bound;
		*zero -= *zero >> 5;
	} else {
		s->range = bound;
		*zero += (2 * PROBABILITY - *zero) >> 5;
	}
	range_normalize(s);
	return bit;
}

/* Return @value with @bits bits appended that have no context. */
static uint32_t range_direct(struct lzma *s, uint32_t value, unsigned int bits)
{
	while (bits--) {
		bool bit;

		s->range >>= 1;
		bit = s->code >= s->range;
		s->code -= bit ? s->range : 0;
		range_normalize(s);
		value = value << 1 | bit;
	}
	return value;
}

/* Return a number of @bits bits, the highest first. */
static unsigned int range_tree(struct lzma *s, uint16_t *tree, unsigned int bits)
{
	unsigned int node = 1;

	while (!(node >> bits))
		node = node << 1 | range_bit(s, &tree[node]);
	return node - (1u << bits);
}

/* Return a number of @bits bits, the lowest first. */
static unsigned int range_reverse(struct lzma *s, uint16_t *tree, unsigned int bits)
{
	unsigned int node = 1, value = 0;

	for (unsigned int i = 0; i < bits; i++) {
		unsigned int bit = range_bit(s, &tree[node]);

		node = node << 1 | bit;
		value |= bit << i;
	}
	return value;
}

static unsigned int lzma_position(const struct lzma *s)
{
	return s->at & ((1u << s->pb) - 1);
}

static size_t lzma_length(struct lzma *s, struct length_code *code)
{
	unsigned int position = lzma_position(s);

	if (!range_bit(s, &code->is_middle))
		return LENGTH_MIN + range_tree(s, code->low[position], 3);
	if (!range_bit(s, &code->is_high))
		return LENGTH_MIN + 8 + range_tree(s, code->middle[position], 3);
	return LENGTH_MIN + 16 + range_tree(s, code->high, 8);
}

/* Return the distance of a match of @length bytes, less 1; UINT32_MAX marks the end. */
static uint32_t lzma_distance(struct lzma *s, size_t length)
{
	size_t group = length < LENGTH_MIN + 3 ? length - LENGTH_MIN : 3;
	unsigned int slot = range_tree(s, s->model.slot[group], 6), bits = slot / 2 - 1;
	uint32_t distance;

	if (slot < SLOTS_TREE)
		return slot;
	distance = 2 | (slot & 1);
	if (slot < SLOTS_ALIGN) {
		distance <<= bits;
		return distance + range_reverse(s, s->model.tree + distance - slot, bits);
	}
	distance = range_direct(s, distance, bits - 4) << 4;
	return distance + range_reverse(s, s->model.align, 4);
}

/* Append @length bytes from the last distance. */
static void lzma_copy(struct lzma *s, size_t length)
{
	if (s->distance[0] >= s->at || length > LZMA_MAX - s->at) {
		s->failed = true;
		return;
	}
	for (; length; length--, s->at++)
		s->out[s->at] = s->out[s->at - s->distance[0] - 1];
}

static void lzma_literal(struct lzma *s)
{
	unsigned int before = s->at ? s->out[s->at - 1] : 0, symbol = 1;
	size_t context = (s->at & ((1u << s->lp) - 1)) << s->lc | before >> (8 - s->lc);
	uint16_t *literal = s->model.literal + LITERAL * context;

	if (s->at == LZMA_MAX || (s->state >= 7 && s->distance[0] >= s->at)) {
		s->failed = true;
		return;
	}
	/* After a match, the byte that would continue it is a context as far as it is the same. */
	if (s->state >= 7) {
		unsigned int other = s->out[s->at - s->distance[0] - 1];
		bool same = true;

		for (int i = 7; same && i >= 0; i--) {
			unsigned int expected = other >> i & 1;
			unsigned int bit = range_bit(s, &literal[((1 + expected) << 8) + symbol]);

			symbol = symbol << 1 | bit;
			same = bit == expected;
		}
	}
	while (symbol < 0x100)
		symbol = symbol << 1 | range_bit(s, &literal[symbol]);
	s->out[s->at++] = (uint8_t)symbol;
	s->state = s->state < 4 ? 0 : s->state < 10 ? s->state - 3 : s->state - 6;
}

/* Make the last distance number @n of those before the latest one. */
static void lzma_recall(struct lzma *s, unsigned int n, uint32_t distance)
{
	for (; n; n--)
		s->distance[n] = s->distance[n - 1];
	s->distance[0] = distance;
}

/* Append a match at one of the last distances. */
static void lzma_repeat(struct lzma *s)
{
	struct model *model = &s->model;
	unsigned int n = 0;
	size_t length = 1;

	if (range_bit(s, &model->is_other[s->state])) {
		n = 1;
		if (range_bit(s, &model->is_third[s->state]))
			n = 2 + range_bit(s, &model->is_fourth[s->state]);
		lzma_recall(s, n, s->distance[n]);
	}
	if (n || range_bit(s, &model->is_long[s->state][lzma_position(s)])) {
		length = lzma_length(s, &model->repeat);
		s->state = s->state < 7 ? 8 : 11;
	} else {
		s->state = s->state < 7 ? 9 : 11;
	}
	lzma_copy(s, length);
}

/* Decode until the end marker. Return whether it is there. */
static bool lzma_symbols(struct lzma *s)
{
	while (!s->failed) {
		struct model *model = &s->model;
		size_t length;

		if (!range_bit(s, &model->is_match[s->state][lzma_position(s)])) {
			lzma_literal(s);
			continue;
		}
		if (range_bit(s, &model->is_repeat[s->state])) {
			lzma_repeat(s);
			continue;
		}
		s->state = s->state < 7 ? 7 : 10;
		length = lzma_length(s, &model->match);
		lzma_recall(s, 3, lzma_distance(s, length));
		if (s->distance[0] == UINT32_MAX)
			return !s->failed && !s->code && s->in == s->end;
		lzma_copy(s, length);
	}
	return false;
}

/* Read the header, and the first bytes of the range coder. Return whether they are valid. */
static bool lzma_header(struct lzma *s, const uint8_t *data, size_t size)
{
	if (size < HEADER + 5 || data[HEADER])
		return false;
	s->lc = data[0] % 9;
	s->lp = data[0] / 9 % 5;
	s->pb = data[0] / 45;
	for (int i = 5; i < HEADER; i++)
		s->failed |= data[i] != 0xff;
	s->in = data + HEADER + 5;
	s->end = data + size;
	s->range = UINT32_MAX;
	for (int i = -4; i < 0; i++)
		s->code = s->code << 8 | s->in[i];
	return !s->failed && s->lc + s->lp <= CONTEXT_BITS && 1u << s->pb <= POSITIONS;
}

int lzma_decode(const void *data, size_t size, void **out, size_t *out_size)
{
	struct lzma *s = calloc(1, sizeof(*s));
	uint16_t *zero = s ? (uint16_t *)&s->model : NULL;
	int err = -EINVAL;

	if (!s)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(s->model) / sizeof(*zero); i++)
		zero[i] = PROBABILITY;
	if (!lzma_header(s, data, size))
		goto cleanup;
	s->out = malloc(LZMA_MAX);
	err = s->out ? 0 : -ENOMEM;
	if (!err && !lzma_symbols(s)) {
		free(s->out);
		err = -EINVAL;
	}
	if (!err) {
		*out = s->out;
		*out_size = s->at;
	}
cleanup:
	free(s);
	return err;
}
