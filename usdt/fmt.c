// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/fmt.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DIGITS_MAX	22	/* of a 64-bit number, in octal */

/* A conversion: %, flags, width, precision, length. */
struct fmt_spec {
	bool left, zeros, plus, space, prefix;
	int width;
	int precision;		/* -1: none */
	int longs;		/* l or z: 1, ll: 2 */
};

struct fmt_out {
	char *buf;
	size_t size, len;	/* room, and length of the whole text without the NUL */
};

static void out_char(struct fmt_out *out, char c)
{
	if (out->len + 1 < out->size)
		out->buf[out->len] = c;
	out->len++;
}

/* Append the @len bytes of @text, padded to the width. @sign goes before zeros. */
static void out_padded(struct fmt_out *out, const struct fmt_spec *spec, const char *sign,
		       const char *text, size_t len)
{
	size_t width = spec->width > 0 ? (size_t)spec->width : 0;
	size_t used = strlen(sign) + len, pad = width > used ? width - used : 0;

	for (; !spec->left && !spec->zeros && pad; pad--)
		out_char(out, ' ');
	for (; *sign; sign++)
		out_char(out, *sign);
	for (; !spec->left && pad; pad--)
		out_char(out, '0');
	while (len--)
		out_char(out, *text++);
	for (; pad; pad--)
		out_char(out, ' ');
}

static void out_number(struct fmt_out *out, const struct fmt_spec *spec, const char *sign,
		       uint64_t value, char conversion)
{
	const char *digits = conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	unsigned int base = conversion == 'o' ? 8 :
			    conversion == 'd' || conversion == 'u' ? 10 : 16;
	char text[DIGITS_MAX], *p = text + sizeof(text);

	if (spec->prefix && value && base != 10)
		sign = conversion == 'o' ? "0" : conversion == 'x' ? "0x" : "0X";
	do {
		*--p = digits[value % base];
		value /= base;
	} while (value);
	out_padded(out, spec, sign, p, (size_t)(text + sizeof(text) - p));
}

static void out_string(struct fmt_out *out, const struct fmt_spec *spec, const char *text)
{
	size_t len = spec->precision < 0 ? strlen(text) : strnlen(text, (size_t)spec->precision);

	out_padded(out, spec, "", text, len);
}

static const char *spec_digits(const char *format, int *number)
{
	for (*number = 0; *format >= '0' && *format <= '9'; format++)
		*number = *number * 10 + (*format - '0');
	return format;
}

/* Parse the length of a conversion: l, ll or z. Return its end. */
static const char *spec_length(const char *format, struct fmt_spec *spec)
{
	for (; *format == 'l' || *format == 'z'; format++)
		spec->longs++;
	return format;
}

static uint64_t arg_number(va_list *args, const struct fmt_spec *spec, bool is_signed)
{
	if (spec->longs > 1)
		return is_signed ? (uint64_t)va_arg(*args, long long) :
				   va_arg(*args, unsigned long long);
	if (spec->longs)
		return is_signed ? (uint64_t)va_arg(*args, long) : va_arg(*args, unsigned long);
	return is_signed ? (uint64_t)va_arg(*args, int) : va_arg(*args, unsigned int);
}

/* Append the conversion at @format, behind the %. Return its end. */
static const char *out_conversion(struct fmt_out *out, const char *format, va_list *args)
{
	struct fmt_spec spec = { .precision = -1 };
	uint64_t value;
	char c;

	for (; *format && strchr("-0+ #", *format); format++) {
		spec.left |= *format == '-';
		spec.zeros |= *format == '0';
		spec.plus |= *format == '+';
		spec.space |= *format == ' ';
		spec.prefix |= *format == '#';
	}
	if (*format == '*') {
		spec.width = va_arg(*args, int);
		format++;
	} else {
		format = spec_digits(format, &spec.width);
	}
	if (*format == '.' && format[1] == '*') {
		spec.precision = va_arg(*args, int);
		format += 2;
	} else if (*format == '.') {
		format = spec_digits(format + 1, &spec.precision);
	}
	format = spec_length(format, &spec);
	spec.zeros &= *format != 'c' && *format != 's';
	switch (*format) {
	case 's':
		out_string(out, &spec, va_arg(*args, const char *));
		break;
	case 'c':
		c = (char)va_arg(*args, int);
		out_padded(out, &spec, "", &c, 1);
		break;
	case 'd':
		value = arg_number(args, &spec, true);
		if (value >> 63)
			out_number(out, &spec, "-", -value, 'd');
		else
			out_number(out, &spec, spec.plus ? "+" : spec.space ? " " : "", value,
				   'd');
		break;
	case 'o':
	case 'u':
	case 'x':
	case 'X':
		out_number(out, &spec, "", arg_number(args, &spec, false), *format);
		break;
	case '\0':
		return format;
	default:
		out_char(out, *format);
	}
	return format + 1;
}

int fmt_args(char *buf, size_t size, const char *format, va_list args)
{
	struct fmt_out out = { .buf = buf, .size = size };
	va_list rest;

	va_copy(rest, args);
	while (*format) {
		if (*format != '%')
			out_char(&out, *format++);
		else
			format = out_conversion(&out, format + 1, &rest);
	}
	va_end(rest);
	if (size)
		buf[out.len < size ? out.len : size - 1] = '\0';
	return (int)out.len;
}

int fmt_text(char *buf, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = fmt_args(buf, size, format, args);
	va_end(args);
	return n;
}
