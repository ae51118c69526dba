/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Foreign text for terminals and JSON: a byte of choices, then the text. */
#include "cli/format/escape.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/valid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct output out;
	struct input in = { data, size };
	bool cut = input_byte(&in) & 1, valid;
	const char *end;

	/* The output must fit into the buffer: at most six bytes for one of the input. */
	if (in.left > OUTPUT_SIZE / 6 - 1)
		return 0;
	output_init(&out, -1);
	escape_terminal(&out, in.at, in.left, cut);
	REQUIRE(is_harmless(out.buf, out.len), "%.*s", (int)out.len, out.buf);
	if (!in.left)
		REQUIRE(!out.len);
	REQUIRE(escape_width(in.at, in.left) <= 4 * in.left);

	output_init(&out, -1);
	output_char(&out, '"');
	valid = escape_json(&out, in.at, in.left, cut);
	output_char(&out, '"');
	end = out.buf + out.len;
	REQUIRE(valid_string(out.buf, end) == end, "%.*s", (int)out.len, out.buf);
	REQUIRE(is_harmless(out.buf, out.len), "%.*s", (int)out.len, out.buf);
	REQUIRE(valid || memmem(out.buf, out.len, "\xef\xbf\xbd", 3));
	return 0;
}
