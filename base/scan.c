// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/scan.h"

#include "base/hex.h"

bool scan_peek(const struct scan *s, char c)
{
	return s->p < s->end && *s->p == c;
}

bool scan_char(struct scan *s, char c)
{
	if (!scan_peek(s, c))
		return false;
	s->p++;
	return true;
}

void scan_blanks(struct scan *s)
{
	while (s->p < s->end && scan_is_blank(*s->p))
		s->p++;
}

/* Accept a digit of a number of base @base and return its value, or -1. */
static int scan_digit(struct scan *s, int base)
{
	int digit = s->p < s->end ? hex_digit(*s->p) : -1;

	if (digit >= base)
		return -1;
	s->p += digit >= 0;
	return digit;
}

bool scan_number(struct scan *s, int64_t *value)
{
	bool minus = scan_char(s, '-');
	bool fits = true;
	uint64_t n = 0;
	int base = 10, digit;

	if (!minus)
		scan_char(s, '+');
	if (s->p == s->end || !scan_is_digit(*s->p))
		return false;
	if (scan_char(s, '0')) {
		if (scan_char(s, 'x'))
			base = 16;
		else if (s->p < s->end && scan_is_digit(*s->p))
			return false;	/* octal to an assembler, but no compiler emits it */
		else
			base = 1;	/* 0 and no more digits */
	}
	if (base == 16 && (s->p == s->end || hex_digit(*s->p) < 0))
		return false;
	while ((digit = scan_digit(s, base)) >= 0) {
		fits = fits && n <= (UINT64_MAX - digit) / base;
		n = n * base + digit;
	}
	*value = (int64_t)(minus ? -n : n);
	return fits && !(minus && n > (uint64_t)INT64_MAX + 1);
}

static bool is_name(char c)
{
	unsigned char lower = (unsigned char)c | 0x20;

	return (lower >= 'a' && lower <= 'z') || scan_is_digit(c) || c == '_' || c == '.' ||
	       c == '$' || (unsigned char)c >= 0x80;
}

size_t scan_name(struct scan *s, const char **name)
{
	*name = s->p;
	while (s->p < s->end && is_name(*s->p))
		s->p++;
	return s->p - *name;
}

size_t scan_symbol(struct scan *s, const char **symbol)
{
	*symbol = s->p;
	if (s->p == s->end || !is_name(*s->p) || scan_is_digit(*s->p))
		return 0;
	while (s->p < s->end && (is_name(*s->p) || *s->p == '@'))
		s->p++;
	return s->p - *symbol;
}
