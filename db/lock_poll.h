/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When the holders of current waits are read again: often enough to report how long each of them
 * held the lock, at a bounded share of a CPU whatever the number of waits.
 */
#ifndef DB_LOCK_POLL_H
#define DB_LOCK_POLL_H

#include "db/lock_waits.h"

#define LOCK_POLL_NS	10000000u	/* shortest time between two reads of a wait */
#define LOCK_POLL_SHARE	64		/* .. and longest, as a fraction of its duration so far, */
#define LOCK_POLL_MAX	1000000000u	/* .. and at most, unless under load */
#define LOCK_POLL_PASS	5000000u	/* ns: longest pass over the waits */
#define LOCK_POLL_WORDS	8

/* All zero at first. Times are CLOCK_MONOTONIC. */
struct lock_poll {
	uint64_t interval_ns;		/* LOCK_POLL_NS, or longer under load; 0: not yet set */
	uint64_t next_ns;		/* no pass before */
	uint64_t wake_ns;		/* when the next wait is due; 0: there is none */
	uint64_t changed[LOCK_POLL_WORDS];	/* bits by hash of a lock: a wait for it ended */
};

/* Note that a wait ended: the lock may have a new holder. */
void lock_poll_changed(struct lock_poll *poll, const struct event_lock *ended);

/* Return whether a pass may start at @now_ns. */
bool lock_poll_begin(struct lock_poll *poll, uint64_t now_ns);

/*
 * Return whether @waiter is to be read in the pass that started at @now_ns, and set the time of its
 * next read. @age_ns is the duration of its wait so far.
 */
bool lock_poll_due(struct lock_poll *poll, struct lock_waiter *waiter, uint64_t now_ns,
		   uint64_t age_ns);

/* End the pass that started at @begun_ns. @cut: not all waits that are due were read. */
void lock_poll_end(struct lock_poll *poll, uint64_t begun_ns, uint64_t now_ns, bool cut);

#endif
