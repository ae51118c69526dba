/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Name patterns, compared with the C library's fnmatch(3). Input: "PATTERN\nNAME". */
#include <fnmatch.h>

#include "sql/glob.h"
#include "tests/fuzz/fuzz.h"

/* Return whether POSIX and glob_match() define @pattern alike: no classes, all sets terminated. */
static bool is_plain(const char *pattern)
{
	for (const char *p = pattern; *p; p++)
		if ((unsigned char)*p >= 0x80 || (*p == '[' && strchr(":.=", p[1])))
			return false;
	for (const char *p = strchr(pattern, '['); p; p = strchr(p, '[')) {
		p += p[1] == '!' || p[1] == '^' ? 2 : 1;
		p = *p ? strchr(p + 1, ']') : NULL;
		if (!p)
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	char *pattern = input_until(&in, '\n'), *name = input_until(&in, '\0');
	bool matches = glob_match(pattern, name);

	if (is_plain(pattern) && size < 200)
		REQUIRE(matches == !fnmatch(pattern, name, FNM_NOESCAPE), "%s %s", pattern, name);
	if (!glob_is_pattern(pattern))
		REQUIRE(matches == !strcmp(pattern, name), "%s %s", pattern, name);
	free(pattern);
	free(name);
	return 0;
}
