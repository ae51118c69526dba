// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "usdt/fmt.h"

#define FRACTION_BITS	52	/* of a double */
#define EXPONENT_MAX	0x7ff	/* infinite, or no number */
#define EXPONENT_ONE	1075	/* the value is the mantissa, an integer */
#define LIMB		1000000000u
#define LIMB_DIGITS	9
#define LIMBS		90	/* 2^-1074 has 767 - 16 digits, of 5^1074 times the mantissa */

/* A large integer, of limbs in base 10^9, the lowest first. */
struct integer {
	uint32_t limb[LIMBS];
	size_t count;
};

static void integer_multiply(struct integer *n, uint32_t factor)
{
	uint64_t carry = 0;

	for (size_t i = 0; i < n->count; i++) {
		carry += (uint64_t)n->limb[i] * factor;
		n->limb[i] = (uint32_t)(carry % LIMB);
		carry /= LIMB;
	}
	if (carry)
		n->limb[n->count++] = (uint32_t)carry;
}

/* Write the decimal digits of @n. Return their number, without leading zeros. */
static int integer_digits(const struct integer *n, char *text)
{
	char *end = text + n->count * LIMB_DIGITS;
	size_t zeros;

	for (size_t i = 0; i < n->count; i++) {
		uint32_t limb = n->limb[i];

		for (int digit = 0; digit < LIMB_DIGITS; digit++, limb /= 10)
			*--end = (char)('0' + limb % 10);
	}
	zeros = strspn(text, "0");
	memmove(text, text + zeros, n->count * LIMB_DIGITS - zeros);
	return (int)(n->count * LIMB_DIGITS - zeros);
}

/* Round @len digits to @digits, half to even. Return whether that carries into a new digit. */
static bool round_digits(char *text, int len, int digits)
{
	bool up = text[digits] > '5' || (text[digits] == '5' && (text[digits - 1] & 1));
	int i = digits;

	for (int rest = digits + 1; text[digits] == '5' && rest < len; rest++)
		up |= text[rest] != '0';
	if (!up)
		return false;
	while (i && text[i - 1] == '9')
		text[--i] = '0';
	if (i)
		text[i - 1]++;
	else
		*text = '1';
	return !i;
}

/*
 * Write the digits of @mantissa * 2^@shift, which is not 0, to @text: at most @digits, the last one
 * not a zero. Return their number, and set *@exponent to that of the first one.
 */
static int decimal_digits(char *text, uint64_t mantissa, int shift, int digits, int *exponent)
{
	struct integer n = { .limb = { (uint32_t)(mantissa % LIMB), (uint32_t)(mantissa / LIMB) },
			     .count = 2 };
	int len;

	/* mantissa / 2^s = mantissa * 5^s / 10^s */
	for (int i = shift; i; i += i < 0 ? 1 : -1)
		integer_multiply(&n, shift < 0 ? 5 : 2);
	len = integer_digits(&n, text);
	*exponent = len - 1 + (shift < 0 ? shift : 0);
	if (len > digits) {
		*exponent += round_digits(text, len, digits);
		len = digits;
	}
	while (len > 1 && text[len - 1] == '0')
		len--;
	return len;
}

/* Append @len digits at @text, with a point before digit @point of them. */
static char *put_digits(char *p, const char *text, int len, int point)
{
	for (int i = 0; i < len || i < point; i++) {
		if (i == point)
			*p++ = '.';
		*p++ = i < len ? text[i] : '0';
	}
	return p;
}

size_t fmt_double(char buf[FMT_DOUBLE], double value, int digits)
{
	char text[LIMBS * LIMB_DIGITS + 1] = "0", *p = buf;
	int biased, shift, exponent = 0, len = 1;
	uint64_t bits, mantissa;

	memcpy(&bits, &value, sizeof(bits));
	if (bits >> 63)
		*p++ = '-';
	biased = bits >> FRACTION_BITS & EXPONENT_MAX;
	mantissa = bits & ((1ull << FRACTION_BITS) - 1);
	if (biased == EXPONENT_MAX) {
		memcpy(p, mantissa ? "nan" : "inf", 3);
		return (size_t)(p + 3 - buf);
	}
	if (biased)
		mantissa |= 1ull << FRACTION_BITS;
	shift = (biased ? biased : 1) - EXPONENT_ONE;
	for (; mantissa && !(mantissa & 1) && shift < 0; shift++)
		mantissa >>= 1;
	if (mantissa)
		len = decimal_digits(text, mantissa, shift, digits, &exponent);
	if (exponent < -4 || exponent >= digits) {
		p = put_digits(p, text, len, 1);
		p += fmt_text(p, 6, "e%c%02d", exponent < 0 ? '-' : '+',
			      exponent < 0 ? -exponent : exponent);
		return (size_t)(p - buf);
	}
	if (exponent < 0) {
		memcpy(p, "0.000", 1 - exponent);
		p += 1 - exponent;
	}
	return (size_t)(put_digits(p, text, len, exponent < 0 ? -1 : exponent + 1) - buf);
}
