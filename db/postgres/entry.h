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

/* Members of struct PgBackendStatus; utils/backend_status.h, 14 to 19. */
#define ENTRY_PID	4
#define ENTRY_XACT	24
#define ENTRY_STATEMENT	32
#define ENTRY_STATE_AT	40
#define ENTRY_STATE	232
#define ENTRY_NAME	240
#define ENTRY_TEXT	248
#define ENTRY_QUERY_ID	424
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

/* Convert a timestamp, in us since 2000, to CLOCK_REALTIME in ns; 0 if it is none. */
uint64_t postgres_entry_time(uint64_t us);

#endif
