/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows of lock waits that are found by their first bytes, of which each user has a share. */
#ifndef CLI_FORMAT_LOCKS_ROWS_H
#define CLI_FORMAT_LOCKS_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

#define LOCKS_ROWS	65536		/* at most */
#define LOCKS_NO_OWNER	UINT32_MAX	/* the row is of no user: it has a place without a share */

/* All zero but for the sizes: empty. */
struct locks_rows {
	size_t size, key_size;		/* in bytes; the key is at a row's start, without padding */
	void *row;			/* owned */
	size_t n;
	uint32_t *slot;			/* owned: a hash table, the index of a row + 1 or 0 */
	size_t nslots;			/* a power of two */
	uint64_t secret;		/* others cannot choose keys that share a slot */
	uint32_t nrows_of[OWNERS];
	uint64_t shared;		/* rows that count for ->nrows_of */
};

/*
 * Return the row that begins with @key, or a new one with it and zeros; NULL if there is no memory,
 * or if @owner has its share, see OWNER_SHARE(). It is valid until the next call.
 */
void *locks_rows_get(struct locks_rows *rows, const void *key, uint32_t owner);

/* Free what @rows owns; then it is empty. */
void locks_rows_free(struct locks_rows *rows);

#endif
