// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "sql/fingerprint.h"
#include "sql/token.h"

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

size_t fingerprint_redact(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  char *out)
{
	struct printer p = {
		.in = { .text = (const unsigned char *)text, .end = len,
			.mysql = dialect == FINGERPRINT_MYSQL, .cut = cut },
	};
	size_t at = 0, first = 0, start;

	/* Output never exceeds the input read so far, so @out may be @text. */
	while ((start = p.in.pos) < p.in.end) {
		bool quoted = p.in.quoted, blank = lexer_is_blank(lexer_peek(&p.in, 0));

		p.redact = REDACT_NOTHING;
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
		if (p.redact == REDACT_NOTHING) {
			memmove(out + at, p.in.text + start, p.in.pos - start);
			at += p.in.pos - start;
		} else if (p.redact == REDACT_LITERAL) {
			out[at++] = '?';
		}
	}
	/* Unbalanced quotes: the server used other rules than the defaults assumed here. */
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
