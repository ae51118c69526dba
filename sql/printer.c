// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/printer.h"

#define HASH_PRIME	0x100000001b3u		/* FNV-1a, 64 bits */

/* Append a byte; a NUL, which is possible in a quoted name only, as a blank. */
static void put(struct printer *p, char c)
{
	c = c ? c : ' ';
	p->now.hash = (p->now.hash ^ (unsigned char)c) * HASH_PRIME;
	if (p->now.len < p->size)
		p->out[p->now.len] = c;
	p->now.len++;
}

/* Return whether a blank separates @last from a token of the kind @next that begins with @c. */
static bool needs_blank(enum token last, enum token next, char c)
{
	if (last == TOKEN_NONE)
		return false;
	if (next == TOKEN_ELLIPSIS)
		return last != TOKEN_OPEN;
	if (last == TOKEN_DOT || last == TOKEN_OPEN || last == TOKEN_CAST)
		return false;
	switch (next) {
	case TOKEN_COMMA:
	case TOKEN_CLOSE:
		return false;
	case TOKEN_DOT:
	case TOKEN_CAST:
		return last == TOKEN_OPERATOR || last == TOKEN_SIGN;
	case TOKEN_OPEN:
		if (c == '[')
			return last < TOKEN_OPERAND;
		return last != TOKEN_NAME && last != TOKEN_ARRAY;
	default:
		return true;
	}
}

/* End what a token of the kind @next ends: rows, a limit, a list of literals, adjacent strings. */
static void state_advance(struct printer_state *s, enum token next)
{
	if (s->row == ROW_AFTER || s->row == ROW_COMMA)
		s->row = ROW_NONE;
	s->limit = next == TOKEN_LIMIT ? LIMIT_KEYWORD : LIMIT_NONE;
	if (next != TOKEN_LITERAL && next != TOKEN_COMMA && next != TOKEN_OPEN &&
	    next != TOKEN_CLOSE)
		s->list_depth = 0;
	s->string = false;
}

void printer_token(struct printer *p, enum token next, const void *text, size_t len, bool fold)
{
	const unsigned char *c = text;

	if (p->now.semicolon) {
		p->now.semicolon = false;
		put(p, ';');
		put(p, ' ');
	} else if (needs_blank(p->now.last, next, (char)*c)) {
		put(p, ' ');
	}
	for (size_t i = 0; i < len; i++)
		put(p, (char)(fold ? lexer_lower(c[i]) : c[i]));
	state_advance(&p->now, next);
	p->now.last = next;
}

void printer_literal(struct printer *p, bool string)
{
	enum limit_state limit;

	if (p->now.last == TOKEN_SIGN)
		p->now = p->before_sign;
	p->redact = string && p->now.string ? REDACT_JOINED : REDACT_LITERAL;
	if (p->redact == REDACT_JOINED)
		return;
	limit = p->now.limit;
	if (limit == LIMIT_SEPARATOR) {
		p->now = p->before_limit;
		return;
	}
	printer_token(p, TOKEN_LITERAL, "?", 1, false);
	p->now.string = string;
	p->now.limit = limit == LIMIT_KEYWORD ? LIMIT_NUMBER : LIMIT_NONE;
}

void printer_separator(struct printer *p, enum token next, const char *text, size_t len)
{
	struct printer_state before = p->now;

	printer_token(p, next, text, len, false);
	if (next == TOKEN_COMMA && before.row == ROW_AFTER) {
		p->before_row = before;
		p->now.row = ROW_COMMA;
	}
	if (before.limit == LIMIT_NUMBER && p->in.mysql) {
		p->before_limit = before;
		p->now.limit = LIMIT_SEPARATOR;
	}
}

/* Return whether @c begins the first row of values. */
static bool starts_rows(const struct printer *p, char c)
{
	enum token last = p->now.last;

	return c == '(' && (last == TOKEN_VALUES || (last == TOKEN_VALUE && p->in.mysql));
}

bool printer_starts_list(const struct printer *p, char c)
{
	return p->now.last == (c == '(' ? TOKEN_IN : TOKEN_ARRAY) || starts_rows(p, c);
}

void printer_open(struct printer *p, char c)
{
	struct printer_state before = p->now;
	bool rows = starts_rows(p, c), list = printer_starts_list(p, c);
	bool nested = before.row == ROW_FIRST || before.row == ROW_SKIP;

	printer_token(p, TOKEN_OPEN, &c, 1, false);
	p->now.depth++;
	if (list) {
		p->before_list = before;
		p->now.list_depth = p->now.depth;
		p->closer = c == '(' ? ')' : ']';
	}
	if (!nested && (rows || before.row == ROW_COMMA)) {
		p->now.row = before.row == ROW_COMMA ? ROW_SKIP : ROW_FIRST;
		p->now.row_depth = p->now.depth;
	}
}

void printer_list(struct printer *p)
{
	enum row_state row = p->now.row;
	size_t row_depth = p->now.row_depth;
	char text[] = { p->closer == ')' ? '(' : '[', '?', '+', p->closer };

	p->now = p->before_list;
	p->now.last = TOKEN_NAME;
	printer_token(p, TOKEN_CLOSE, text, sizeof(text), false);
	p->now.row = row;
	p->now.row_depth = row_depth;
}

void printer_close(struct printer *p, char c)
{
	size_t depth = p->now.depth;
	bool list = depth && p->now.list_depth == depth && c == p->closer;

	if (list)
		printer_list(p);
	else
		printer_token(p, TOKEN_CLOSE, &c, 1, false);
	if (!depth)
		return;
	p->now.depth = depth - 1;
	if (p->now.list_depth == depth)
		p->now.list_depth = 0;
	if (p->now.row_depth != depth)
		return;
	if (p->now.row == ROW_SKIP)
		p->now = p->before_row;
	else if (p->now.row == ROW_FIRST)
		p->now.row = ROW_AFTER;
}

void printer_sign(struct printer *p, char c)
{
	if (p->now.last != TOKEN_SIGN)
		p->before_sign = p->now;
	printer_token(p, TOKEN_SIGN, &c, 1, false);
}

void printer_end(struct printer *p)
{
	p->now.semicolon |= p->now.last != TOKEN_NONE;
	state_advance(&p->now, TOKEN_NONE);
	p->now.last = TOKEN_NONE;
}
