/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading the entries of pg_stat_activity and other structures of PostgreSQL. */
#ifndef DB_POSTGRES_ENTRY_H
#define DB_POSTGRES_ENTRY_H

#include <string.h>

#include "db/postgres/variables.h"
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

/* Members of struct PgBackendStatus, 10 to 19; utils/backend_status.h, pgstat.h before 14. */
#define ENTRY_PID	4
#define ENTRY_XACT	24
#define ENTRY_STATEMENT	32
#define ENTRY_STATE_AT	40
#define ENTRY_DATABASE	48	/* OIDs; 0: none */
#define ENTRY_USER	52
#define ENTRY_TEXT_12	248	/* from 12 on .. */
#define ENTRY_TEXT_10	232	/* .. and before */
/* These are before the address of the text, which is at @text. */
#define ENTRY_STATE(text)	((text) - 16)
#define ENTRY_NAME(text)	((text) - 8)
#define ENTRY_QUERY_ID	424	/* 14 */
#define ENTRY_NAME_BYTES	64	/* NAMEDATALEN */
#define ENTRY_LEAST	256	/* bytes of an entry that are read .. */
#define ENTRY_MOST	2048	/* .. and that it can have */
#define ENTRY_TEXT_MOST	1048576	/* bytes of a text: track_activity_query_size */

/* enum BackendState, without STATE_STARTING, which is 1 in 18 and later; utils/backend_status.h. */
enum postgres_state {
	POSTGRES_UNDEFINED, POSTGRES_IDLE, POSTGRES_RUNNING, POSTGRES_IN_TRANSACTION,
	POSTGRES_FASTPATH, POSTGRES_ABORTED, POSTGRES_DISABLED, POSTGRES_STATES
};

/*
 * Return the state in an entry of pg_stat_activity whose number is @state. @has_starting: the
 * server has STATE_STARTING.
 */
enum postgres_state postgres_entry_state(uint32_t state, bool has_starting);

/*
 * Return whether the server may have cut a text of @len bytes in an entry of pg_stat_activity.
 * @entry_size: address as linked of the variable with the size of these texts; 0: unknown.
 */
bool postgres_entry_cuts(const struct process_memory *memory, uint64_t entry_size, size_t len);

/*
 * Return the bytes of an element of the array that has one at @address, with those of each text in
 * *@text_bytes; 0: it cannot be proven. @text: where in an element the address of its text is.
 */
int64_t postgres_entry_stride(const struct process_memory *memory, uint64_t address, size_t text,
			      int64_t *text_bytes);

/*
 * Return the address as linked of the variable that points to the entry of the process with
 * @memory, whose PID is @pid as the server sees it: MyBEEntry, which has no symbol before 14. Or 0.
 * The first entry is not found: another variable points to it, too.
 */
uint64_t postgres_entry_find(const struct variables *variables, const struct process_memory *memory,
			     uint32_t pid, size_t text);

/* Convert a timestamp, in us since 2000, to CLOCK_REALTIME in ns; 0 if it is none. */
uint64_t postgres_entry_time(uint64_t us);

#endif
