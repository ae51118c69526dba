/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lock waits as tables for people: one by one, or summed up by object and mode. */
#ifndef CLI_FORMAT_LOCKS_TABLE_H
#define CLI_FORMAT_LOCKS_TABLE_H

#include "cli/format/locks_rows.h"
#include "cli/format/locks_wait.h"
#include "cli/output.h"

/* The waits for one object in one mode. */
struct locks_sum {
	struct locks_sum_key {
		const char *engine, *mode;
		char kind[24], object[LOCKS_OBJECT];	/* foreign bytes, and zeros */
	} of;
	uint64_t waits, failed, deadlocks, total_ns, max_ns;
};

struct locks_table {
	struct output *out;
	bool wall;			/* times are local times of day */
	uint64_t start_ns;		/* time zero otherwise, CLOCK_MONOTONIC */
	struct locks_rows sums;		/* of struct locks_sum; set by locks_table_init() */
};

/* Start an empty table. */
void locks_table_init(struct locks_table *table, struct output *out, bool wall);

/* The sums, sorted once locks_table_sort() was called. */
static inline const struct locks_sum *locks_table_sums(const struct locks_table *table)
{
	return table->sums.row;
}

/* Append the line of headers for waits. */
void locks_table_header(struct locks_table *table);

/* Append a wait: a line, and one for each backend that held the lock or was queued before. */
void locks_table_wait(struct locks_table *table, const struct lock_wait *wait);

/* Add a wait to the sums. Return false if there is no room for it. */
bool locks_table_add(struct locks_table *table, const struct lock_wait *wait);

/* Add the LWLock waits in @counts to the sums. Rows of @counts may have the same name and mode. */
void locks_table_add_lwlocks(struct locks_table *table, const struct lwlock_count *counts,
			     size_t n);

/* Sort the sums by total time, the largest first. Nothing can be added then. */
void locks_table_sort(struct locks_table *table);

/* Append the table of the sums. */
void locks_table_print(const struct locks_table *table);

void locks_table_free(struct locks_table *table);

#endif
