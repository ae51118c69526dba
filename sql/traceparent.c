// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/traceparent.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "sql/tags.h"

/* VERSION-TRACE-SPAN-FLAGS; later versions may append fields after another hyphen. */
#define VERSION_DIGITS	2
#define TRACE_AT	(VERSION_DIGITS + 1)
#define SPAN_AT		(TRACE_AT + TRACE_DIGITS + 1)
#define FLAGS_AT	(SPAN_AT + SPAN_DIGITS + 1)
#define PARENT_LENGTH	(FLAGS_AT + 2)

static const char name[] = "traceparent";

struct search {
	struct traceparent *parent;
	bool found;
};

/*
 * Copy @digits lower-case hexadecimal digits to @to, with a NUL. *@zero: all are 0. Return false if
 * any byte is not such a digit.
 */
static bool copy_digits(const char *from, size_t digits, char *to, bool *zero)
{
	*zero = true;
	for (size_t i = 0; i < digits; i++) {
		if (hex_lower(from[i]) < 0)
			return false;
		*zero &= from[i] == '0';
		to[i] = from[i];
	}
	to[digits] = '\0';
	return true;
}

bool traceparent_parse(const char *value, size_t value_len, struct traceparent *parent)
{
	char text[PARENT_LENGTH + 1], version[VERSION_DIGITS + 1], flags[3];
	size_t len = tags_decode(value, value_len, text, sizeof(text));
	struct traceparent found;
	bool no_version, no_trace, no_span, no_flags;

	if (len < PARENT_LENGTH || text[TRACE_AT - 1] != '-' || text[SPAN_AT - 1] != '-' ||
	    text[FLAGS_AT - 1] != '-' ||
	    !copy_digits(text, VERSION_DIGITS, version, &no_version) ||
	    !copy_digits(text + TRACE_AT, TRACE_DIGITS, found.trace, &no_trace) ||
	    !copy_digits(text + SPAN_AT, SPAN_DIGITS, found.span, &no_span) ||
	    !copy_digits(text + FLAGS_AT, 2, flags, &no_flags))
		return false;
	if (no_trace || no_span || !strcmp(version, "ff") ||
	    (len > PARENT_LENGTH && (no_version || text[PARENT_LENGTH] != '-')))
		return false;
	found.flags = (uint8_t)hex_byte(flags);
	*parent = found;
	return true;
}

static void search_tag(void *arg, const struct tag *tag)
{
	struct search *search = arg;

	if (tag->key_len == sizeof(name) - 1 && !memcmp(tag->key, name, tag->key_len) &&
	    traceparent_parse(tag->value, tag->len, search->parent))
		search->found = true;
}

void traceparent_write(const struct traceparent *parent, char text[TRACEPARENT])
{
	snprintf(text, TRACEPARENT, "00-%s-%s-%02x", parent->trace, parent->span, parent->flags);
}

bool traceparent_find(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
		      struct traceparent *parent)
{
	struct search search = { .parent = parent };

	/* Most statements have none; memmem() is faster than parsing the comments. */
	if (memmem(text, len, name, sizeof(name) - 1))
		tags_each(dialect, text, len, cut, search_tag, &search);
	return search.found;
}
