/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UTF-8 in foreign text, which need not be valid. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* Return the length of @len bytes without a character whose beginning only is at their end. */
size_t utf8_whole(const char *text, size_t len);

/* If the string @text fills its @size bytes, it may have been cut: drop such a character. */
void utf8_trim(char *text, size_t size);

#endif
