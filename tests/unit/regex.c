// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sql/regex.c, compared with the C library's regexec(3). */
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "sql/regex.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define ROUNDS	50000

static struct regex pattern;

static bool matches(const char *source, const char *text)
{
	size_t at;

	if (regex_parse(&pattern, source, &at)) {
		CHECK(false, "%s at %zu", source, at);
		return false;
	}
	return regex_match(&pattern, text, strlen(text));
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
		CHECK(regex_parse(&pattern, bad[i], &at) == -EINVAL, "%s", bad[i]);
	memset(many + 1, '(', 600);
	memset(many + 601, ')', 500);
	strcpy(many + 1101, "/");
	CHECK(regex_parse(&pattern, many, &at) == -E2BIG, "depth");
	CHECK(regex_parse(&pattern, "/(((a{9}){9}){9}){9}/", &at) == -E2BIG, "states");
	strcpy(many, "/");
	for (char c = 'a'; c < 'a' + 16; c++)
		sprintf(many + strlen(many), "[%c0]", c);
	CHECK(!regex_parse(&pattern, strcat(many, "/"), &at), "16 classes");
	CHECK(regex_parse(&pattern, strcat(many, "[z0]/"), &at) == -E2BIG, "17 classes");
}

/* The copies of a repeated set share one entry. */
static void repeated(void)
{
	static const char digits[] = "01234567890123456789012345678901"
				     "23456789012345678901234567890123";

	CHECK(matches("/^[0-9]{17}$/", digits + 47), "17");
	CHECK(!matches("/^[0-9]{17}$/", digits + 46) && !matches("/^[0-9]{17}$/", digits + 48),
	      "not 17");
	CHECK(matches("/^[0-9]{64}$/", digits) && !matches("/[0-9]{64}/", digits + 1), "64");
	CHECK(matches("/^([0-9a-f]{2}[^0-9]?){4,6}$/", "12ab-34cd"), "of a group");
}

static bool library_matches(const char *source, const char *text)
{
	regex_t regex;
	bool found;

	CHECK(!regcomp(&regex, source, REG_EXTENDED | REG_ICASE | REG_NOSUB), "%s", source);
	found = !regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return found;
}

static void named_classes(void)
{
	static const char *const names[] = {
		"alpha", "digit", "alnum", "upper", "lower", "space", "blank", "punct", "print",
		"graph", "cntrl", "xdigit",
	};
	static const char *const forms[] = { "/^[[:%s:]]$/", "/^[^[:%s:]]$/", "/^[_[:%s:]1-3]$/" };
	char source[64], bare[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) * 3; i++) {
		snprintf(source, sizeof(source), forms[i % 3], names[i / 3]);
		snprintf(bare, sizeof(bare), "%.*s", (int)strlen(source) - 2, source + 1);
		for (int c = 1; c < 128; c++) {
			char text[] = { (char)c, '\0' };

			CHECK(matches(source, text) == library_matches(bare, text), "%s: %d",
			      source, c);
		}
	}
	CHECK(regex_parse(&pattern, "/[[:cntrl:]]/", &(size_t){ 0 }) == 0 &&
	      regex_match(&pattern, "", 1), "NUL is a control character");
}

/* Patterns for which a backtracking matcher would take exponential time. */
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
		"(a|bc)*", "a{2}", "b{1,2}", "c{0,}", "(^a|b$)", "[[:punct:]]", "[^[:alpha:]]",
		"[[:graph:]]{2}", "[^[:blank:]]*", "[[:print:]]", "[a[:cntrl:]]",
	};
	unsigned int used = 0, found = 0;

	for (int i = 0; i < ROUNDS && !check_failures; i++) {
		char source[256] = "/", text[12];
		size_t n = 1 + random_below(6), len = random_below(10);
		regex_t regex;
		bool ours, theirs;

		/* Anchors only in positions that POSIX defines. */
		strcat(source, random_below(5) ? "" : "^");
		while (n--)
			strcat(source, parts[random_below(sizeof(parts) / sizeof(parts[0]))]);
		strcat(source, random_below(5) ? "" : "$");
		for (size_t k = 0; k < len; k++)
			text[k] = "abcABCabcABC;\t"[random_below(14)];
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
	RUN(repeated);
	RUN(named_classes);
	RUN(hostile);
	RUN(as_the_library);
	return check_done();
}
