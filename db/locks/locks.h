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
#include "db/event.h"
#include "db/loss.h"
#include "db/sink.h"

/* The sum of LWLock waits of one tranche and mode. */
struct lwlock_count {
	const struct engine *engine;
	uint32_t mode;
	char name[LOCK_NAME];		/* of the tranche, foreign bytes */
	struct lwlock_sum sum;
};

/* All of it is borrowed, until locks_close(). */
struct locks_config {
	struct server_filter servers;
	uint64_t threshold_ns;		/* shorter waits are not reported */
	uint32_t text_bytes;		/* maximum length of a backend's statement */
	bool sum_lwlocks;		/* without a filter, sum LWLock waits, report none */
	bool identify;			/* resolve servers, containers and sessions */
	/*
	 * What becomes of waits: ->wait is called for each that has ended, and by locks_running().
	 */
	struct sink_config sink;
	uint32_t denied;		/* features not to use, see feature_deny() */

	/* Callbacks; their strings are borrowed for the call. */
	void *arg;
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

/* Call the sink for each wait that has not ended, after resolving its holders again. */
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
