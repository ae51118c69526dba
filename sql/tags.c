// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/tags.h"

#include <string.h>

#include "base/hex.h"

struct search {
	void (*each)(void *arg, const struct tag *tag);
	void *arg;
};

size_t tags_decode(const char *from, size_t len, char *to, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < size; i++) {
		int high = len - i > 2 && from[i] == '%' ? hex_digit(from[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(from[i + 2]) : -1;

		if (from[i] == '\\' && len - i > 1)
			i++;
		to[n++] = low >= 0 ? (char)(high << 4 | low) : from[i];
		i += low >= 0 ? 2 : 0;
	}
	return n;
}

static bool is_key(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.' || c == '%';
}

/* Parse the key='value' pairs of a comment; skip everything else. */
static void tags_comment(void *arg, const char *at, size_t len)
{
	const struct search *search = arg;
	const char *end = at + len;
	struct tag tag;

	if (len < 2 || at[1] != '*')
		return;
	for (at += 2; at < end;) {
		tag.key = at;
		while (at < end && is_key(*at))
			at++;
		tag.key_len = (size_t)(at - tag.key);
		if (!tag.key_len || end - at < 2 || at[0] != '=' || at[1] != '\'') {
			at += !tag.key_len;
			continue;
		}
		tag.value = at += 2;
		while (at < end && *at != '\'')
			at += *at == '\\' && end - at > 1 ? 2 : 1;
		if (at >= end)
			return;
		tag.len = (size_t)(at - tag.value);
		search->each(search->arg, &tag);
		at++;
	}
}

void tags_each(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
	       void (*each)(void *arg, const struct tag *tag), void *arg)
{
	struct search search = { .each = each, .arg = arg };

	fingerprint_comments(dialect, text, len, cut, tags_comment, &search);
}

static void tags_add(void *arg, const struct tag *tag)
{
	struct tags *tags = arg;
	char *to = tags->bytes + tags->used;
	size_t room = sizeof(tags->bytes) - tags->used;
	struct tag add = *tag;

	if (tags->count == TAGS_MAX)
		return;
	if (memchr(add.key, '%', add.key_len)) {
		if (add.key_len > room)
			return;
		add.key_len = tags_decode(add.key, add.key_len, to, room);
		add.key = to;
		to += add.key_len;
		room -= add.key_len;
	}
	if (add.len > room || tags_get(tags, add.key, add.key_len))
		return;
	add.value = to;
	add.len = tags_decode(tag->value, tag->len, to, room);
	tags->used = (size_t)(to + add.len - tags->bytes);
	tags->tag[tags->count++] = add;
}

bool tags_find(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
	       struct tags *tags)
{
	tags->count = 0;
	tags->used = 0;
	/* Most statements have none; memmem() is faster than parsing the comments. */
	if (memmem(text, len, "*/", 2) && memmem(text, len, "='", 2))
		tags_each(dialect, text, len, cut, tags_add, tags);
	return tags->count;
}

const struct tag *tags_get(const struct tags *tags, const char *key, size_t len)
{
	for (unsigned int i = 0; i < tags->count; i++)
		if (tags->tag[i].key_len == len && !memcmp(tags->tag[i].key, key, len))
			return &tags->tag[i];
	return NULL;
}
