// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/html.h"

#include <string.h>

#include "cli/format/escape.h"

/* Return the reference of an ASCII character that has a meaning in markup, or NULL. */
static const char *reference(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&#34;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* Keep the characters of @own. All that is split at is ASCII, so no UTF-8 character is. */
static void put(struct output *out, const char *text, size_t len, bool cut, const char *own)
{
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		const char *replaced = reference(text[i]);

		if (!replaced && !(text[i] && strchr(own, text[i])))
			continue;
		escape_terminal(out, text + from, i - from, false);
		if (replaced)
			output_string(out, replaced);
		else
			output_char(out, text[i]);
		from = i + 1;
	}
	escape_terminal(out, text + from, len - from, cut);
}

void html_text(struct output *out, const void *text, size_t len, bool cut)
{
	put(out, text, len, cut, "");
}

void html_lines(struct output *out, const void *text, size_t len, bool cut)
{
	put(out, text, len, cut, "\t\n");
}

void html_string(struct output *out, const char *text)
{
	if (text)
		html_text(out, text, strlen(text), false);
}

void html_short(struct output *out, const void *text, size_t len, size_t columns)
{
	size_t fits = escape_fit(text, len, columns, NULL);

	html_text(out, text, fits, fits < len);
	output_string(out, fits < len ? "..." : "");
}
