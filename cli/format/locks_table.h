/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lock waits as tables for people: one by one, or summed up by object and mode. */
#ifndef CLI_FORMAT_LOCKS_TABLE_H
#define CLI_FORMAT_LOCKS_TABLE_H

#include "cli/format/locks_wait.h"
#include "cli/output.h"

/* The waits for one object in one mode. */
struct locks_sum {
	const char *engine;
	char kind[24], object[LOCKS_OBJECT];	/* foreign bytes */
	const char *mode;
	uint64_t waits, failed, deadlocks, total_ns, max_ns;
};

struct locks_table {
	struct output *out;
	bool wall;			/* times are local times of day */
	uint64_t start_ns;		/* time zero otherwise, CLOCK_MONOTONIC */
	struct locks_sum *sums;		/* owned */
	size_t nsums;
	uint64_t unsummed;		/* waits for which there was no room */
};

/* Append the line of headers for waits. */
void locks_table_header(struct locks_table *table);

/* Append a wait: a line, and one for each backend that held the lock or was queued before. */
void locks_table_wait(struct locks_table *table, const struct lock_wait *wait);

/* Add a wait to the sums. */
void locks_table_add(struct locks_table *table, const struct lock_wait *wait);

/* Add the LWLock waits in @counts to the sums. Rows of @counts may have the same name and mode. */
void locks_table_add_lwlocks(struct locks_table *table, const struct lwlock_count *counts,
			     size_t n);

/* Sort the sums by total time, the largest first. */
void locks_table_sort(struct locks_table *table);

/* Append the table of the sums. */
void locks_table_print(const struct locks_table *table);

void locks_table_free(struct locks_table *table);

#endif
