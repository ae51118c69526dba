// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/locks_rows.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "loader/owners.h"

#define SLOTS_MIN	64

/* FNV-1a */
static uint64_t rows_hash(const struct locks_rows *rows, const unsigned char *key)
{
	uint64_t hash = rows->secret;

	for (size_t i = 0; i < rows->key_size; i++)
		hash = (hash ^ key[i]) * 0x100000001b3;
	return hash ^ hash >> 32;
}

/* Return the slot of @key, which is 0 if there is no such row. */
static uint32_t *rows_slot(const struct locks_rows *rows, const void *key)
{
	size_t at = rows_hash(rows, key) & (rows->nslots - 1);

	while (rows->slot[at] &&
	       memcmp((char *)rows->row + (rows->slot[at] - 1) * rows->size, key, rows->key_size))
		at = (at + 1) & (rows->nslots - 1);
	return &rows->slot[at];
}

/* Make room for another row. There are always twice as many slots. Return 0 or -1. */
static int rows_grow(struct locks_rows *rows)
{
	size_t nslots = rows->nslots ? rows->nslots * 2 : SLOTS_MIN;
	uint32_t *slot;
	void *row;

	if (rows->n < rows->nslots / 2)
		return 0;
	if (!rows->nslots)
		getrandom(&rows->secret, sizeof(rows->secret), GRND_NONBLOCK);
	row = realloc(rows->row, nslots / 2 * rows->size);
	if (!row)
		return -1;
	rows->row = row;
	slot = calloc(nslots, sizeof(*slot));
	if (!slot)
		return -1;
	free(rows->slot);
	rows->slot = slot;
	rows->nslots = nslots;
	for (size_t i = 0; i < rows->n; i++)
		*rows_slot(rows, (char *)row + i * rows->size) = (uint32_t)i + 1;
	return 0;
}

/* Return whether @owner may have another row, and count it. */
static bool rows_share(struct locks_rows *rows, uint32_t owner)
{
	uint32_t *used = &rows->nrows_of[owner & (OWNERS - 1)];

	if (owner == LOCKS_NO_OWNER)
		return true;
	if (rows->shared == LOCKS_ROWS || *used == OWNER_SHARE(LOCKS_ROWS))
		return false;
	rows->shared++;
	++*used;
	return true;
}

void *locks_rows_get(struct locks_rows *rows, const void *key, uint32_t owner)
{
	uint32_t *slot;
	char *row;

	if (rows_grow(rows))
		return NULL;
	slot = rows_slot(rows, key);
	row = (char *)rows->row + (*slot ? *slot - 1 : rows->n) * rows->size;
	if (*slot)
		return row;
	if (!rows_share(rows, owner))
		return NULL;
	memset(row, 0, rows->size);
	memcpy(row, key, rows->key_size);
	*slot = (uint32_t)++rows->n;
	return row;
}

void locks_rows_free(struct locks_rows *rows)
{
	free(rows->row);
	free(rows->slot);
	*rows = (struct locks_rows){ .size = rows->size, .key_size = rows->key_size };
}
