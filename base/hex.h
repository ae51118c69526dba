/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hexadecimal digits. */
#ifndef BASE_HEX_H
#define BASE_HEX_H

#define HEX_DIGITS	"0123456789abcdef"

/* Return the value of @c, or -1 if it is none of HEX_DIGITS. */
static inline int hex_lower(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The same for digits of either case. */
static inline int hex_digit(char c)
{
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : hex_lower(c);
}

/* Return the byte of two of HEX_DIGITS at @p, or -1; does not read behind one that is none. */
static inline int hex_byte(const char *p)
{
	int high = hex_lower(p[0]), low = high < 0 ? -1 : hex_lower(p[1]);

	return low < 0 ? -1 : high << 4 | low;
}

#endif
