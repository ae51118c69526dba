// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/printer.h"

#define HASH_PRIME	0x100000001b3u		/* FNV-1a, 64 bits */

/* A NUL, which only a quoted name can have, would end the result early. */
static void put(struct printer *p, char c)
{
	c = c ? c : ' ';
	p->now.hash = (p->now.hash ^ (unsigned char)c) * HASH_PRIME;
	if (p->now.len < p->size)
		p->out[p->now.len] = c;
	p->now.len++;
}

static bool wants_blank(enum last last, enum last next, char c)
{
	if (last == LAST_NONE)
		return false;
	if (next == LAST_MORE)
		return last != LAST_OPEN;
	if (last == LAST_DOT || last == LAST_OPEN || last == LAST_CAST)
		return false;
	switch (next) {
	case LAST_COMMA:
	case LAST_CLOSE:
		return false;
	case LAST_DOT:
	case LAST_CAST:
		return last == LAST_OPERATOR || last == LAST_SIGN;
	case LAST_OPEN:
		if (c == '[')
			return last < LAST_OPERAND;
		return last != LAST_WORD && last != LAST_ARRAY;
	default:
		return true;
	}
}

/* What follows a row or a limit's number, or makes a list more than one of literals. */
static void follow(struct state *s, enum last next)
{
	if (s->row == ROW_AFTER || s->row == ROW_COMMA)
		s->row = ROW_NONE;
	s->limit = next == LAST_LIMIT ? LIMIT_WORD : LIMIT_NONE;
	if (next != LAST_LITERAL && next != LAST_COMMA && next != LAST_OPEN && next != LAST_CLOSE)
		s->list_depth = 0;
	s->string = false;
}

void printer_token(struct printer *p, enum last next, const void *text, size_t len, bool fold)
{
	const unsigned char *c = text;

	if (p->now.semicolon) {
		p->now.semicolon = false;
		put(p, ';');
		put(p, ' ');
	} else if (wants_blank(p->now.last, next, (char)*c)) {
		put(p, ' ');
	}
	for (size_t i = 0; i < len; i++)
		put(p, (char)(fold ? lexer_lower(c[i]) : c[i]));
	follow(&p->now, next);
	p->now.last = next;
}

void printer_literal(struct printer *p, bool string)
{
	enum limit limit;

	if (p->now.last == LAST_SIGN)
		p->now = p->sign;
	p->token = string && p->now.string ? LITERAL_JOINED : LITERAL;
	if (p->token == LITERAL_JOINED)
		return;
	limit = p->now.limit;
	if (limit == LIMIT_MORE) {
		p->now = p->limit;
		return;
	}
	printer_token(p, LAST_LITERAL, "?", 1, false);
	p->now.string = string;
	p->now.limit = limit == LIMIT_WORD ? LIMIT_NUMBER : LIMIT_NONE;
}

/* A comma or "offset": behind "limit ?" it may go. */
void printer_separator(struct printer *p, enum last next, const char *text, size_t len)
{
	struct state before = p->now;

	printer_token(p, next, text, len, false);
	if (next == LAST_COMMA && before.row == ROW_AFTER) {
		p->row = before;
		p->now.row = ROW_COMMA;
	}
	if (before.limit == LIMIT_NUMBER && p->in.mysql) {
		p->limit = before;
		p->now.limit = LIMIT_MORE;
	}
}

static bool starts_rows(const struct printer *p, char c)
{
	return c == '(' && (p->now.last == LAST_VALUES || (p->now.last == LAST_VALUE && p->in.mysql));
}

bool printer_starts_list(const struct printer *p, char c)
{
	return p->now.last == (c == '(' ? LAST_IN : LAST_ARRAY) || starts_rows(p, c);
}

void printer_open(struct printer *p, char c)
{
	struct state before = p->now;
	bool rows = starts_rows(p, c), list = printer_starts_list(p, c);
	bool nested = before.row == ROW_FIRST || before.row == ROW_SKIP;

	printer_token(p, LAST_OPEN, &c, 1, false);
	p->now.depth++;
	if (list) {
		p->list = before;
		p->now.list_depth = p->now.depth;
		p->closer = c == '(' ? ')' : ']';
	}
	if (!nested && (rows || before.row == ROW_COMMA)) {
		p->now.row = before.row == ROW_COMMA ? ROW_SKIP : ROW_FIRST;
		p->now.row_depth = p->now.depth;
	}
}

/* Writes (?+) for a list that began at p->list. */
void printer_list(struct printer *p)
{
	enum row row = p->now.row;
	size_t row_depth = p->now.row_depth;
	char text[] = { p->closer == ')' ? '(' : '[', '?', '+', p->closer };

	p->now = p->list;
	p->now.last = LAST_WORD;
	printer_token(p, LAST_CLOSE, text, sizeof(text), false);
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
		printer_token(p, LAST_CLOSE, &c, 1, false);
	if (!depth)
		return;
	p->now.depth = depth - 1;
	if (p->now.list_depth == depth)
		p->now.list_depth = 0;
	if (p->now.row_depth != depth)
		return;
	if (p->now.row == ROW_SKIP)
		p->now = p->row;
	else if (p->now.row == ROW_FIRST)
		p->now.row = ROW_AFTER;
}

void printer_sign(struct printer *p, char c)
{
	if (p->now.last != LAST_SIGN)
		p->sign = p->now;
	printer_token(p, LAST_SIGN, &c, 1, false);
}

void printer_end(struct printer *p)
{
	p->now.semicolon |= p->now.last != LAST_NONE;
	follow(&p->now, LAST_NONE);
	p->now.last = LAST_NONE;
}
