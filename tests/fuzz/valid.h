/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Validators of the output formats: UTF-8, text for terminals, JSON. */
#ifndef TESTS_FUZZ_VALID_H
#define TESTS_FUZZ_VALID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Return the length of the UTF-8 character at @p, by table 3-7 of the Unicode Standard, and its
 * code point in *@code; 0 if it is invalid.
 */
static inline size_t utf8_character(const uint8_t *p, const uint8_t *end, uint32_t *code)
{
	static const struct {
		uint8_t first, last, low, high, more;
	} rows[] = {
		{ 0x00, 0x7f, 0, 0, 0 }, { 0xc2, 0xdf, 0x80, 0xbf, 1 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 2 }, { 0xe1, 0xec, 0x80, 0xbf, 2 },
		{ 0xed, 0xed, 0x80, 0x9f, 2 },
		{ 0xee, 0xef, 0x80, 0xbf, 2 }, { 0xf0, 0xf0, 0x90, 0xbf, 3 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 3 }, { 0xf4, 0xf4, 0x80, 0x8f, 3 },
	};

	for (size_t i = 0; p < end && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (*p < rows[i].first || *p > rows[i].last)
			continue;
		if (end - p <= rows[i].more || (rows[i].more && (p[1] < rows[i].low ||
								 p[1] > rows[i].high)))
			return 0;
		*code = rows[i].more ? *p & (0x3fu >> rows[i].more) : *p;
		for (size_t k = 1; k <= rows[i].more; k++) {
			if ((p[k] & 0xc0) != 0x80)
				return 0;
			*code = *code << 6 | (p[k] & 0x3f);
		}
		return 1u + rows[i].more;
	}
	return 0;
}

/* Return whether the text is UTF-8 without control characters and bidirectional formatting. */
static inline bool is_harmless(const char *text, size_t len)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + len;
	uint32_t code = 0;

	for (size_t n; p < end; p += n) {
		n = utf8_character(p, end, &code);
		if (!n || code < 0x20 || (code >= 0x7f && code < 0xa0) ||
		    (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
		    (code >= 0x2066 && code <= 0x2069) || code == 0xfeff)
			return false;
	}
	return true;
}

/* The parsers below return the position after the item at @p, or NULL if invalid (RFC 8259). */

static inline const char *json_hex(const char *p, const char *end, unsigned int *unit)
{
	*unit = 0;
	if (end - p < 4)
		return NULL;
	for (int i = 0; i < 4; i++) {
		const char *digit = p[i] ? strchr("0123456789abcdef", p[i]) : NULL;

		if (!digit)
			return NULL;
		*unit = *unit << 4 | (unsigned int)(digit - "0123456789abcdef");
	}
	return p + 4;
}

static inline const char *json_escape(const char *p, const char *end)
{
	unsigned int unit;

	if (p == end || !*p || !strchr("\"\\/bfnrtu", *p))
		return NULL;
	if (*p++ != 'u')
		return p;
	p = json_hex(p, end, &unit);
	if (!p || (unit >= 0xdc00 && unit <= 0xdfff))
		return NULL;
	if (unit < 0xd800 || unit > 0xdbff)
		return p;
	if (end - p < 2 || p[0] != '\\' || p[1] != 'u')
		return NULL;
	p = json_hex(p + 2, end, &unit);
	return p && unit >= 0xdc00 && unit <= 0xdfff ? p : NULL;
}

static inline const char *valid_string(const char *p, const char *end)
{
	if (p == end || *p++ != '"')
		return NULL;
	while (p && p < end) {
		uint32_t code;
		size_t n;

		if (*p == '"')
			return p + 1;
		if (*p == '\\') {
			p = json_escape(p + 1, end);
			continue;
		}
		n = utf8_character((const uint8_t *)p, (const uint8_t *)end, &code);
		if (!n || code < 0x20)
			return NULL;
		p += n;
	}
	return NULL;
}

static inline const char *json_digits(const char *p, const char *end)
{
	const char *first = p;

	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p > first ? p : NULL;
}

static inline const char *valid_number(const char *p, const char *end)
{
	p += p < end && *p == '-';
	if (p < end && *p == '0')
		p++;
	else
		p = json_digits(p, end);
	if (p && p < end && *p == '.')
		p = json_digits(p + 1, end);
	if (p && p < end && (*p == 'e' || *p == 'E')) {
		p++;
		p += p < end && (*p == '+' || *p == '-');
		p = json_digits(p, end);
	}
	return p;
}

static inline const char *json_word(const char *p, const char *end, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(end - p) >= len && !memcmp(p, word, len) ? p + len : NULL;
}

static inline const char *json_value(const char *p, const char *end, int depth);

/* Parse the members of an object or an array after its opening bracket. */
static inline const char *json_members(const char *p, const char *end, char close, int depth)
{
	if (p < end && *p == close)
		return p + 1;
	while (p && p < end) {
		if (close == '}') {
			p = valid_string(p, end);
			if (!p || p == end || *p++ != ':')
				return NULL;
		}
		p = json_value(p, end, depth - 1);
		if (!p || p == end || (*p != ',' && *p != close))
			return NULL;
		if (*p++ == close)
			return p;
	}
	return NULL;
}

static inline const char *json_value(const char *p, const char *end, int depth)
{
	if (p == end || !depth)
		return NULL;
	switch (*p) {
	case '{':
		return json_members(p + 1, end, '}', depth);
	case '[':
		return json_members(p + 1, end, ']', depth);
	case '"':
		return valid_string(p, end);
	case 't':
		return json_word(p, end, "true");
	case 'f':
		return json_word(p, end, "false");
	case 'n':
		return json_word(p, end, "null");
	}
	return valid_number(p, end);
}

/* Return whether the text is one object without white space, and a newline. */
static inline bool is_json_line(const char *text, size_t len)
{
	const char *end = text + len;

	return len && *text == '{' && end[-1] == '\n' && json_value(text, end, 16) == end - 1;
}

#endif
