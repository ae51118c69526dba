/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/locks/: waits for locks while they last, their holders, and when these are read again. How an
 * engine's locks are read is in its directory, by the operations of ops.h.
 * It knows no engine by name.
 */

/*
 * Lock tracer: discover servers, attach probes to their lock waits and resolve the holders of the
 * awaited lock during the wait.
 */
#ifndef DB_LOCKS_LOCKS_H
#define DB_LOCKS_LOCKS_H

#include "db/discover/discover.h"
#include "db/filter.h"
#include "db/locks/waits.h"
#include "db/statement.h"

/* A wait for a lock. Pointers are borrowed for the call; strings are foreign bytes. */
struct lock_wait {
	const struct target *target;
	const struct event_lock *event;
	uint64_t start_ns;		/* CLOCK_MONOTONIC */
	uint64_t wall_ns;		/* start, CLOCK_REALTIME */
	uint64_t duration_ns;		/* until now, if ->running */
	bool running;			/* has not ended */
	bool joined;			/* began before tracing: lasted longer than measured */
	const char *kind;		/* "transactionid", "row"; "": unknown */
	const struct lock_info *info;	/* NULL: it could not be resolved */
	/* With LOCK_DEADLOCK: PIDs of the cycle, each waiting for the next, this one first. */
	uint32_t cycle[LOCK_WAITS_CYCLE];
	unsigned int ncycle;
};

/* The sum of LWLock waits of one tranche and mode. */
struct lwlock_count {
	const struct target *target;
	uint32_t mode;
	char name[LOCK_NAME];		/* of the tranche, foreign bytes */
	struct lwlock_sum sum;
};

/* All of it is borrowed, until locks_close(). */
struct locks_config {
	struct server_filter servers;
	uint64_t threshold_ns;		/* shorter waits are not reported */
	uint32_t text_bytes;		/* maximum length of a backend's statement */
	bool redact;			/* remove literals and comments from texts */
	bool sum_lwlocks;		/* without a filter, sum LWLock waits, report none */
	struct filter filter;		/* only waits of these sessions and statements */
	uint32_t denied;		/* features not to use, see feature_deny() */

	/* Callbacks; their strings are borrowed for the call. */
	void *arg;
	/* Called for each wait that has ended, and by locks_running(). */
	void (*wait)(void *arg, const struct lock_wait *wait);
	/* As in struct tracer_config. */
	void (*server)(void *arg, const struct server_info *server);
	void (*error)(void *arg, const struct error *error);
	bool (*stopped)(void *arg);
	void (*site)(void *arg, const struct target_site *site);
};

struct locks;

/* As tracer_open(). locks_close() frees *@locks. */
int locks_open(struct locks **locks, const struct locks_config *config, struct error *error);

/* Return the kernel features that were probed so far; borrowed. */
const struct features *locks_features(const struct locks *locks);

/* As tracer_needs(). */
unsigned int locks_needs(const struct locks *locks);

/* Return the number of servers' files that have probes. */
size_t locks_targets(const struct locks *locks);

/* As tracer_drain() and tracer_sleep(). */
int locks_drain(struct locks *locks);
int locks_sleep(struct locks *locks);

/* Return after how many ms locks_drain() is to be called also without a record; 0: never. */
int locks_sleep_ms(const struct locks *locks);

/* Call config->wait for each wait that has not ended, after resolving its holders again. */
void locks_running(struct locks *locks);

/*
 * Return the sums of LWLock waits in *@sums, which the caller frees: their number, or -ENOMEM.
 * Several may have the same name.
 */
ssize_t locks_lwlocks(struct locks *locks, struct lwlock_count **sums);

/* Detach all probes. Records in the buffer remain to be drained. */
void locks_detach(struct locks *locks);

/* Fill @summary with all counters. ->statements counts waits; ->printed is the caller's. */
void locks_summary(const struct locks *locks, struct summary *summary);

/* Detach all probes and free @locks, which may be NULL. */
void locks_close(struct locks *locks);

#endif
