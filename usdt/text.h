/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading of texts of /proc and of tables. The C library's functions for it are 4 KiB larger. */
#ifndef USDT_TEXT_H
#define USDT_TEXT_H

#include <stdint.h>

/*
 * Parse a number of base @base, 10 or 16, as strtoull() does: after white space and a sign; without
 * digits it is 0, and too large ones are UINT64_MAX. Set *@end, unless NULL, to the end of the
 * digits, or to @text if there are none.
 */
uint64_t text_number(const char *text, char **end, unsigned int base);

/* Return the first @part in @text, or NULL. */
char *text_find(const char *text, const char *part);

#endif
