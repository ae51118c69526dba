// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/lexer.h"

#include <stdint.h>
#include <string.h>

#include "base/hex.h"

#define VERSION_DIGITS	5	/* after the "!" of an executable comment; 6 for some servers */
#define RARE	__attribute__((cold))	/* compiled for size */
#define VERSION_ALL	50500	/* executed by all supported servers */

/* Skip the rest of a line. A carriage return ends it in PostgreSQL, not in MySQL. */
static void skip_line(struct lexer *l)
{
	while (l->pos < l->end && l->text[l->pos] != '\n' &&
	       (l->mysql || l->text[l->pos] != '\r'))
		l->pos++;
}

/* Skip a block comment. Those of PostgreSQL nest. */
static void skip_comment(struct lexer *l)
{
	size_t depth = 0;

	do {
		if (lexer_is_at(l, "/*") && (!depth || !l->mysql)) {
			depth++;
			l->pos += 2;
		} else if (lexer_is_at(l, "*/")) {
			depth--;
			l->pos += 2;
		} else {
			l->pos++;
		}
	} while (depth && l->pos < l->end);
}

/*
 * Skip what is a comment or string for some servers and code for others, up to and including the
 * @len bytes @stop. If both could go on reading at another position, because of quotes or comments
 * before @stop, or if it is missing, skip all the rest.
 */
RARE static void skip_either(struct lexer *l, const unsigned char *stop, size_t len)
{
	int quote = 0, before = 0, c;

	for (; l->pos < l->end; before = c, l->pos++) {
		bool stops = l->end - l->pos >= len && !memcmp(l->text + l->pos, stop, len);

		c = l->text[l->pos];
		if (stops && !quote) {
			l->pos += len;
			return;
		}
		if (stops || c == '\\' || (c == '`' && before >= 0x80) ||
		    lexer_is_at(l, "/*") || lexer_is_at(l, "*/") ||
		    (!quote && (c == '#' || c == '$' || lexer_is_at(l, "--"))))
			break;
		if (c == quote)
			quote = 0;
		else if (!quote && (c == '\'' || c == '"' || c == '`'))
			quote = c;
	}
	l->pos = l->end;
}

/*
 * Return the length of the beginning of a comment that each server executes, or 0. A version is
 * five digits; fewer are a number.
 */
RARE static size_t hint_length(const struct lexer *l)
{
	size_t digits = 0;
	int version = 0;

	if (!l->mysql || !lexer_is_at(l, "/*!"))
		return 0;
	for (; digits <= VERSION_DIGITS && lexer_is_digit(lexer_peek(l, 3 + digits)); digits++)
		version = 10 * version + lexer_peek(l, 3 + digits) - '0';
	if (l->cut && lexer_peek(l, 3 + digits) < 0)
		return 0;
	if (digits < VERSION_DIGITS)
		return 3;
	return digits == VERSION_DIGITS && version <= VERSION_ALL ? 3 + digits : 0;
}

bool lexer_skip_hint(struct lexer *l)
{
	size_t len = hint_length(l);

	if (l->hint && lexer_is_at(l, "*/")) {
		l->hint = false;
		len = 2;
	} else if (len) {
		l->hint = true;
	}
	l->pos += len;
	return len > 0;
}

/* Return whether a line comment of MySQL begins with the bytes "--", which @after follows. */
static bool is_line_comment(int after)
{
	return after <= ' ' || after == 0x7f;
}

bool lexer_skip_blank(struct lexer *l)
{
	static const unsigned char line[] = { '\n' }, block[] = { '*', '/' };
	int after = lexer_peek(l, 2);

	if (lexer_is_blank(lexer_peek(l, 0))) {
		l->pos++;
	} else if (lexer_skip_hint(l)) {
		return true;
	} else if (l->mysql && (lexer_is_at(l, "/*!") || lexer_is_at(l, "/*M!"))) {
		/* For a server that executes it, its end is also that of the one around it. */
		l->pos = l->hint ? l->end : l->pos + 3;
		skip_either(l, block, sizeof(block));
	} else if (lexer_is_at(l, "/*")) {
		skip_comment(l);
	} else if (lexer_is_at(l, "--") && (!l->mysql || is_line_comment(after))) {
		skip_line(l);
	} else if (lexer_is_at(l, "--") && after >= 0x80) {
		/* A blank or control character in some character sets. */
		l->pos += 2;
		skip_either(l, line, sizeof(line));
	} else if (l->mysql && lexer_peek(l, 0) == '#') {
		skip_line(l);
	} else {
		return false;
	}
	return true;
}

/* Return the length of the character @c, which @next follows; 1 if it is invalid. */
RARE static size_t char_length(const struct lexer *l, int c, int next)
{
	bool trail = (next >= 0x40 && next <= 0x7e) || (next >= 0x80 && next <= 0xfe);

	switch (l->charset) {
	case CHARSET_SJIS:
		trail &= next <= 0xfc;
		return trail && ((c >= 0x81 && c <= 0x9f) || (c >= 0xe0 && c <= 0xfc)) ? 2 : 1;
	case CHARSET_GBK:
		return trail && c >= 0x81 && c <= 0xfe ? 2 : 1;
	case CHARSET_BIG5:
		trail &= next <= 0x7e || next >= 0xa1;
		return trail && c >= 0xa1 && c <= 0xf9 ? 2 : 1;
	default:
		return 1;
	}
}

bool lexer_skip_quoted(struct lexer *l, enum lexer_backslash backslash)
{
	bool escapes = backslash == BACKSLASH_ESCAPE ||
		       (backslash == BACKSLASH_SESSION && l->escapes);
	int quote = l->text[l->pos++], c, next;
	bool doubtful = false, ended = false;

	l->quoted = true;
	while (l->pos < l->end && !ended) {
		c = l->text[l->pos++];
		next = lexer_peek(l, 0);
		doubtful |= c == '\\' || (c >= 0x80 && (next == '\\' || next == '`'));
		if (c >= 0x80)
			l->pos += l->charset != CHARSET_OTHER && char_length(l, c, next) > 1;
		else if ((c == '\\' && escapes && l->pos < l->end) || (c == quote && next == quote))
			l->pos++;
		else
			ended = c == quote;
	}
	l->open |= !ended;
	if (doubtful && !l->settled)
		l->doubtful |= l->mysql || backslash == BACKSLASH_SESSION;
	return ended;
}

/* Return whether a valid UTF-8 character from @start on ends with the byte @at of @text. */
RARE static bool ends_character(const unsigned char *text, size_t start, size_t at)
{
	static const unsigned char first[] = { 0, 0xc2, 0xe0, 0xf0 };
	static const unsigned char end[] = { 0, 0xe0, 0xf0, 0xf5 };
	size_t n = 0;

	while (n < 3 && at - n > start && (text[at - n] & 0xc0) == 0x80)
		n++;
	return n && text[at - n] >= first[n] && text[at - n] < end[n];
}

/* Examine the name from @start on, which contains bytes beyond ASCII. See lexer_skip_word(). */
RARE static bool word_beyond_ascii(struct lexer *l, size_t start)
{
	bool number = false;
	int c, next;

	for (l->pos = start; lexer_is_name(l, c = lexer_peek(l, 0)); l->pos++) {
		bool quote;

		next = lexer_peek(l, 1);
		if (c < 0x80)
			continue;
		quote = next == '\\' || next == '`';
		l->doubtful |= quote && !l->settled;
		if (char_length(l, c, next) > 1)
			l->pos += quote || lexer_is_name(l, next);
		else if (lexer_is_digit(next) || (next == '.' && lexer_is_digit(lexer_peek(l, 2))))
			number |= !ends_character(l->text, start, l->pos);
	}
	return number;
}

bool lexer_skip_word(struct lexer *l)
{
	size_t start = l->pos;
	int c, all = 0;

	while (lexer_is_name(l, c = lexer_peek(l, 0))) {
		all |= c;
		l->pos++;
	}
	return all >= 0x80 && l->mysql && word_beyond_ascii(l, start);
}

/* Return the length of the $tag$ at the current position; 0: none, SIZE_MAX: it may be cut. */
RARE static size_t tag_length(const struct lexer *l)
{
	size_t len = 1;

	if (l->mysql || lexer_is_name_start(l, lexer_peek(l, 1)))
		while (lexer_is_name(l, lexer_peek(l, len)) && lexer_peek(l, len) != '$')
			len++;
	if (lexer_peek(l, len) < 0 && l->cut)
		return SIZE_MAX;
	return lexer_peek(l, len) == '$' ? len + 1 : 0;
}

RARE bool lexer_skip_dollar(struct lexer *l)
{
	const unsigned char *tag = l->text + l->pos;
	size_t len = tag_length(l);

	if (!len)
		return false;
	if (len == SIZE_MAX) {
		l->pos = l->end;
		return true;
	}
	l->pos += len;
	if (l->mysql) {
		skip_either(l, tag, len);
		lexer_skip_word(l);
		return true;
	}
	for (; l->pos < l->end; l->pos++)
		if (l->text[l->pos] == '$' && l->end - l->pos >= len &&
		    !memcmp(l->text + l->pos, tag, len)) {
			l->pos += len;
			return true;
		}
	return true;
}

void lexer_skip_digits(struct lexer *l)
{
	while (lexer_is_digit(lexer_peek(l, 0)) || lexer_peek(l, 0) == '_')
		l->pos++;
}

static bool is_hex(int c)
{
	return c >= 0 && hex_digit((char)c) >= 0;
}

void lexer_skip_number(struct lexer *l)
{
	int kind = lexer_lower(lexer_peek(l, 1));
	size_t exponent;	/* length of "e", "e+" or "e-" */

	if (lexer_peek(l, 0) == '0' && (kind == 'x' || kind == 'b' || kind == 'o') &&
	    (is_hex(lexer_peek(l, 2)) || lexer_peek(l, 2) == '_')) {
		for (l->pos += 2; is_hex(lexer_peek(l, 0)) || lexer_peek(l, 0) == '_';)
			l->pos++;
	} else {
		lexer_skip_digits(l);
		if (lexer_peek(l, 0) == '.' && lexer_peek(l, 1) != '.') {
			l->pos++;
			lexer_skip_digits(l);
		}
		exponent = lexer_peek(l, 1) == '+' || lexer_peek(l, 1) == '-' ? 2 : 1;
		if (lexer_lower(lexer_peek(l, 0)) == 'e' &&
		    lexer_is_digit(lexer_peek(l, exponent))) {
			l->pos += exponent;
			lexer_skip_digits(l);
		}
	}
	if (l->mysql)
		lexer_skip_word(l);
}
