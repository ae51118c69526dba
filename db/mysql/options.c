// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/options.h"

#include "usdt/accessor.h"

/* Find the bits that thd_test_options() tests: mov N(%rdi),%rax; and %rsi,%rax, or the like. */
int64_t mysql_options_find(const struct elf *elf)
{
	static const char *const patterns[] = {
		"48 8b 87 @@@@@@@@ 48 21 f0 c3", "48 23 b7 @@@@@@@@ 48 89 f0 c3",
		"48 89 f0 48 23 87 @@@@@@@@ c3",
	};
	int64_t offset;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (!accessor_match(elf, "thd_test_options", patterns[i], &offset) && offset > 0)
			return offset;
	return -1;
}
