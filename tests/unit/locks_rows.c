/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cli/format/locks_rows: every row is found again, and nobody takes more than a share. */
#include "cli/format/locks_rows.h"

#include "loader/owners.h"
#include "tests/unit/check.h"

struct row {
	uint64_t key;
	uint64_t count;
};

static uint64_t add(struct locks_rows *rows, uint64_t key, uint32_t owner)
{
	struct row *row = locks_rows_get(rows, &key, owner);

	CHECK(!row || row->key == key, "%lu", (long)key);
	return row ? ++row->count : 0;
}

static void shares(void)
{
	struct locks_rows rows = { .size = sizeof(struct row), .key_size = sizeof(uint64_t) };
	const uint64_t share = OWNER_SHARE(LOCKS_ROWS);

	for (uint64_t i = 0; i < LOCKS_ROWS; i++)
		CHECK(add(&rows, i * 64, 7) == (i < share), "%lu", (long)i);
	for (uint64_t i = 0; i < LOCKS_ROWS; i++)
		CHECK(add(&rows, i * 64, 8) == (i < share ? 2 : i < LOCKS_ROWS), "%lu", (long)i);
	CHECK(rows.n == LOCKS_ROWS && !add(&rows, 1, 9) && add(&rows, 0, 9) == 3);
	/* Of the server's own there are few: they have a place. */
	CHECK(add(&rows, 1, LOCKS_NO_OWNER) == 1 && add(&rows, 1, 9) == 2);
	locks_rows_free(&rows);
	CHECK(!rows.n && add(&rows, 5, 7) == 1);
	locks_rows_free(&rows);
}

int main(void)
{
	RUN(shares);
	return check_done();
}
