/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When the holders of current waits are read again: often enough to report how long each of them
 * held the lock, at a bounded share of a CPU whatever the number of waits, and of that a share for
 * each user: the waits of one user do not delay those of another.
 */
#ifndef DB_LOCKS_POLL_H
#define DB_LOCKS_POLL_H

#include "db/locks/waits.h"

#define LOCK_POLL_MS	10		/* shortest time between two reads of a wait */
#define LOCK_POLL_SHARE	64		/* .. and longest, as a fraction of its duration so far, */
#define LOCK_POLL_MAX	1000000000u	/* .. and at most, unless under load */
#define LOCK_POLL_PASS	5000000u	/* ns: time for one user in a pass over the waits */
#define LOCK_POLL_WORDS	8

/* All zero at first. Times are CLOCK_MONOTONIC. */
struct lock_poll {
	struct lock_poll_owner {
		uint32_t interval_ms;	/* LOCK_POLL_MS, or longer under load */
		uint32_t spent_us;	/* in this pass */
		bool cut;		/* not all of its waits that are due were read */
	} owner[OWNERS];
	uint64_t begun_ns, read_ns;	/* when the pass began; its last read */
	uint64_t next_ns;		/* no pass before */
	uint64_t wake_ns;		/* when the next wait is due; 0: there is none */
	uint64_t changed[LOCK_POLL_WORDS];	/* bits by hash of a lock: a wait for it ended */
};

/* Note that a wait ended: the lock may have a new holder. */
void lock_poll_changed(struct lock_poll *poll, const struct event_lock *ended);

/* Begin a pass at @now_ns. Return false if that is too early. */
bool lock_poll_begin(struct lock_poll *poll, uint64_t now_ns);

/* Return whether @waiter is to be read in this pass. */
bool lock_poll_due(struct lock_poll *poll, struct lock_waiter *waiter);

/* Note that @waiter, whose wait has lasted for @age_ns, was read by @now_ns. */
void lock_poll_read(struct lock_poll *poll, struct lock_waiter *waiter, uint64_t now_ns,
		    uint64_t age_ns);

void lock_poll_end(struct lock_poll *poll, uint64_t now_ns);

#endif
