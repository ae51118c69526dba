/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/format/escape.h"

#include <string.h>

#include "base/base.h"
#include "base/hex.h"
#include "cli/format/width.h"

struct range {
	uint32_t first, last;
};

/* From U+0080: control and invisible characters, and those that affect their neighbours; sorted. */
static const struct range invisible[] = {
	{ 0x0080, 0x009f },	/* C1 */
	{ 0x00ad, 0x00ad },	/* soft hyphen */
	{ 0x034f, 0x034f },	/* grapheme joiner */
	{ 0x061c, 0x061c },	/* Arabic letter mark */
	{ 0x115f, 0x1160 },	/* Hangul fillers */
	{ 0x17b4, 0x17b5 },	/* Khmer inherent vowels */
	{ 0x180b, 0x180f },	/* Mongolian selectors */
	{ 0x200b, 0x200f },	/* zero width, direction marks */
	{ 0x2028, 0x202e },	/* separators, bidi embeddings */
	{ 0x2060, 0x206f },	/* joiner, invisible operators, bidi isolates */
	{ 0x3164, 0x3164 },	/* Hangul filler */
	{ 0xfe00, 0xfe0f },	/* variation selectors */
	{ 0xfeff, 0xfeff },	/* byte order mark */
	{ 0xffa0, 0xffa0 },	/* halfwidth Hangul filler */
	{ 0xfff0, 0xfffb },	/* interlinear annotation */
	{ 0xfffe, 0xffff },	/* noncharacters */
	{ 0x1bca0, 0x1bca3 },	/* shorthand format controls */
	{ 0x1d173, 0x1d17a },	/* musical format controls */
	{ 0xe0000, 0xe0fff },	/* tags, more variation selectors */
};

/* A character, or the longest prefix of an invalid one, as the Unicode standard recommends. */
struct character {
	uint32_t code;
	unsigned int len;	/* bytes, at least 1 */
	bool valid;
	bool partial;		/* invalid only because the text ends */
};

static bool is_invisible(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_SIZE(invisible) && code >= invisible[i].first; i++) {
		if (code <= invisible[i].last)
			return true;
	}
	return false;
}

static bool is_blank(uint8_t c)
{
	return c >= '\t' && c <= '\r';
}

/* Decode a character that begins with @p[0] >= 0x80. */
static struct character decode(const uint8_t *p, const uint8_t *end)
{
	struct character c = { .len = 1 };
	uint8_t low = 0x80, high = 0xbf;
	unsigned int size;

	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		size = 2;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		size = 3;
		low = p[0] == 0xe0 ? 0xa0 : low;	/* no overlong encoding */
		high = p[0] == 0xed ? 0x9f : high;	/* no surrogates */
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		size = 4;
		low = p[0] == 0xf0 ? 0x90 : low;
		high = p[0] == 0xf4 ? 0x8f : high;	/* up to U+10FFFF */
	} else {
		return c;
	}
	c.code = p[0] & (0x7f >> size);
	for (; c.len < size; c.len++) {
		if (p + c.len == end) {
			c.partial = true;
			return c;
		}
		if (p[c.len] < low || p[c.len] > high)
			return c;
		c.code = c.code << 6 | (p[c.len] & 0x3f);
		low = 0x80;
		high = 0xbf;
	}
	c.valid = true;
	return c;
}

/* Return the first character that must be escaped, decoded in @c, or @end. */
static inline const uint8_t *find_special(const uint8_t *p, const uint8_t *end, bool json,
					  struct character *c)
{
	while (p < end) {
		if (*p >= 0x20 && *p < 0x7f && !(json && (*p == '"' || *p == '\\'))) {
			p++;
			continue;
		}
		if (*p < 0x80) {
			*c = (struct character){ .code = *p, .len = 1, .valid = true };
			return p;
		}
		*c = decode(p, end);
		if (!c->valid || is_invisible(c->code))
			return p;
		p += c->len;
	}
	return end;
}

static void put_hex_byte(struct output *out, uint8_t byte)
{
	const char text[4] = { '\\', 'x', HEX_DIGITS[byte >> 4], HEX_DIGITS[byte & 15] };

	output_bytes(out, text, sizeof(text));
}

static unsigned int code_digits(uint32_t code)
{
	return code > 0xfffff ? 6 : code > 0xffff ? 5 : 4;
}

/* Append \u{NNNN}. */
static void put_code(struct output *out, uint32_t code)
{
	output_string(out, "\\u{");
	for (unsigned int i = code_digits(code); i--;)
		output_char(out, HEX_DIGITS[code >> 4 * i & 15]);
	output_char(out, '}');
}

void escape_terminal(struct output *out, const void *text, size_t len, bool cut)
{
	const uint8_t *p = text, *end = p + len, *at;
	struct character c;

	for (; (at = find_special(p, end, false, &c)) < end; p = at + c.len) {
		output_bytes(out, p, at - p);
		if (c.partial && cut)
			return;
		if (!c.valid || !(c.code >= 0x80 || is_blank(c.code))) {
			for (unsigned int i = 0; i < c.len; i++)
				put_hex_byte(out, at[i]);
		} else if (c.code >= 0x80) {
			put_code(out, c.code);
		} else {
			output_char(out, ' ');
			while (at + c.len < end && is_blank(at[c.len]))
				c.len++;
		}
	}
	output_bytes(out, p, end - p);
}

static size_t character_width(const struct character *c)
{
	if (!c->valid)
		return 4 * c->len;
	if (is_invisible(c->code))
		return 4 + code_digits(c->code);
	return width_of(c->code);
}

size_t escape_fit(const void *text, size_t len, size_t room, size_t *columns)
{
	const uint8_t *p = text, *end = p + len;
	struct character c;
	size_t width = 0, more;

	for (; p < end; p += c.len) {
		c.len = 1;
		if (is_blank(*p)) {
			more = p == (const uint8_t *)text || !is_blank(p[-1]);
		} else if (*p < 0x80) {
			more = *p < 0x20 || *p == 0x7f ? 4 : 1;
		} else {
			c = decode(p, end);
			more = character_width(&c);
		}
		if (more > room - width)
			break;
		width += more;
	}
	if (columns)
		*columns = width;
	return (size_t)(p - (const uint8_t *)text);
}

size_t escape_width(const void *text, size_t len)
{
	size_t columns;

	escape_fit(text, len, SIZE_MAX, &columns);
	return columns;
}

static void put_json_unit(struct output *out, unsigned int unit)
{
	const char text[6] = { '\\', 'u', HEX_DIGITS[unit >> 12 & 15], HEX_DIGITS[unit >> 8 & 15],
			       HEX_DIGITS[unit >> 4 & 15], HEX_DIGITS[unit & 15] };

	output_bytes(out, text, sizeof(text));
}

static void put_json(struct output *out, uint32_t code)
{
	static const char letters[0x80] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r',
		['"'] = '"', ['\\'] = '\\',
	};

	if (code < sizeof(letters) && letters[code]) {
		output_char(out, '\\');
		output_char(out, letters[code]);
	} else if (code <= 0xffff) {
		put_json_unit(out, code);
	} else {
		put_json_unit(out, 0xd7c0 + (code >> 10));
		put_json_unit(out, 0xdc00 + (code & 0x3ff));
	}
}

bool escape_json(struct output *out, const void *text, size_t len, bool cut)
{
	const uint8_t *p = text, *end = p + len, *at;
	struct character c;
	bool valid = true;

	for (; (at = find_special(p, end, true, &c)) < end; p = at + c.len) {
		output_bytes(out, p, at - p);
		if (c.partial && cut)
			return valid;
		if (c.valid) {
			put_json(out, c.code);
		} else {
			output_string(out, "\xef\xbf\xbd");
			valid = false;
		}
	}
	output_bytes(out, p, end - p);
	return valid;
}

size_t escape_copy(char *to, size_t size, const char *text)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text);
	struct character c;
	size_t len = 0;

	for (; p < end; p += c.len) {
		c = (struct character){ .len = 1, .valid = (*p >= ' ' && *p < 0x7f) || *p == '\n' };
		if (*p >= 0x80) {
			c = decode(p, end);
			c.valid = c.valid && !is_invisible(c.code);
		}
		if (len + (c.valid ? c.len : 1) >= size)
			break;
		memcpy(to + len, c.valid ? (const char *)p : "?", c.valid ? c.len : 1);
		len += c.valid ? c.len : 1;
	}
	to[len] = '\0';
	return len;
}

void escape_label(struct output *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"' || *text == '\n')
			output_char(out, '\\');
		output_char(out, *text == '\n' ? 'n' : *text);
	}
}
