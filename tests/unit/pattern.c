// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Patterns, held against the C library's regexec(3). */
#include <errno.h>
#include <regex.h>
#include <string.h>

#include "db/pattern.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define ROUNDS	50000

static struct pattern pattern;

static bool matches(const char *source, const char *text)
{
	size_t at;

	if (pattern_parse(&pattern, source, &at)) {
		CHECK(false, "%s at %zu", source, at);
		return false;
	}
	return pattern_match(&pattern, text, strlen(text));
}

static void pieces(void)
{
	CHECK(matches("orders", "select * from ORDERS"), "any case");
	CHECK(matches("a.b", "x A.B"), "no wildcard");
	CHECK(!matches("a.b", "a-b"), "no wildcard");
	CHECK(matches("/", "a/b") && matches("//", "a//b"), "too short for an expression");
	CHECK(!matches("abc", "ab"), "longer than the text");
}

static void expressions(void)
{
	CHECK(matches("/from (orders|items)/", "SELECT 1 FROM items i"), "alternatives");
	CHECK(matches("/^select .* limit [0-9]+$/", "select a limit 10"), "anchors");
	CHECK(!matches("/^elect/", "select"), "the beginning");
	CHECK(matches("/[[:digit:]]{3,4}x/", "a 1234X"), "bounds");
	CHECK(!matches("/ [0-9]{3}x/", " 1234x"), "bounds");
	CHECK(matches("/\\(\\*\\)/", "count(*)"), "quoted");
	CHECK(matches("/[^a-z ]/", "abc_") && !matches("/[^a-z ]/", "ABC abc"), "not in a class");
	CHECK(matches("/a|/", "zzz"), "an empty one is everywhere");
}

static void refused(void)
{
	static const char *const bad[] = {
		"/(/", "/)/", "/a(b/", "/[a/", "/*a/", "/a{2/", "/a{3,2}/", "/a{999}/", "/a\\/",
		"/[[:nothing:]]/", "/[z-a]/", "/a{1}{2}/", "/,*{1}/",
	};
	char many[1200] = "/";
	size_t at;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(pattern_parse(&pattern, bad[i], &at) == -EINVAL, "%s", bad[i]);
	memset(many + 1, '(', 600);
	memset(many + 601, ')', 500);
	strcpy(many + 1101, "/");
	CHECK(pattern_parse(&pattern, many, &at) == -E2BIG, "depth");
	CHECK(pattern_parse(&pattern, "/(((a{9}){9}){9}){9}/", &at) == -E2BIG, "states");
}

/* What makes a machine that goes back and forth slow: a second would be a day there. */
static void hostile(void)
{
	static char text[100000];

	memset(text, 'a', sizeof(text) - 1);
	CHECK(!matches("/(a*)*(a*)*(a|aa)+b/", text), "no b");
	CHECK(!matches("/(x+x+)+y/", text), "no x");
}

static void as_the_library(void)
{
	static const char *const parts[] = {
		"a", "b", "C", ".", "[ab]", "[^a]", "(a|b)", "(ab)", "|", "a*", "b+", "c?",
		"(a|bc)*", "a{2}", "b{1,2}", "c{0,}", "(^a|b$)",
	};
	unsigned int used = 0, found = 0;

	for (int i = 0; i < ROUNDS && !check_failures; i++) {
		char source[256] = "/", text[12];
		size_t n = 1 + random_below(6), len = random_below(10);
		regex_t regex;
		bool ours, theirs;

		/* Anchors only where POSIX says what they mean. */
		strcat(source, random_below(5) ? "" : "^");
		while (n--)
			strcat(source, parts[random_below(sizeof(parts) / sizeof(parts[0]))]);
		strcat(source, random_below(5) ? "" : "$");
		for (size_t k = 0; k < len; k++)
			text[k] = "abcABC"[random_below(6)];
		text[len] = '\0';
		/* An empty alternative is undefined in POSIX. */
		if (strstr(source, "||") || strstr(source, "/|") || strstr(source, "^|") ||
		    strstr(source, "|$") || source[strlen(source) - 1] == '|')
			continue;
		if (regcomp(&regex, source + 1, REG_EXTENDED | REG_ICASE | REG_NOSUB))
			continue;
		theirs = !regexec(&regex, text, 0, NULL, 0);
		regfree(&regex);
		strcat(source, "/");
		ours = matches(source, text);
		used++;
		found += theirs;
		CHECK(ours == theirs, "%s in '%s': %d, not %d", source, text, ours, theirs);
	}
	CHECK(used > ROUNDS / 2 && found > ROUNDS / 10, "%u used, %u found", used, found);
}

int main(void)
{
	RUN(pieces);
	RUN(expressions);
	RUN(refused);
	RUN(hostile);
	RUN(as_the_library);
	return check_done();
}
