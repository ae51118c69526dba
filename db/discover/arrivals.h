/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that were executed and are still to be checked. Reading their files may take long, so
 * it is done between two drains of the event buffer, and interrupted for further ones.
 */
#ifndef DB_DISCOVER_ARRIVALS_H
#define DB_DISCOVER_ARRIVALS_H

#include "db/discover/discover.h"

#define ARRIVALS_MAX	256

/* Must not be moved once it is open. */
struct arrivals {
	struct discover *discover;	/* borrowed */
	void (*drain)(void *arg);
	void *arg;
	struct event_exec execs[ARRIVALS_MAX];
	size_t first, count;
	bool missed;			/* there was no room: check all processes, as if .. */
	bool all;			/* .. each had just been started */
	uint64_t drained_ns;		/* CLOCK_MONOTONIC of the last drain .. */
	uint64_t scanned_ns;		/* .. and of the last scan of all processes .. */
	uint64_t took_ns;		/* .. which took this long */
};

/*
 * Start: from now on, while @discover reads a file, attaches to it or checks processes, @drain is
 * called to handle the records in the buffer, which may call arrivals_put(); and reading ends at
 * runtime_stopped(). Owns nothing.
 */
void arrivals_open(struct arrivals *arrivals, struct discover *discover, void (*drain)(void *arg),
		   void *arg);

/* Add a program that was executed. */
void arrivals_put(struct arrivals *arrivals, const struct event_exec *exec);

/*
 * Check programs that were added, for some milliseconds or until one file has been read, and now
 * and then all processes. Call it after a drain. Return whether any are left.
 */
bool arrivals_check(struct arrivals *arrivals);

#endif
