// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/text.h"

#include <stdbool.h>
#include <string.h>

static unsigned int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	c |= 'a' ^ 'A';
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10 : UINT32_MAX;
}

uint64_t text_number(const char *text, char **end, unsigned int base)
{
	const char *p = text + strspn(text, " \t\n\v\f\r");
	bool negative = *p == '-', large = false;
	uint64_t value = 0;

	p += *p == '-' || *p == '+';
	if (base == 16 && *p == '0' && (p[1] | 0x20) == 'x' && digit_value(p[2]) < base)
		p += 2;
	for (; digit_value(*p) < base; text = ++p) {
		large |= __builtin_mul_overflow(value, base, &value);
		large |= __builtin_add_overflow(value, digit_value(*p), &value);
	}
	if (end)
		*end = (char *)text;
	return large ? UINT64_MAX : negative ? -value : value;
}

char *text_find(const char *text, const char *part)
{
	return memmem(text, strlen(text), part, strlen(part));
}
