/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Formatted text. The C library's printf() includes the conversion of floating-point numbers, which
 * is larger than most of our modules and of use to one command.
 */
#ifndef USDT_FMT_H
#define USDT_FMT_H

#include <stdarg.h>
#include <stddef.h>

/*
 * As snprintf(), for the conversions c, d, s, u, x, X and %, with the flags -, 0 and +, a width, a
 * precision of strings, and the lengths l, ll and z.
 */
int fmt_text(char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As vsnprintf(), within the same limits. */
int fmt_args(char *buf, size_t size, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

#endif
