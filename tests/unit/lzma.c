/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* loader/lzma.c: each kind of symbol, damaged input, and the embedded objects. */
#include "loader/lzma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/embed.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

/* The size of the dictionary, and no size of the output. */
#define HEAD "\0\0\x04\0\xff\xff\xff\xff\xff\xff\xff\xff"

static void known_texts(void)
{
	static const struct {
		const char *data;
		size_t size;
		const char *text;
	} cases[] = {
#define CASE(text, properties, bytes)	\
	{ properties HEAD bytes, sizeof(properties HEAD bytes) - 1, text }
		CASE("abc", "\xa2",
		     "\x00\x30\x98\x88\x70\x7f\xff\xff\xff\xf8\x00\x00\x00"),
		CASE("abcabcabcabcd", "\x5d",
		     "\x00\x30\x98\x88\xa7\xea\x9d\xc6\x20\xcf\xff\xff\xb0\xb2\x00\x00"),
		CASE("", "\x00",
		     "\x00\x83\xff\xfb\xff\xff\xc0\x00\x00\x00"),
		CASE("0123456789abcdef-0123456789abcdef+0123456789abcdeX-0123456789abcdef", "\xc0",
		     "\x00\x18\x0c\x42\x43\x5b\xcb\x6a\x54\xbb\x07\x6c\x7d\xaf\xb6\x1e"
		     "\x79\x11\x43\xf4\xb1\x95\xbc\xe3\x2f\x70\xdd\x78\xe1\x87\xff\xff"
		     "\xeb\x3f\x80\x00"),
	};
	void *out;
	size_t size;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err = lzma_decode(cases[i].data, cases[i].size, &out, &size);

		CHECK(!err && size == strlen(cases[i].text) && !memcmp(out, cases[i].text, size),
		      "%zu: %d", i, err);
		if (!err)
			free(out);
		for (size_t cut = 0; cut < cases[i].size; cut++)
			CHECK(lzma_decode(cases[i].data, cut, &out, &size) == -EINVAL,
			      "%zu of %zu: %zu bytes", cut, cases[i].size, i);
	}
}

static void objects(void)
{
	static const unsigned char *const all[][2] = {
		{ bpf_statement, bpf_statement_end }, { bpf_trace, bpf_trace_end },
		{ bpf_locks, bpf_locks_end },
	};
	void *out;
	size_t size;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int err = lzma_decode(all[i][0], (size_t)(all[i][1] - all[i][0]), &out, &size);

		CHECK(!err && size > 4096 && !memcmp(out, "\x7f" "ELF", 4), "%zu: %d", i, err);
		if (!err)
			free(out);
	}
}

/* Damaged input ends, without an access out of bounds. */
static void damaged(void)
{
	size_t size = (size_t)(bpf_trace_end - bpf_trace), out_size;
	unsigned char *copy = malloc(size);
	void *out;

	for (int round = 0; copy && round < 2000; round++) {
		memcpy(copy, bpf_trace, size);
		for (int i = 0; i <= round % 3; i++)
			copy[random_next() % size] ^= (unsigned char)random_next();
		if (!lzma_decode(copy, size, &out, &out_size))
			free(out);
	}
	free(copy);
}

int main(void)
{
	RUN(known_texts);
	RUN(objects);
	RUN(damaged);
	return check_done();
}
