// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of db/postgres/names and db/mysql/names: modes and objects of locks. */
#include <string.h>

#include "db/mysql/names.h"
#include "db/postgres/names.h"
#include "tests/unit/check.h"

static char text[192];

static const char *object(const char *kind, const struct lock_info *info, bool each)
{
	struct event_lock event = { .field = { 5, 16384, 7, 2 }, .block = 3, .offset = 4 };

	postgres_lock_object(kind, &event, info, each, text, sizeof(text));
	return text;
}

static void objects(void)
{
	static const struct {
		const char *kind, *each, *shared;
	} cases[] = {
		{ "relation", "16384", "16384" }, { "extend", "16384", "16384" },
		{ "page", "7 of 16384", "of 16384" }, { "tuple", "(7,2) of 16384", "of 16384" },
		{ "transactionid", "5", "" }, { "virtualxid", "5/16384", "" },
		{ "object", "7 of class 16384", "7 of class 16384" },
		{ "advisory", "16384,7", "16384,7" }, { "userlock", "5", "" }, { "", "5", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK(!strcmp(object(cases[i].kind, NULL, true), cases[i].each), "%s: %s",
		      cases[i].kind, text);
		CHECK(!strcmp(object(cases[i].kind, NULL, false), cases[i].shared), "%s: %s",
		      cases[i].kind, text);
	}
}

/* With the relation's name; and a wait for the transaction that changed a row. */
static void relations(void)
{
	struct lock_info info = { .name = "item" };
	struct event_lock event = { .field = { 5, 16384 } };

	CHECK(!strcmp(object("relation", &info, true), "item (16384)"), "%s", text);
	CHECK(postgres_lock_relation("relation", &event, &info) == 16384);
	CHECK(postgres_lock_relation("transactionid", &event, &info) == 0);
	info.relation = 99;
	CHECK(postgres_lock_relation("transactionid", &event, &info) == 99);
	CHECK(!strcmp(object("transactionid", &info, true), "5, row (3,4) of item (99)"), "%s",
	      text);
	CHECK(!strcmp(object("transactionid", &info, false), "rows of item (99)"), "%s", text);
	CHECK(!strcmp(object("tuple", &info, true), "(7,2) of item (16384)"), "%s", text);
}

/* One bigint instead of two integers; and what is too long is cut. */
static void sizes(void)
{
	struct event_lock event = { .field = { 5, 1, 2, 1 } };
	char small[4];

	postgres_lock_object("advisory", &event, NULL, true, text, sizeof(text));
	CHECK(!strcmp(text, "4294967298"), "%s", text);
	postgres_lock_object("advisory", &event, NULL, true, small, sizeof(small));
	CHECK(!strcmp(small, "429"), "%s", small);
}

static void modes(void)
{
	struct event_lock event = { .mode = 8 };

	CHECK(!strcmp(postgres_lock_mode(&event), "AccessExclusiveLock"));
	event.mode = 9;
	CHECK(!*postgres_lock_mode(&event));
	event = (struct event_lock){ .flags = LOCK_LWLOCK, .mode = 1, .name = "WALWrite" };
	CHECK(!strcmp(postgres_lock_mode(&event), "shared"));
	event.mode = LWLOCK_MODES;
	CHECK(!*postgres_lock_mode(&event));
	postgres_lock_object("lwlock", &event, NULL, true, text, sizeof(text));
	CHECK(!strcmp(text, "WALWrite"), "%s", text);
}

static void mysql(void)
{
	struct event_lock event = { .flags = LOCK_SESSION, .kind = LOCK_WAITS_FIRST };
	struct lock_info info = { .object = "shop.item" };

	CHECK(!strcmp(mysql_lock_kind(&event), "row"));
	event.kind = LOCK_WAITS_LAST + 1;
	CHECK(!*mysql_lock_kind(&event));
	mysql_lock_object("row", &event, &info, true, text, sizeof(text));
	CHECK(!strcmp(text, "shop.item"));
	mysql_lock_object("row", &event, NULL, true, text, sizeof(text));
	CHECK(!*text);
}

/* InnoDB's names of tables. */
static void mysql_tables(void)
{
	static const struct {
		const char *name, *object;
	} names[] = {
		{ "shop/item", "shop.item" }, { "my@002ddb/a@0020b", "my-db.a b" },
		{ "shop/item#P#p0", "shop.item#P#p0" }, { "shop/@00e4@0g", "shop.@00e4@0g" },
		{ "shop/a@00", "shop.a@00" }, { "shop/a@002", "shop.a@002" },
		{ "shop/a@002D", "shop.a@002D" }, { "a/0123456789012345", "a.0123456789012" },
		{ "a/0123456@002d890123", "a.0123456-89012" }, { "", "" },
	};
	char object[16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		mysql_table_name(names[i].name, object, sizeof(object));
		CHECK(!strcmp(object, names[i].object), "%s: %s", names[i].name, object);
	}
}

int main(void)
{
	RUN(mysql_tables);
	RUN(objects);
	RUN(relations);
	RUN(sizes);
	RUN(modes);
	RUN(mysql);
	return check_done();
}
