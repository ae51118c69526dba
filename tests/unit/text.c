// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Numbers and parts of texts, compared with the C library's. */
#include "usdt/text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"
#include "tests/unit/random.h"

static void numbers(void)
{
	static const char alphabet[] = "0123456789afAFgxX+- \t\n.";
	static const char *const texts[] = {
		"", "0", "0x", "0x1", "0xg", "-1", "- 1", "+7", " \t\n12 ", "18446744073709551615",
		"18446744073709551616", "-18446744073709551616", "ffffffffffffffff",
		"10000000000000000", "7f12-7f13", "4294967295\n",
	};
	char text[24] = "", *end, *expected;

	for (size_t i = 0; i < 20000; i++) {
		if (i < sizeof(texts) / sizeof(texts[0]))
			strcpy(text, texts[i]);
		else
			for (size_t at = 0; at < sizeof(text) - 1; at++)
				text[at] = alphabet[random_next() % sizeof(alphabet)];
		for (unsigned int base = 10; base <= 16; base += 6) {
			uint64_t value = strtoull(text, &expected, (int)base);

			CHECK(text_number(text, &end, base) == value && end == expected,
			      "'%s', base %u: %zu bytes, not %zu", text, base,
			      (size_t)(end - text), (size_t)(expected - text));
		}
	}
}

static void parts(void)
{
	static const char *const texts[] = { "", "a", "ab", "aab", "b", "abab" };

	for (size_t i = 0; i < 36; i++)
		CHECK(text_find(texts[i / 6], texts[i % 6]) == strstr(texts[i / 6], texts[i % 6]),
		      "'%s' in '%s'", texts[i % 6], texts[i / 6]);
}

int main(void)
{
	RUN(numbers);
	RUN(parts);
	return check_done();
}
