// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/lexer.h"

#include <string.h>

#define VERSION_DIGITS	6	/* at most, after the "!" of an executable comment */

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

bool lexer_skip_hint(struct lexer *l)
{
	bool mariadb = lexer_is_at(l, "/*M!");

	if (l->hint && lexer_is_at(l, "*/")) {
		l->hint = false;
		l->pos += 2;
		return true;
	}
	if (!l->mysql || (!mariadb && !lexer_is_at(l, "/*!")))
		return false;
	l->hint = true;
	l->pos += mariadb ? 4 : 3;
	for (int i = 0; i < VERSION_DIGITS && lexer_is_digit(lexer_peek(l, 0)); i++)
		l->pos++;
	return true;
}

bool lexer_skip_blank(struct lexer *l)
{
	int after = lexer_peek(l, 2);

	if (lexer_is_blank(lexer_peek(l, 0)))
		l->pos++;
	else if (lexer_skip_hint(l))
		return true;
	else if (lexer_is_at(l, "/*"))
		skip_comment(l);
	else if (lexer_is_at(l, "--") && (!l->mysql || after <= ' '))
		skip_line(l);
	else if (l->mysql && lexer_peek(l, 0) == '#')
		skip_line(l);
	else
		return false;
	return true;
}

bool lexer_skip_quoted(struct lexer *l, bool backslash)
{
	int quote = l->text[l->pos++], c;

	l->quoted = true;
	while (l->pos < l->end) {
		c = l->text[l->pos++];
		l->doubtful |= c == '\\' && (l->mysql || !backslash) && lexer_peek(l, 0) == quote;
		if (c == '\\' && backslash && l->pos < l->end)
			l->pos++;
		else if (c == quote && lexer_peek(l, 0) == quote)
			l->pos++;
		else if (c == quote)
			return true;
	}
	l->open = true;
	return false;
}

bool lexer_skip_dollar(struct lexer *l)
{
	const unsigned char *tag = l->text + l->pos;
	size_t len = 1;

	if (lexer_is_name_start(l, lexer_peek(l, 1)))
		while (lexer_is_name(l, lexer_peek(l, len)) && lexer_peek(l, len) != '$')
			len++;
	if (lexer_peek(l, len) == -1 && l->cut)
		l->pos = l->end;
	if (lexer_peek(l, len) != '$')
		return l->pos == l->end;
	len++;
	for (l->pos += len; l->pos < l->end; l->pos++)
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
	return lexer_is_digit(c) || (lexer_lower(c) >= 'a' && lexer_lower(c) <= 'f');
}

void lexer_skip_number(struct lexer *l)
{
	int kind = lexer_lower(lexer_peek(l, 1));
	size_t exponent;	/* length of "e", "e+" or "e-" */

	if (lexer_peek(l, 0) == '0' && (kind == 'x' || kind == 'b' || kind == 'o') &&
	    is_hex(lexer_peek(l, 2))) {
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
	while (l->mysql && lexer_is_name(l, lexer_peek(l, 0)))
		l->pos++;
}
