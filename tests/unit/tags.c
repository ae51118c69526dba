// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of sql/tags: the pairs in comments of sqlcommenter. */
#include "sql/tags.h"

#include "tests/unit/check.h"

static struct tags tags;

static bool find(const char *text)
{
	return tags_find(FINGERPRINT_POSTGRES, text, strlen(text), false, &tags);
}

static bool is(const char *key, const char *value, size_t len)
{
	const struct tag *tag = tags_get(&tags, key, strlen(key));

	return tag && tag->len == len && !memcmp(tag->value, value, len);
}

static void pairs(void)
{
	CHECK(find("select 1 /*action='%2Fparam*d',controller='index,'*/ , 2 /* x.y-z_%='' */"));
	CHECK(tags.count == 3 && is("action", "/param*d", 8) && is("controller", "index,", 6));
	CHECK(is("x.y-z_%", "", 0) && !tags_get(&tags, "act", 3));
	CHECK(find("/*a='it\\'s',b='%00%fF%4',c='%',d='%zz\\%41\\\\'*/") && tags.count == 4);
	CHECK(is("a", "it's", 4) && is("b", "\0\xff%4", 4) && is("c", "%", 1));
	CHECK(is("d", "%zz%41\\", 7));
	CHECK(find("/*db%20driver='psycopg2',%61='1',a='2',a%='3'*/") && tags.count == 3);
	CHECK(is("db driver", "psycopg2", 8) && is("a", "1", 1) && is("a%", "3", 1));
	/* Of several with the same key the first one counts. */
	CHECK(find("/*a='1',a='2'*/ select /*a='3',b='4'*/") && tags.count == 2);
	CHECK(is("a", "1", 1));
}

static void none(void)
{
	static const char *const texts[] = {
		"", "select 1", "select a='1' /* */", "select '/*a=''1''*/'",
		"select 1 -- a='1' */",
		"/*a=\"1\"*/", "/*a='1*/", "/*='1'*/", "/*a= '1'*/", "select $$/*a='1'*/$$",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK(!find(texts[i]) && !tags.count, "%s", texts[i]);
}

/* More tags, and longer values, than there is room for. */
static void limits(void)
{
	char text[8192];
	size_t len = 0;

	for (int i = 0; i < TAGS_MAX + 3; i++)
		len += (size_t)sprintf(text + len, "/*k%d='v%d'*/", i, i);
	CHECK(find(text) && tags.count == TAGS_MAX && is("k15", "v15", 3));
	sprintf(text, "/*long='%0*d',whole='%0*d',more='1'*/", TAGS_BYTES + 1, 0, TAGS_BYTES, 1);
	CHECK(find(text) && tags.count == 1 && tags.tag[0].len == TAGS_BYTES);
	CHECK(!tags_get(&tags, "long", 4) && !tags_get(&tags, "more", 4));
}

/* A text that is cut, at each byte: the tags are the first ones of the whole text. */
static void cuts(void)
{
	static const char text[] = "select 1 /*a='1%20',b='it\\'s'*/ -- c";

	for (size_t len = 0; len < sizeof(text); len++) {
		char *copy = malloc(len ? len : 1);

		memcpy(copy, text, len);
		tags_find(FINGERPRINT_POSTGRES, copy, len, true, &tags);
		CHECK(tags.count <= 2, "%zu", len);
		CHECK(tags.count < 1 || is("a", "1 ", 2), "%zu", len);
		CHECK(tags.count < 2 || is("b", "it's", 4), "%zu", len);
		free(copy);
	}
}

int main(void)
{
	RUN(pairs);
	RUN(none);
	RUN(limits);
	RUN(cuts);
	return check_done();
}
