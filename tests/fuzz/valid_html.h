/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A reader of the pages that dbslower writes: stricter than HTML. Elements and attributes are those
 * of a list, none of which can load or run anything; each element is closed; each value is quoted.
 */
#ifndef TESTS_FUZZ_VALID_HTML_H
#define TESTS_FUZZ_VALID_HTML_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define VALID_DEPTH 64

static const char *const valid_elements =
	" html head meta title style body header h1 h2 h3 dl div dt dd form label input button p "
	"main nav span section table caption thead tbody tr th td ul li b details summary code "
	"pre a svg g rect line path text i script ";
static const char *const valid_attributes =
	" lang charset http-equiv content name id role aria-label aria-labelledby aria-hidden "
	"aria-pressed hidden data-from data-width data-b data-e data-v data-c data-m data-f "
	"data-i data-n data-w data-part data-parts data-shift type "
	"autocomplete min max value class scope tabindex href viewBox preserveAspectRatio x y x1 "
	"y1 x2 y2 rx d width height ";

struct valid_page {
	const char *at, *end;
	const char *open[VALID_DEPTH];	/* names, with their lengths */
	size_t len[VALID_DEPTH];
	unsigned int depth, scripts, styles;
	const char *fault;		/* NULL: none so far */
};

static inline bool valid_word(const char *list, const char *word, size_t len)
{
	char sought[40];

	if (!len || len > 30)
		return false;
	snprintf(sought, sizeof(sought), " %.*s ", (int)len, word);
	return strstr(list, sought);
}

static inline size_t valid_name(const struct valid_page *p, const char *at)
{
	size_t len = 0;

	while (at + len < p->end && !memchr(" =>\"/\n<", at[len], 7))
		len++;
	return len;
}

static inline bool valid_starts(const struct valid_page *p, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(p->end - p->at) >= len && !memcmp(p->at, text, len);
}

static inline void valid_reference(struct valid_page *p)
{
	static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&#34;", "&#39;", "&#8594;" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (valid_starts(p, known[i]))
			return;
	p->fault = "unknown reference";
}

static inline void valid_attribute(struct valid_page *p)
{
	size_t len = valid_name(p, p->at);

	if (!valid_word(valid_attributes, p->at, len))
		p->fault = "unknown attribute";
	p->at += len;
	if (p->at == p->end || *p->at != '=')
		return;
	if (p->end - p->at < 3 || p->at[1] != '"') {
		p->fault = "value without quotes";
		return;
	}
	for (p->at += 2; p->at < p->end && *p->at != '"'; p->at++) {
		if (*p->at == '&')
			valid_reference(p);
		if (*p->at == '<' || *p->at == '>')
			p->fault = "markup in a value";
	}
	p->at += p->at < p->end;
}

static inline void valid_close(struct valid_page *p)
{
	size_t len = valid_name(p, p->at + 2);

	if (!p->depth || p->len[p->depth - 1] != len ||
	    memcmp(p->open[p->depth - 1], p->at + 2, len))
		p->fault = "wrong end";
	else
		p->depth--;
	p->at += 2 + len;
	if (p->at == p->end || *p->at++ != '>')
		p->fault = "unfinished end";
}

/* Skip the content of an element that is not markup. */
static inline void valid_raw(struct valid_page *p, const char *end)
{
	const char *stop = memmem(p->at, (size_t)(p->end - p->at), end, strlen(end));

	p->at = stop ? stop : p->end;
}

static inline void valid_open(struct valid_page *p)
{
	size_t len = valid_name(p, ++p->at);
	const char *name = p->at;
	bool closed = valid_word(" meta input ", name, len);

	if (!valid_word(valid_elements, name, len) || p->depth == VALID_DEPTH) {
		p->fault = "unknown element";
		return;
	}
	for (p->at += len; !p->fault && p->at < p->end && (*p->at == ' ' || *p->at == '\n');) {
		p->at++;
		valid_attribute(p);
	}
	if (p->at < p->end && *p->at == '/') {
		p->at++;
		closed = true;
	}
	if (p->at == p->end || *p->at++ != '>')
		p->fault = "unfinished element";
	if (closed || p->fault)
		return;
	p->open[p->depth] = name;
	p->len[p->depth++] = len;
	if (len == 6 && !memcmp(name, "script", 6)) {
		p->scripts++;
		valid_raw(p, "</script");
	} else if (len == 5 && !memcmp(name, "style", 5)) {
		p->styles++;
		valid_raw(p, "</style");
	}
}

/* Return what is wrong with a page, with its place in *@at, or NULL. */
static inline const char *valid_html(const char *page, size_t len, const char **at)
{
	static const char doctype[] = "<!DOCTYPE html>\n";
	struct valid_page p = { .at = page, .end = page + len };

	if (!valid_starts(&p, doctype))
		return "no doctype";
	p.at += sizeof(doctype) - 1;
	while (!p.fault && p.at < p.end) {
		*at = p.at;
		if (valid_starts(&p, "</")) {
			valid_close(&p);
		} else if (*p.at == '<') {
			valid_open(&p);
		} else {
			if (*p.at == '&')
				valid_reference(&p);
			if (*p.at++ == '>')
				p.fault = "character without a reference";
		}
	}
	if (!p.fault && (p.depth || p.scripts != 1 || p.styles != 1))
		return "unclosed elements, or not one script and one style";
	return p.fault;
}

#endif
