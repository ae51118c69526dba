/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The current waits for locks, at most one per thread, and the cycles among them. */
#ifndef DB_LOCKS_WAITS_H
#define DB_LOCKS_WAITS_H

#include "db/event.h"
#include "db/locks/info.h"

struct lock_waiter {
	struct lock_waiter *next, **place;	/* of the list; ->place: what refers to it */
	struct lock_waiter *same;		/* of the bucket */
	struct event_lock event;
	struct lock_info info;		/* valid if ->resolved */
	bool resolved;
	char *text;		/* of ->event, owned; NULL: not available */
	uint64_t slice_ns;	/* begin of its last slice, else ->event.start_ns */
	uint64_t ended_ns;	/* 0: it waits; else when the last slice ended, see locks_held() */
	uint64_t until_ns;	/* .. and when it counts as ended, CLOCK_MONOTONIC */
	struct who who;			/* of the session; all that can be known if ->named */
	uint64_t session;	/* MySQL: address of its object; 0: unknown */
	bool named;
	const struct server *server;	/* borrowed; NULL: not known yet */
	unsigned int tries;		/* left, to resolve the holders */
	uint64_t due_ns;		/* when they are read again, CLOCK_MONOTONIC; 0: not set */
};

#define LOCK_WAITS_BUCKETS	4096

/* Empty if all zero. */
struct lock_waits {
	struct lock_waiter *first;	/* the newest; the list is owned */
	struct lock_waiter *bucket[LOCK_WAITS_BUCKETS];	/* by thread */
};

/* Add the wait of @event, replacing the thread's previous one. Return NULL if out of memory. */
struct lock_waiter *lock_waits_add(struct lock_waits *waits, const struct event_lock *event);

/* Return the wait of thread @tid, owned by @waits, or NULL. */
struct lock_waiter *lock_waits_of(const struct lock_waits *waits, uint32_t tid);

/* Free @waiter and remove it from the list. */
void lock_waits_drop(struct lock_waits *waits, struct lock_waiter *waiter);

/*
 * Find a cycle of waiters and holders through @waiter. Write its PIDs to @cycle, @waiter's first.
 * Return their number; 0: no cycle was found.
 */
unsigned int lock_waits_cycle(const struct lock_waits *waits, const struct lock_waiter *waiter,
			      uint32_t cycle[LOCK_CYCLE]);

/* Drop all waits. */
void lock_waits_clear(struct lock_waits *waits);

#endif
