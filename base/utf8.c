// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/utf8.h"

#include <string.h>

size_t utf8_whole(const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t last = len;

	while (last && len - last < 3 && (bytes[last - 1] & 0xc0) == 0x80)
		last--;
	/* The first byte of a character determines its length. */
	if (last && bytes[last - 1] >= 0xc0)
		return len - last < (bytes[last - 1] >= 0xf0 ? 3u : bytes[last - 1] >= 0xe0 ? 2u :
				     1u) ?
		       last - 1 : len;
	return len;
}

void utf8_trim(char *text, size_t size)
{
	size_t len = strlen(text);

	if (len == size - 1)
		text[utf8_whole(text, len)] = '\0';
}
