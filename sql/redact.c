// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "sql/fingerprint.h"
#include "sql/token.h"

/* Its marks stay, and a ? says that there was something between them. The new length. */
static size_t redact_comment(const unsigned char *text, size_t len, char *out, size_t at)
{
	bool block = *text == '/', ended = block && len >= 4 && text[len - 1] == '/';
	size_t marks = *text == '#' ? 1 : 2;

	/* MySQL's is none without the blank. */
	if (!block && marks == 2 && len > 2 && lexer_is_blank(text[2]))
		marks++;
	memmove(out + at, text, marks);
	at += marks;
	if (len > marks + (ended ? 2 : 0))
		out[at++] = '?';
	if (ended) {
		out[at++] = '*';
		out[at++] = '/';
	}
	return at;
}

size_t fingerprint_redact(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  char *out)
{
	struct printer p = {
		.in = { .text = (const unsigned char *)text, .end = len,
			.mysql = dialect == FINGERPRINT_MYSQL, .cut = cut },
	};
	size_t at = 0, first = 0, start;

	/* What is written is never longer than what was read, so that @out may be @text. */
	while ((start = p.in.pos) < p.in.end) {
		bool quoted = p.in.quoted, blank = lexer_is_blank(lexer_peek(&p.in, 0));

		p.token = OTHER;
		if (!blank && !lexer_skip_hint(&p.in) && lexer_skip_blank(&p.in)) {
			at = redact_comment(p.in.text + start, p.in.pos - start, out, at);
			continue;
		}
		if (blank)
			p.in.pos++;
		else if (p.in.pos == start)
			token_read(&p);
		if (!quoted && p.in.quoted)
			first = at;
		if (p.token == OTHER) {
			memmove(out + at, p.in.text + start, p.in.pos - start);
			at += p.in.pos - start;
		} else if (p.token == LITERAL) {
			out[at++] = '?';
		}
	}
	/* Quotes that do not match were read in another way than by the server. */
	if (cut ? p.in.doubtful : p.in.open) {
		out[first] = '?';
		at = first + 1;
	}
	return at;
}

void fingerprint_comments(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  void (*each)(void *arg, const char *comment, size_t len), void *arg)
{
	struct printer p = {
		.in = { .text = (const unsigned char *)text, .end = len,
			.mysql = dialect == FINGERPRINT_MYSQL, .cut = cut },
	};
	size_t start;

	while ((start = p.in.pos) < p.in.end) {
		if (lexer_is_blank(lexer_peek(&p.in, 0)))
			p.in.pos++;
		else if (lexer_skip_hint(&p.in))
			continue;
		else if (lexer_skip_blank(&p.in))
			each(arg, text + start, p.in.pos - start);
		else
			token_read(&p);
	}
}
