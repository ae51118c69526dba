/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Input: a page of pg_class, filled up with zeros. */
#include <errno.h>

#include "db/postgres/catalog.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	unsigned char *page = malloc(POSTGRES_PAGE);
	char name[LOCK_RELATION] = "";
	int err;

	input_bytes(&in, page, POSTGRES_PAGE);
	err = postgres_catalog_page(page, 1259, name);
	REQUIRE(!err || (err == -EEXIST && *name), "%d", err);
	REQUIRE(memchr(name, '\0', sizeof(name)));
	free(page);
	return 0;
}
