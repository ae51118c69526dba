// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/traceparent.h"

#include <string.h>

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

/* Return the value of a hexadecimal digit, or -1; upper-case ones are valid only with @upper. */
static int hex_digit(char c, bool upper)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return upper && c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/*
 * Copy @digits lower-case hexadecimal digits to @to, with a NUL. *@zero: all are 0. Return false if
 * any byte is not such a digit.
 */
static bool copy_digits(const char *from, size_t digits, char *to, bool *zero)
{
	*zero = true;
	for (size_t i = 0; i < digits; i++) {
		if (hex_digit(from[i], false) < 0)
			return false;
		*zero &= from[i] == '0';
		to[i] = from[i];
	}
	to[digits] = '\0';
	return true;
}

/* Decode %XX escapes into the @size bytes of @to; the rest is dropped. Return the length there. */
static size_t url_decode(const char *from, size_t len, char *to, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < size; i++) {
		int high = len - i > 2 && from[i] == '%' ? hex_digit(from[i + 1], true) : -1;
		int low = high >= 0 ? hex_digit(from[i + 2], true) : -1;

		to[n++] = low >= 0 ? (char)(high << 4 | low) : from[i];
		i += low >= 0 ? 2 : 0;
	}
	return n;
}

static bool parent_parse(const char *value, size_t value_len, struct traceparent *parent)
{
	char text[PARENT_LENGTH + 1], version[VERSION_DIGITS + 1], flags[3];
	size_t len = url_decode(value, value_len, text, sizeof(text));
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
	found.flags = (uint8_t)(hex_digit(flags[0], false) << 4 | hex_digit(flags[1], false));
	*parent = found;
	return true;
}

static bool is_key(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.' || c == '%';
}

/* Parse the key='value' pairs of a comment; skip everything else. */
static void comment_search(void *arg, const char *at, size_t len)
{
	const char *end = at + len, *key, *value;
	struct search *search = arg;
	size_t key_len;

	if (len < 2 || at[1] != '*')
		return;
	for (at += 2; at < end;) {
		key = at;
		while (at < end && is_key(*at))
			at++;
		key_len = (size_t)(at - key);
		if (!key_len || end - at < 2 || at[0] != '=' || at[1] != '\'') {
			at += !key_len;
			continue;
		}
		value = at += 2;
		while (at < end && *at != '\'')
			at += *at == '\\' && end - at > 1 ? 2 : 1;
		if (at >= end)
			return;
		if (key_len == sizeof(name) - 1 && !memcmp(key, name, key_len) &&
		    parent_parse(value, (size_t)(at - value), search->parent))
			search->found = true;
		at++;
	}
}

bool traceparent_find(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
		      struct traceparent *parent)
{
	struct search search = { .parent = parent };

	/* Most statements have none; memmem() is faster than parsing the comments. */
	if (memmem(text, len, name, sizeof(name) - 1))
		fingerprint_comments(dialect, text, len, cut, comment_search, &search);
	return search.found;
}
