/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the entries of pg_stat_activity and other structures of PostgreSQL. */
#ifndef DB_POSTGRES_ENTRY_H
#define DB_POSTGRES_ENTRY_H

#include <string.h>

#include "host/process_memory.h"

/* Return the number of 4 bytes at @at, which need not be aligned. */
static inline uint32_t load32(const char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* The same of 8 bytes. */
static inline uint64_t load64(const char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/*
 * Return whether the server may have cut a text of @len bytes in an entry of pg_stat_activity.
 * @entry_size: address as linked of the variable with the size of these texts; 0: unknown.
 */
bool postgres_entry_cuts(const struct process_memory *memory, uint64_t entry_size, size_t len);

#endif
