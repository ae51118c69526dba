// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "sql/fingerprint.h"
#include "sql/readings.h"

/*
 * Write the comment @text to @out at offset @at: its delimiters, and a ? if there is anything
 * between them. Return the offset after it.
 */
static size_t redact_comment(const unsigned char *text, size_t len, char *out, size_t at)
{
	bool block = *text == '/', ended = block && len >= 4 && text[len - 1] == '/';
	size_t delimiter = *text == '#' ? 1 : 2;

	/* In MySQL -- begins a comment only if a blank follows. */
	if (!block && delimiter == 2 && len > 2 && lexer_is_blank(text[2]))
		delimiter++;
	memmove(out + at, text, delimiter);
	at += delimiter;
	if (len > delimiter + (ended ? 2 : 0))
		out[at++] = '?';
	if (ended) {
		out[at++] = '*';
		out[at++] = '/';
	}
	return at;
}

struct redaction {
	struct readings readings;
	char *out;
	size_t at;		/* bytes of ->out */
	size_t first;		/* of them before the first quoted item */
	bool quoted;
};

/* Output never exceeds the input read so far, so ->out may be the text. */
static void redact_piece(void *arg, enum piece piece, size_t start, size_t end)
{
	struct redaction *r = arg;
	const unsigned char *text = r->readings.p.in.text + start;

	if (!r->quoted && r->readings.p.in.quoted) {
		r->quoted = true;
		r->first = r->at;
	}
	switch (piece) {
	case PIECE_BLANK:
	case PIECE_CODE:
		memmove(r->out + r->at, text, end - start);
		r->at += end - start;
		break;
	case PIECE_LITERAL:
		r->out[r->at++] = '?';
		break;
	case PIECE_COMMENT:
		r->at = redact_comment(text, end - start, r->out, r->at);
		break;
	case PIECE_JOINED:
		break;
	}
}

size_t fingerprint_redact(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  char *out)
{
	struct redaction r = { .out = out };

	readings_open(&r.readings, dialect == FINGERPRINT_MYSQL, dialect == FINGERPRINT_UNKNOWN,
		      text, len, cut);
	r.readings.each = redact_piece;
	r.readings.arg = &r;
	while (r.readings.p.in.pos < r.readings.p.in.end)
		readings_next(&r.readings);
	/* A quote is unbalanced in every reading: any of them may have begun the wrong item. */
	if (!cut && r.readings.p.in.open) {
		out[r.first] = '?';
		r.at = r.first + 1;
	}
	return r.at;
}

struct comments {
	struct readings readings;
	void *arg;
	void (*each)(void *arg, const char *comment, size_t len);
};

static void comments_piece(void *arg, enum piece piece, size_t start, size_t end)
{
	struct comments *c = arg;

	if (piece == PIECE_COMMENT)
		c->each(c->arg, (const char *)c->readings.p.in.text + start, end - start);
}

void fingerprint_comments(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  void (*each)(void *arg, const char *comment, size_t len), void *arg)
{
	struct comments c = { .arg = arg, .each = each };

	readings_open(&c.readings, dialect == FINGERPRINT_MYSQL, false, text, len, cut);
	c.readings.p.in.settled = true;
	c.readings.each = comments_piece;
	c.readings.arg = &c;
	while (c.readings.p.in.pos < c.readings.p.in.end)
		readings_next(&c.readings);
}
