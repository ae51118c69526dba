/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* loader/inflate.c: each kind of block, damaged input, and the embedded objects. */
#include "loader/inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/embed.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define HEAD "\x1f\x8b\x08\0\0\0\0\0\0\x03"

static void known_blocks(void)
{
	static const struct {
		const char *data;
		size_t size;
		const char *text;
	} cases[] = {
#define CASE(text, bytes) { HEAD bytes, sizeof(HEAD bytes) - 1, text }
		CASE("abc", "\x01\x03\0\xfc\xff" "abc\xc2\x41\x24\x35\x03\0\0\0"),
		CASE("abcabcabcabcd",
		     "\x4b\x4c\x4a\x4e\x84\xa1\x14\0\x53\xd0\x33\xb9\x0d\0\0\0"),
		CASE("", "\x03\0\0\0\0\0\0\0\0\0"),
	};
	void *out;
	size_t size;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err = inflate_gzip(cases[i].data, cases[i].size, &out, &size);

		CHECK(!err && size == strlen(cases[i].text) && !memcmp(out, cases[i].text, size),
		      "%zu: %d", i, err);
		if (!err)
			free(out);
		for (size_t cut = 0; cut < cases[i].size; cut++)
			CHECK(inflate_gzip(cases[i].data, cut, &out, &size) == -EINVAL,
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
		int err = inflate_gzip(all[i][0], (size_t)(all[i][1] - all[i][0]), &out, &size);

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
			copy[10 + random_next() % (size - 18)] ^= (unsigned char)random_next();
		if (!inflate_gzip(copy, size, &out, &out_size))
			free(out);
	}
	free(copy);
}

int main(void)
{
	RUN(known_blocks);
	RUN(objects);
	RUN(damaged);
	return check_done();
}
