/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Formatted text. The C library's printf() is larger than most of our modules. */
#ifndef USDT_FMT_H
#define USDT_FMT_H

#include <stdarg.h>
#include <stddef.h>

#define FMT_DOUBLE	32	/* bytes that fmt_double() needs at most */

/*
 * As snprintf(), for the conversions c, d, o, s, u, x, X and %, with all flags, a width, a
 * precision of strings, and the lengths l, ll and z.
 */
int fmt_text(char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As vsnprintf(), within the same limits. */
int fmt_args(char *buf, size_t size, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

/*
 * Write @value as the conversion %.*g does with the precision @digits, 1 to 17, without a NUL. The
 * result is exact and rounds half to even. Return the number of bytes.
 */
size_t fmt_double(char buf[FMT_DOUBLE], double value, int digits);

#endif
