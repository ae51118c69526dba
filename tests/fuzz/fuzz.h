/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the fuzz targets have in common. A target is a file here with LLVMFuzzerTestOneInput(); its
 * seeds are in seeds/TARGET/ and made by seeds.py. ASan and UBSan watch it; what else must hold is
 * said with REQUIRE.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the run as a finding unless @cond; the rest is a printf format that shows what was seen. */
#define REQUIRE(cond, ...)                                                           \
	do {                                                                         \
		if (!(cond)) {                                                       \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #cond);   \
			fprintf(stderr, "" __VA_ARGS__);                             \
			fprintf(stderr, "\n");                                       \
			abort();                                                     \
		}                                                                    \
	} while (0)

/* What is left of the input. */
struct input {
	const uint8_t *at;
	size_t left;
};

/* The next byte, 0 at the end. */
static inline uint8_t input_byte(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

/* The next @size bytes to @to; what is missing is 0. */
static inline void input_bytes(struct input *in, void *to, size_t size)
{
	size_t n = size < in->left ? size : in->left;

	memset(to, 0, size);
	if (n)
		memcpy(to, in->at, n);
	in->at += n;
	in->left -= n;
}

static inline uint64_t input_u64(struct input *in)
{
	uint64_t value;

	input_bytes(in, &value, sizeof(value));
	return value;
}

/* The bytes up to @end, which is passed over, or all: with a NUL behind them, to be freed. */
static inline char *input_until(struct input *in, char end)
{
	const uint8_t *stop = in->left ? memchr(in->at, end, in->left) : NULL;
	size_t n = stop ? (size_t)(stop - in->at) : in->left;
	char *text = malloc(n + 1);

	if (!text)
		abort();
	input_bytes(in, text, n);
	text[n] = '\0';
	if (stop)
		input_byte(in);
	return text;
}

/* A copy of @size bytes at @data that ends where its memory does, to be freed. */
static inline void *input_copy(const void *data, size_t size)
{
	void *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	return copy;
}

#endif
