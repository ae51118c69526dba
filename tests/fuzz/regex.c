/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --match; short texts are compared with the C library's regexec(3). Input: "PATTERN\nTEXT". */
#include <errno.h>
#include <regex.h>

#include "sql/regex.h"
#include "tests/fuzz/fuzz.h"

/* Return whether a range from @low to @high has some letters, and not as they are in both cases. */
static bool is_mixed(char low, char high)
{
	return high >= 'A' && low <= 'z' &&
	       !(low >= 'A' && high <= 'Z') && !(low >= 'a' && high <= 'z');
}

/*
 * Return whether POSIX defines @source: no collating elements, only special characters escaped, no
 * repetitions of repetitions, of which glibc copies what they repeat, and no ranges with letters of
 * which it would have to add the other case.
 */
static bool is_plain(const char *source)
{
	for (const char *p = source; *p; p++) {
		if ((unsigned char)*p >= 0x80 || (*p == '[' && p[1] && strchr(".=", p[1])) ||
		    (*p == '-' && p > source && p[1] && is_mixed(p[-1], p[1])) ||
		    (strchr("*+?}", *p) && p[1] && strchr("*+?{", p[1])) ||
		    (*p == '\\' && !(p[1] && strchr(".[]\\*+?{}()|^$/", p[1]))))
			return false;
	}
	return true;
}

static void check_library(const char *source, const char *text, size_t len, bool found)
{
	char bare[64], whole[64];
	regex_t regex;

	snprintf(bare, sizeof(bare), "%.*s", (int)strlen(source) - 2, source + 1);
	snprintf(whole, sizeof(whole), "%.*s", (int)len, text);
	if (regcomp(&regex, bare, REG_EXTENDED | REG_ICASE | REG_NOSUB))
		return;
	REQUIRE(found == !regexec(&regex, whole, 0, NULL, 0), "%s in '%s': %d", source, whole,
		found);
	regfree(&regex);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct regex pattern;
	struct input in = { data, size };
	char *source = input_until(&in, '\n'), *text = input_copy(in.at, in.left);
	size_t at = 0;
	int err = regex_parse(&pattern, source, &at);

	REQUIRE(err == 0 || err == -EINVAL || err == -E2BIG, "%d", err);
	REQUIRE(at <= strlen(source) + 1, "%zu", at);
	REQUIRE(pattern.nnodes <= REGEX_NODES);
	if (!err) {
		bool found = regex_match(&pattern, text, in.left);

		/* glibc takes anchors inside of a pattern for those of lines. */
		if (!pattern.text && strlen(source) < 40 && in.left < 40 &&
		    !memchr(text, '\0', in.left) && is_plain(source) &&
		    !(strpbrk(source, "^$") && memchr(text, '\n', in.left)))
			check_library(source, text, in.left, found);
		/* A match in a text is one in a longer text, unless the pattern has an anchor. */
		if (found && !strchr(source, '$')) {
			char *more = malloc(in.left + 1);

			memcpy(more, text, in.left);
			more[in.left] = 'x';
			REQUIRE(regex_match(&pattern, more, in.left + 1), "%s", source);
			free(more);
		}
	}
	free(text);
	free(source);
	return 0;
}
