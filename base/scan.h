/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lexical scanner for argument specs. Every function advances the scanner
 * behind what it accepted and never reads beyond its end. Internal to
 * usdt/spec.c and usdt/arch*.c.
 */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text that is still to be scanned; borrowed. */
struct scan {
	const char *p, *end;
};

/* Return whether @c is a decimal digit. */
static inline bool scan_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Return whether @c is a blank, a tab or a newline. */
static inline bool scan_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Accept @c. Return false if it is not next. */
bool scan_char(struct scan *s, char c);

/* Return whether @c is next; does not advance. */
bool scan_peek(const struct scan *s, char c);

/* Skip blanks. */
void scan_blanks(struct scan *s);

/*
 * Accept a decimal or 0x number with an optional sign. Return false if there
 * is none, if it is octal, or if it does not fit 64 bits; the position is then
 * undefined.
 */
bool scan_number(struct scan *s, int64_t *value);

/* Accept letters, digits, '_', '.', '$' and bytes from 0x80. Return the length, 0 if none. */
size_t scan_name(struct scan *s, const char **name);

/* Accept a symbol with the relocation that may follow it ("sym@GOTOFF"). Return as scan_name(). */
size_t scan_symbol(struct scan *s, const char **symbol);

#endif
