// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/byte_pattern.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hex.h"

/* Match @pattern against the start of @code. *@at becomes the position of its offset. */
static bool pattern_matches(const char *pattern, const unsigned char *code, size_t size,
			    size_t *at)
{
	size_t n = 0;

	while (*pattern) {
		if (*pattern == ' ') {
			pattern++;
		} else if (!strncmp(pattern, "@@@@@@@@", 8)) {
			*at = n;
			n += 4;
			pattern += 8;
		} else if (!strncmp(pattern, "??", 2)) {
			n++;
			pattern += 2;
		} else {
			if (n >= size || code[n] != hex_byte(pattern))
				return false;
			n++;
			pattern += 2;
		}
	}
	return n <= size;
}

int byte_pattern_find(const unsigned char *code, size_t size, const char *pattern, int64_t *offset)
{
	size_t at = 0, found = 0;

	for (size_t i = 0; i < size; i++) {
		struct cursor c = cursor_over(code + i, size - i, false);

		if (!pattern_matches(pattern, code + i, size - i, &at))
			continue;
		cursor_seek(&c, at);
		*offset = (int32_t)cursor_uint(&c, 4);
		found++;
	}
	return found == 1 ? 0 : -EINVAL;
}
