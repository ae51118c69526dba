/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The trace context in comments. Input: a byte of choices, then the statement. */
#include "sql/traceparent.h"
#include "tests/fuzz/fuzz.h"

static void check_digits(const char *digits, size_t count)
{
	REQUIRE(strlen(digits) == count && strspn(digits, "0123456789abcdef") == count, "%s",
		digits);
	REQUIRE(strspn(digits, "0") < count, "%s", digits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t choice = input_byte(&in);
	enum fingerprint_dialect dialect = choice & 1 ? FINGERPRINT_MYSQL : FINGERPRINT_POSTGRES;
	struct traceparent parent, again;
	char text[128];
	int len;

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
