/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --match: "PATTERN\nTEXT". */
#include <errno.h>

#include "db/pattern.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pattern pattern;
	struct input in = { data, size };
	char *source = input_until(&in, '\n'), *text = input_copy(in.at, in.left);
	size_t at = 0;
	int err = pattern_parse(&pattern, source, &at);

	REQUIRE(err == 0 || err == -EINVAL || err == -E2BIG, "%d", err);
	REQUIRE(at <= strlen(source) + 1, "%zu", at);
	REQUIRE(pattern.nnodes <= PATTERN_NODES);
	if (!err) {
		bool found = pattern_match(&pattern, text, in.left);

		/* What is in a text is in one that goes on, unless the end is asked for. */
		if (found && !strchr(source, '$')) {
			char *more = malloc(in.left + 1);

			memcpy(more, text, in.left);
			more[in.left] = 'x';
			REQUIRE(pattern_match(&pattern, more, in.left + 1), "%s", source);
			free(more);
		}
	}
	free(text);
	free(source);
	return 0;
}
