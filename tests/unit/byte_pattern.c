/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* usdt/byte_pattern.c: patterns that match once, not at all, or twice. */
#include "usdt/byte_pattern.h"

#include <errno.h>
#include <stdint.h>

#include "tests/unit/check.h"

static const unsigned char code[] = {
	0x55, 0x48, 0x8b, 0x87, 0x10, 0x02, 0x00, 0x00,	/* mov 0x210(%rdi),%rax */
	0x48, 0x8b, 0x8f, 0xf8, 0xff, 0xff, 0xff, 0xc3,	/* mov -8(%rdi),%rcx; ret */
};

static void matches(void)
{
	static const struct {
		const char *pattern;
		int err;
		int64_t offset;
	} table[] = {
		{ "48 8b 87 @@@@@@@@", 0, 0x210 },
		{ "488b87@@@@@@@@48", 0, 0x210 },
		{ "48 8b 8f @@@@@@@@ c3", 0, -8 },
		{ "@@@@@@@@ c3", 0, -8 },
		{ "8b ?? @@@@@@@@ 48", 0, 0x210 },
		{ "48 8b ?? @@@@@@@@", -EINVAL, 0 },	/* twice */
		{ "8b 87 @@@@@@@@ 49", -EINVAL, 0 },
		{ "48 8b", -EINVAL, 0 },		/* twice */
		{ "c3 @@@@@@@@", -EINVAL, 0 },		/* beyond the end */
		{ "48 8", -EINVAL, 0 },
		{ "4g", -EINVAL, 0 },
		{ "8B 87 @@@@@@@@", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int64_t offset = 0;
		int err = byte_pattern_find(code, sizeof(code), table[i].pattern, &offset);

		CHECK(err == table[i].err && (err || offset == table[i].offset), "%s: %d, %ld",
		      table[i].pattern, err, (long)offset);
	}
}

/* Every truncation ends without a match, and without reading beyond it. */
static void truncated(void)
{
	for (size_t size = 0; size < 8; size++) {
		unsigned char *copy = malloc(size ? size : 1);
		int64_t offset;

		memcpy(copy, code, size);
		CHECK(byte_pattern_find(copy, size, "48 8b 87 @@@@@@@@", &offset) == -EINVAL,
		      "%zu", size);
		free(copy);
	}
}

int main(void)
{
	RUN(matches);
	RUN(truncated);
	return check_done();
}
