// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* db/postgres/catalog.c: rows of pg_class in the layout of each release. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "db/postgres/catalog.h"
#include "tests/unit/check.h"

#define DELETED	0x0400
#define NO_XMAX	0x0800
#define ABORTED	0x0200
#define FROZEN	0x0300
#define LOCKED	0x0080
#define HAS_OID	0x0008

static unsigned char page[POSTGRES_PAGE];
static uint16_t lower, upper;

static void put(uint16_t at, const void *data, size_t size)
{
	memcpy(page + at, data, size);
}

static void page_begin(void)
{
	memset(page, 0, sizeof(page));
	lower = 24;
	upper = POSTGRES_PAGE;
}

/* Append the row of table @name. Before PostgreSQL 12 its OID precedes the columns. */
static void page_row(uint32_t oid, const char *name, uint16_t info)
{
	uint16_t old = info & HAS_OID ? 4 : 0, data = 24 + old, size = data + 4 - old + 64;
	uint32_t pointer;
	char row[64] = "";

	upper -= (size + 7) & ~7;
	pointer = upper | 1u << 15 | (uint32_t)size << 17;
	put(lower, &pointer, 4);
	lower += 4;
	put(12, &lower, 2);
	put(upper + 20, &info, 2);
	page[upper + 22] = (unsigned char)data;
	put(upper + data - old, &oid, 4);
	memcpy(row, name, strnlen(name, sizeof(row)));
	put(upper + data + 4 - old, row, sizeof(row));
}

static int look(uint32_t oid, char name[LOCK_RELATION])
{
	*name = '\0';
	return postgres_catalog_page(page, oid, name);
}

static void names(void)
{
	char name[LOCK_RELATION];

	page_begin();
	page_row(16384, "orders", NO_XMAX);
	page_row(16385, "old", HAS_OID | FROZEN | NO_XMAX);
	page_row(16386, "a_name_of_sixty_three_bytes_is_the_longest_that_there_is_and_it_fi",
		 FROZEN);
	CHECK(!look(16384, name) && !strcmp(name, "orders"), "%s", name);
	CHECK(!look(16385, name) && !strcmp(name, "old"), "%s", name);
	CHECK(!look(16387, name) && !*name, "%s", name);
	/* A name without a NUL in its 64 bytes is invalid. */
	CHECK(!look(16386, name) && !*name, "%s", name);
}

static void versions(void)
{
	char name[LOCK_RELATION];

	page_begin();
	page_row(1, "gone", DELETED);
	page_row(1, "aborted", ABORTED);
	page_row(1, "here", LOCKED | DELETED);
	page_row(2, "before", 0);
	page_row(2, "after", NO_XMAX);
	page_row(3, "same", 0);
	page_row(3, "same", NO_XMAX);
	CHECK(!look(1, name) && !strcmp(name, "here"), "%s", name);
	CHECK(look(2, name) == -EEXIST, "%s", name);
	CHECK(!look(3, name) && !strcmp(name, "same"), "%s", name);
}

static void broken(void)
{
	char name[LOCK_RELATION];
	uint32_t pointers[] = { 0xffffffff, 1u << 15 | 8191, 1u << 15 | 8190 | 40u << 17,
				1u << 15 | 8100 | 92u << 17 };

	page_begin();
	page_row(7, "seven", NO_XMAX);
	lower = 0xffff;
	put(12, &lower, 2);
	CHECK(!look(7, name) && !strcmp(name, "seven"), "%s", name);
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		put(24, &pointers[i], 4);
		memset(page + 8100, 0xff, 92);
		CHECK(!look(0xffffffff, name) && !*name, "%zu: %s", i, name);
	}
}

int main(void)
{
	RUN(names);
	RUN(versions);
	RUN(broken);
	return check_done();
}
