/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Patterns of machine code that contain an offset to extract, for example
 * "48 8b 87 @@@@@@@@": bytes in lower-case hexadecimal, "@@@@@@@@" for the
 * four bytes of a little-endian offset, "??" for any byte. Blanks are ignored.
 */
#ifndef USDT_BYTE_PATTERN_H
#define USDT_BYTE_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Search the @size bytes at @code for @pattern. Return 0 and the sign-extended
 * offset in *@offset, or -EINVAL unless @pattern occurs exactly once;
 * *@offset is then undefined.
 */
int byte_pattern_find(const unsigned char *code, size_t size, const char *pattern,
		      int64_t *offset);

#endif
