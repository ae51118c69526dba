/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/locks/: waits for locks while they last, their holders, and when these are read again. How an
 * engine's locks are read is in its directory, by the operations of ops.h.
 * It knows no engine by name.
 */

/*
 * Lock waits of the tracer, see db/tracer.h: their records, and the holders of the awaited lock,
 * which are resolved during the wait.
 */
#ifndef DB_LOCKS_LOCKS_H
#define DB_LOCKS_LOCKS_H

#include "db/discover/discover.h"
#include "db/event.h"
#include "db/sink.h"

/* The sum of LWLock waits of one tranche and mode. */
struct lwlock_count {
	const struct engine *engine;
	uint32_t mode;
	char name[LOCK_NAME];		/* of the tranche, foreign bytes */
	struct lwlock_sum sum;
};

#define LWLOCK_SUMS_MAX	16384		/* LWLock tranches and modes */

/* All of it is borrowed, until locks_close(). */
struct locks_config {
	struct runtime *runtime;
	struct discover *discover;	/* the targets of records */
	struct sink *sink;		/* its ->wait is called for each wait that has ended */
	uint64_t threshold_ns;		/* shorter waits are not reported */
	uint32_t text_bytes;		/* maximum length of a backend's statement */
	bool sum_lwlocks;		/* sum LWLock waits, report none */
	bool identify;			/* resolve servers, containers and sessions */
};

struct locks;

/*
 * Create the maps of waits and set the constants of their programs, before runtime_ready(). Return
 * 0, or -errno with the cause in @error. locks_close() frees *@locks in both cases.
 */
int locks_open(struct locks **locks, const struct locks_config *config, struct error *error);

/* Attach to what ends the waits of threads that exit. Return as runtime_tracepoint(). */
int locks_attach(struct locks *locks, struct error *error);

/* Add the wait of a process that has been waiting since before the probes were attached. */
void locks_process(struct locks *locks, const struct target *target,
		   const struct process *process);

/* Allow the full time for resolving holders again: before records, and before locks_drain(). */
void locks_set_deadline(struct locks *locks);

/*
 * Handle a record EVENT_LOCK_WAIT, EVENT_LOCK_END or EVENT_LOCK_ERROR of @size bytes, which is
 * checked, as is what it refers to.
 */
void locks_record(struct locks *locks, const struct event_lock *event, size_t size);

/* Return the maximum size of these records of @locks, in bytes. */
size_t locks_record_max(const struct locks *locks);

/* After the records: resolve what could not be before, or may have changed. */
void locks_drain(struct locks *locks);

/* Return whether locks_drain() is to be called again soon. */
bool locks_again(const struct locks *locks);

/* Return after how many ms locks_drain() is to be called also without a record; 0: never. */
int locks_sleep_ms(const struct locks *locks);

/* Return how many waits, as the programs count them, were only further slices of one. */
uint64_t locks_slices(const struct locks *locks);

/*
 * Call the sink for each wait that has not ended, after resolving its holders again. @last: no more
 * records follow.
 */
void locks_running(struct locks *locks, bool last);

/*
 * Return the sums of LWLock waits in *@sums, which the caller frees: their number, or -ENOMEM.
 * Several may have the same name.
 */
ssize_t locks_lwlocks(struct locks *locks, struct lwlock_count **sums);

/* @locks may be NULL. */
void locks_close(struct locks *locks);

#endif
