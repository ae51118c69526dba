// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/readings.h"

#include "sql/token.h"

/* The bits of a reading's number. Number 0 is MySQL's default. */
#define READING_NO_ESCAPES	1u
#define READING_ANSI		2u
#define READING_CHARSET		4u	/* times enum lexer_charset */
#define READING_POSTGRES	(CHARSET_COUNT * READING_CHARSET)
#define READINGS_MAX		(READING_POSTGRES + 2)

#define PIECE_WORK	4	/* cost of a piece beside its bytes, as bytes */

struct reading {
	struct printer p;
	size_t start;		/* of the last piece; it ends at ->p.in.pos */
	enum piece piece;
};

static void settings_apply(struct lexer *l, unsigned int number)
{
	l->mysql = number < READING_POSTGRES;
	l->escapes = l->mysql == !(number & READING_NO_ESCAPES);
	l->ansi = l->mysql && (number & READING_ANSI);
	l->charset = l->mysql ? number / READING_CHARSET : CHARSET_OTHER;
}

void readings_open(struct readings *r, bool mysql, bool any, const char *text, size_t len,
		   bool cut)
{
	*r = (struct readings){
		.p.in = { .text = (const unsigned char *)text, .end = len, .cut = cut },
		.any_dialect = any,
	};
	settings_apply(&r->p.in, mysql ? 0 : READING_POSTGRES);
}

/* Read one piece and write it. If ->in.doubtful is set, it was not written. */
static enum piece piece_read(struct printer *p)
{
	int c = lexer_peek(&p->in, 0);

	if (lexer_is_blank(c)) {
		p->in.pos++;
		if (p->gap <= GAP_BLANKS)
			p->gap = c == '\n' || c == '\r' ? GAP_NEWLINE : GAP_BLANKS;
		return PIECE_BLANK;
	}
	if (c == '/' || c == '-' || c == '#' || c == '*') {
		if (lexer_skip_hint(&p->in)) {
			p->gap = GAP_COMMENT;
			return PIECE_BLANK;
		}
		if (lexer_skip_blank(&p->in)) {
			if (c == '/' || p->gap == GAP_NONE)
				p->gap = c == '/' ? GAP_COMMENT : GAP_BLANKS;
			return PIECE_COMMENT;
		}
	}
	p->redact = REDACT_NOTHING;
	token_read(p);
	if (!p->in.doubtful)
		p->gap = GAP_NONE;
	return p->redact == REDACT_NOTHING ? PIECE_CODE :
	       p->redact == REDACT_LITERAL ? PIECE_LITERAL : PIECE_JOINED;
}

/* Return a copy of ->p that follows reading @number and writes nothing. */
static struct printer printer_fork(const struct readings *r, unsigned int number)
{
	struct printer p = r->p;

	settings_apply(&p.in, number);
	p.in.settled = true;
	p.size = 0;
	return p;
}

/* Find the readings that can differ from the current position on. */
static void readings_find(struct readings *r)
{
	bool characters = false, quotes = r->any_dialect;
	const struct lexer *l = &r->p.in;
	struct lexer other = *l;

	for (size_t i = l->pos; i < l->end; i++) {
		quotes |= l->text[i] == '"';
		characters |= l->text[i] >= 0x80 && i + 1 < l->end &&
			      (l->text[i + 1] == '\\' || l->text[i + 1] == '`');
	}
	for (unsigned int i = 0; i < READINGS_MAX; i++) {
		settings_apply(&other, i);
		if ((r->any_dialect || other.mysql == l->mysql) && (quotes || !other.ansi) &&
		    (characters || other.charset == CHARSET_OTHER))
			r->possible |= 1u << i;
	}
}

/* Drop the readings in which a quoted item of the complete statement does not end. */
static void readings_examine(struct readings *r)
{
	for (unsigned int i = 0; i < READINGS_MAX; i++) {
		struct printer p;

		if (!(r->possible & (1u << i)))
			continue;
		p = printer_fork(r, i);
		while (p.in.pos < p.in.end)
			piece_read(&p);
		if (p.in.open)
			r->possible &= ~(1u << i);
	}
	r->examined = true;
}

/* Write the bytes from @start to @end, which are code in every reading. */
static void code_write(struct printer *p, size_t start, size_t end)
{
	size_t all = p->in.end;
	bool cut = p->in.cut, settled = p->in.settled, open = p->in.open;

	p->in.pos = start;
	p->in.end = end;
	p->in.cut = cut && end == all;
	p->in.settled = true;
	while (p->in.pos < end) {
		bool blank = lexer_is_blank(lexer_peek(&p->in, 0));

		if (blank)
			p->in.pos++;
		else
			token_read(p);
		p->gap = blank ? GAP_BLANKS : GAP_NONE;
	}
	p->in.end = all;
	p->in.cut = cut;
	p->in.settled = settled;
	p->in.open = open;
}

/* Return the kind of the bytes up to @end; @whole: they are one piece in each reading. */
static enum piece piece_of_all(const struct reading *list, unsigned int n, bool whole)
{
	enum piece piece = list[0].piece;

	for (unsigned int i = 1; i < n; i++)
		if (list[i].piece != piece)
			piece = list[i].piece > PIECE_CODE || piece > PIECE_CODE ? PIECE_LITERAL :
				PIECE_CODE;
	if (!whole && piece > PIECE_CODE)
		return PIECE_LITERAL;
	return piece;
}

/* Return whether all readings go on in the same way from @at on. */
static bool readings_agree(const struct reading *list, unsigned int n, size_t at)
{
	const struct printer *first = &list[0].p, *p;

	for (unsigned int i = 0; i < n; i++) {
		p = &list[i].p;
		if (p->in.pos != at || p->in.hint != first->in.hint || p->gap != first->gap ||
		    p->now.string != first->now.string || p->backslash != first->backslash)
			return false;
	}
	return true;
}

/*
 * Read in each of the @n readings the piece at @at, unless it was read. Return where the first one
 * ends, and in *@whole whether it is the same piece in each reading.
 */
static size_t pieces_read(struct reading *list, unsigned int n, size_t at, bool *whole)
{
	size_t next = list[0].p.in.end;

	*whole = true;
	for (unsigned int i = 0; i < n; i++) {
		struct reading *r = &list[i];

		if (r->p.in.pos <= at) {
			r->start = r->p.in.pos;
			r->piece = piece_read(&r->p);
		}
		next = r->p.in.pos < next ? r->p.in.pos : next;
	}
	for (unsigned int i = 0; i < n; i++)
		*whole &= list[i].start == at && list[i].p.in.pos == next;
	return next;
}

/* Write the bytes up to @next as @piece. Return how they are redacted. */
static enum piece piece_write(struct readings *r, enum piece piece, size_t at, size_t next,
			      bool string)
{
	if (piece == PIECE_CODE) {
		code_write(&r->p, at, next);
		return piece;
	}
	r->p.gap = GAP_BLANKS;
	if (piece != PIECE_LITERAL && piece != PIECE_JOINED)
		return piece;
	r->p.gap = GAP_NONE;
	printer_literal(&r->p, string);
	return r->p.redact == REDACT_JOINED ? PIECE_JOINED : PIECE_LITERAL;
}

/* Hide all from the current position on. @open: the quotes are unbalanced in every reading. */
static void readings_hide(struct readings *r, bool open)
{
	size_t start = r->p.in.pos;

	printer_literal(&r->p, false);
	r->p.in.open = open;
	r->p.in.pos = r->p.in.end;
	if (r->each)
		r->each(r->arg, PIECE_LITERAL, start, r->p.in.end);
}

/* Let all @n readings of @list advance together, until they agree. */
static void readings_together(struct readings *r, struct reading *list, unsigned int n)
{
	size_t at = r->p.in.pos, next;
	bool hidden = false;	/* the bytes before are part of the same ? */
	bool whole, agree;
	enum piece piece;

	do {
		next = pieces_read(list, n, at, &whole);
		piece = piece_of_all(list, n, whole);
		if (!hidden || whole || piece < PIECE_LITERAL)
			piece = piece_write(r, piece, at, next, whole && list[0].p.now.string);
		else
			piece = PIECE_JOINED;
		hidden = !whole && piece >= PIECE_LITERAL;
		if (r->each)
			r->each(r->arg, piece, at, next);
		r->work += n * (next - at + PIECE_WORK);
		at = next;
		agree = !r->any_dialect && readings_agree(list, n, at);
	} while (at < r->p.in.end && !agree && r->work < READINGS_WORK);
	r->p.in.pos = at;
	r->p.in.hint = list[0].p.in.hint;
	r->p.gap = list[0].p.gap;
	r->p.backslash = list[0].p.backslash;
	r->p.now.string = list[0].p.now.string;
	if (!agree && at < r->p.in.end)
		readings_hide(r, false);
}

/* Start all possible readings in @list, and go on in the first of them. Return their number. */
static unsigned int readings_fork(struct readings *r, struct reading *list)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < READINGS_MAX; i++)
		if (r->possible & (1u << i)) {
			if (!n && !r->any_dialect)
				settings_apply(&r->p.in, i);
			list[n++] = (struct reading){ .p = printer_fork(r, i) };
		}
	return n;
}

/* Read on from the current position in each possible reading. */
static void readings_resolve(struct readings *r)
{
	struct reading list[READINGS_MAX];
	unsigned int n;
	size_t next;
	bool whole;

	r->p.in.doubtful = false;
	r->p.in.open = false;
	r->p.in.quoted = true;
	if (!r->possible)
		readings_find(r);
	n = readings_fork(r, list);
	next = pieces_read(list, n, r->p.in.pos, &whole);
	if (!r->examined && !r->p.in.cut &&
	    (r->any_dialect || !whole || !readings_agree(list, n, next))) {
		r->work += (r->p.in.end - r->p.in.pos) * n;
		if (r->work < READINGS_WORK)
			readings_examine(r);
		n = r->examined ? readings_fork(r, list) : 0;
		r->p.in.settled = n == 1;
	}
	if (n)
		readings_together(r, list, n);
	else
		readings_hide(r, r->examined);
}

void readings_next(struct readings *r)
{
	size_t start = r->p.in.pos;
	enum piece piece;

	if (r->any_dialect) {
		readings_resolve(r);
		return;
	}
	piece = piece_read(&r->p);
	if (r->p.in.doubtful) {
		r->p.in.pos = start;
		readings_resolve(r);
	} else if (r->each) {
		r->each(r->arg, piece, start, r->p.in.pos);
	}
}
