/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The trace context and the tags in comments. Input: a byte of choices, then the statement. */
#include "sql/tags.h"
#include "sql/traceparent.h"
#include "tests/fuzz/fuzz.h"

static void check_digits(const char *digits, size_t count)
{
	REQUIRE(strlen(digits) == count && strspn(digits, "0123456789abcdef") == count, "%s",
		digits);
	REQUIRE(strspn(digits, "0") < count, "%s", digits);
}

static void check_tags(enum fingerprint_dialect dialect, struct input in, bool cut)
{
	static struct tags tags;

	tags_find(dialect, (const char *)in.at, in.left, cut, &tags);
	REQUIRE(tags.count <= TAGS_MAX && tags.used <= TAGS_BYTES, "%zu", tags.used);
	for (unsigned int i = 0; i < tags.count; i++) {
		const struct tag *tag = &tags.tag[i];

		REQUIRE((tag->key >= (const char *)in.at &&
			 tag->key + tag->key_len < (const char *)in.at + in.left) ||
			(tag->key >= tags.bytes && tag->key + tag->key_len <= tag->value), "key %u",
			i);
		REQUIRE(tag->value >= tags.bytes && tag->value + tag->len <= tags.bytes + tags.used,
			"value %u", i);
		REQUIRE(tags_get(&tags, tag->key, tag->key_len) == tag, "key %u twice", i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t choice = input_byte(&in);
	enum fingerprint_dialect dialect = choice & 1 ? FINGERPRINT_MYSQL : FINGERPRINT_POSTGRES;
	struct traceparent parent, again;
	char text[128];
	int len;

	check_tags(dialect, in, choice & 2);
	if (!traceparent_find(dialect, (const char *)in.at, in.left, choice & 2, &parent))
		return 0;
	check_digits(parent.trace, TRACE_DIGITS);
	check_digits(parent.span, SPAN_DIGITS);
	/* The result is found again in the comment that a client would write. */
	len = snprintf(text, sizeof(text), "/*traceparent='00-%s-%s-%02x'*/", parent.trace,
		       parent.span, parent.flags);
	REQUIRE(traceparent_find(dialect, text, (size_t)len, false, &again), "%s", text);
	REQUIRE(!strcmp(parent.trace, again.trace) && !strcmp(parent.span, again.span) &&
		parent.flags == again.flags, "%s", text);
	return 0;
}
