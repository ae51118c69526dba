// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of sql/traceparent: the comments that name a parent span. */
#include <string.h>

#include "sql/traceparent.h"
#include "tests/unit/check.h"

#define TRACE	"0af7651916cd43dd8448eb211c80319c"
#define SPAN	"b7ad6b7169203331"
#define VALID	"00-" TRACE "-" SPAN "-01"
#define OTHER	"00-11111111111111111111111111111111-2222222222222222-00"

static struct traceparent found;

static bool find(const char *text)
{
	memset(&found, 'x', sizeof(found));
	return traceparent_find(FINGERPRINT_POSTGRES, text, strlen(text), false, &found);
}

static bool is_valid_one(void)
{
	return !strcmp(found.trace, TRACE) && !strcmp(found.span, SPAN);
}

static void comments(void)
{
	static const char *const texts[] = {
		"select 1 /*traceparent='" VALID "'*/",
		"/*traceparent='" VALID "'*/ select 1",
		"select /* traceparent='" VALID "' */ 1",
		"select 1 /*action='%2Fparam*d',db_driver='a',traceparent='" VALID
		"',tracestate='congo%3Dt61'*/;",
		"select 1 /*x='it\\'s, y=\\'',traceparent='" VALID "'*/",
		"select 1 /*traceparent='00%2D" TRACE "%2d" SPAN "-01'*/",
		"select '/*traceparent=''' /*traceparent='" VALID "'*/",
		"select 1 /*traceparent='" OTHER "'*/ + 1 /*traceparent='" VALID "'*/",
		"select 1 /*traceparent='" VALID "'*/ -- traceparent='" OTHER "'",
		"select 1 /*traceparent='" VALID "'*/ + 1 /*traceparent='" VALID "x'*/",
		"select 1 /*said before: traceparent='" VALID "'",
		/* A future version. */
		"select 1 /*traceparent='cc-" TRACE "-" SPAN "-01-more'*/",
		"select 1 /*traceparent='01-" TRACE "-" SPAN "-01'*/",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK(find(texts[i]) && is_valid_one() && found.flags == 1, "%s", texts[i]);
	CHECK(find("/*traceparent='00-" TRACE "-" SPAN "-a5'*/") && found.flags == 0xa5);
}

static void none(void)
{
	static const char *const texts[] = {
		"", "traceparent='" VALID "'", "select 1 -- traceparent='" VALID "'",
		"select '/*traceparent=\"" VALID "\"*/'",
		"select '/*traceparent=''" VALID "''*/'",
		"select $$/*traceparent='" VALID "'*/$$",
		"/*traceparent=\"" VALID "\"*/", "/*traceparent=" VALID "*/", "/*traceparent='*/",
		"/*xtraceparent='" VALID "'*/", "/*Traceparent='" VALID "'*/",
		"/*a='traceparent=" VALID "'*/", "/*a='\\',traceparent=\\'" VALID "'*/",
		"/*traceparent='" VALID, "/*traceparent='", "/*traceparent=", "/*traceparent",
		"/*traceparent=''*/", "/*traceparent='00-" TRACE "-" SPAN "'*/",
		"/*traceparent='00-00000000000000000000000000000000-" SPAN "-01'*/",
		"/*traceparent='00-" TRACE "-0000000000000000-01'*/",
		"/*traceparent='ff-" TRACE "-" SPAN "-01'*/",
		"/*traceparent='00-" TRACE "-" SPAN "-01-more'*/",
		"/*traceparent='01-" TRACE "-" SPAN "-01.more'*/",
		"/*traceparent='0x-" TRACE "-" SPAN "-01'*/",
		"/*traceparent='00-" TRACE "-" SPAN "-0g'*/",
		"/*traceparent='00_" TRACE "_" SPAN "_01'*/",
		"/*traceparent='00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01'*/",
		"/*traceparent='00%2" TRACE "-" SPAN "-01'*/",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK(!find(texts[i]), "%s", texts[i]);
}

/* The ends of strings, and comments that are code, depend on the server. */
static void dialects(void)
{
	static const char escaped[] = "select 'a\\'/*', 1 /*traceparent='" VALID "'*/";
	static const char code[] = "select 1 /*!traceparent='" VALID "'*/";

	CHECK(traceparent_find(FINGERPRINT_MYSQL, escaped, sizeof(escaped) - 1, false, &found));
	CHECK(!traceparent_find(FINGERPRINT_MYSQL, code, sizeof(code) - 1, false, &found));
	CHECK(find(code));
}

/* A text that is cut, at each byte, has the same parent or none. */
static void cuts(void)
{
	static const char text[] = "select 1 /*a='b',traceparent='" VALID "',c='d'*/";
	const char *end = strstr(text, "',c=") + 1;

	for (size_t len = 0; len < sizeof(text); len++) {
		bool has = traceparent_find(FINGERPRINT_POSTGRES, text, len, true, &found);

		CHECK(has == (text + len >= end) && (!has || is_valid_one()), "%zu", len);
	}
}

int main(void)
{
	RUN(comments);
	RUN(none);
	RUN(dialects);
	RUN(cuts);
	return check_done();
}
