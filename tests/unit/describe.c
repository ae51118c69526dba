// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The reasons for which an argument is absent: db/discover/describe.c. */
/* The module under test, beside the one of the library. */
#define describe_sites		tested_sites
#define describe_version	tested_version
#define describe_version_vaddr	tested_version_vaddr
#define describe_brand		tested_brand
#define describe_title		tested_title
#define describe_product	tested_product
#define describe_server		tested_server
#include "db/discover/describe.c"

#include "tests/unit/check.h"

/* What is said of a file that lacks the @n symbols at @symbols. */
static const char *lacks(const char *const *symbols, size_t n)
{
	static struct target_arg arg;

	memset(&arg, 0, sizeof(arg));
	for (size_t i = 0; i < n; i++)
		arg_lacks(&arg, symbols[i], strlen(symbols[i]));
	CHECK(memchr(arg.absent, '\0', sizeof(arg.absent)) != NULL);
	return strncmp(arg.absent, "the file does not export ", 25) ? "" : arg.absent + 25;
}

#define LACKS(...)	lacks((const char *const[]){ __VA_ARGS__ }, \
			      sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void alternatives(void)
{
	char longer[1000] = "", expected[300];

	CHECK(!strcmp(LACKS("a"), "a"));
	CHECK(!strcmp(LACKS("a", "b", "a", "b", "c", "b"), "a or b or c"));
	/* Each is a part of the ones before, but none of them. */
	CHECK(!strcmp(LACKS("abc", "bc", "ab", "b", "bc"), "abc or bc or ab or b"));
	CHECK(!strcmp(LACKS("abc or x", "b"), "abc or x or b"));
	/* One of the file's is cut, so that the known ones are named. */
	memset(longer, 'x', sizeof(longer) - 1);
	snprintf(expected, sizeof(expected), "%.80s or thd_current_db", longer);
	CHECK(!strcmp(LACKS(longer, "thd_current_db", longer), expected));
	snprintf(expected, sizeof(expected), "thd_current_db or %.80s", longer);
	CHECK(!strcmp(LACKS("thd_current_db", longer, longer), expected));
	/* Whole names, as many as there is room for. */
	snprintf(expected, sizeof(expected), "%.80s or %.79s or z", longer, longer);
	CHECK(!strcmp(LACKS(longer, longer + 920, longer + 919, "z"), expected));
}

int main(void)
{
	RUN(alternatives);
	return check_done();
}
