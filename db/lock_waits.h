/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The waits for locks that have begun and not ended, one per thread, and cycles among them. */
#ifndef DB_LOCK_WAITS_H
#define DB_LOCK_WAITS_H

#include "db/lock_info.h"

#define LOCK_WAITS_CYCLE	16	/* backends of a deadlock that are reported */

struct lock_waiter {
	struct lock_waiter *next;
	struct event_lock event;
	struct lock_info info;		/* valid if ->resolved */
	bool resolved;
	unsigned int tries;		/* left to resolve its holders */
};

/* All zero is empty. */
struct lock_waits {
	struct lock_waiter *first;	/* the newest; owned */
};

/* Add the wait of @event, instead of one of the same thread. Return it, or NULL without memory. */
struct lock_waiter *lock_waits_add(struct lock_waits *waits, const struct event_lock *event);

/* Return the wait of thread @tid, or NULL. */
struct lock_waiter *lock_waits_of(const struct lock_waits *waits, uint32_t tid);

/* Free @waiter and remove it from the list. */
void lock_waits_drop(struct lock_waits *waits, struct lock_waiter *waiter);

/*
 * Follow who waits for whom from @waiter on, back to it. Write the PIDs of the cycle to @cycle,
 * @waiter's first. Return their number; 0: none was found.
 */
unsigned int lock_waits_cycle(const struct lock_waits *waits, const struct lock_waiter *waiter,
			      uint32_t cycle[LOCK_WAITS_CYCLE]);

/* Drop all. */
void lock_waits_clear(struct lock_waits *waits);

#endif
