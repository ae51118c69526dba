// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/locks/waits.h"

#include <stdlib.h>

#define STEPS_MAX	4096		/* edges from waiter to holder that a search follows */

struct lock_waiter *lock_waits_of(const struct lock_waits *waits, uint32_t tid)
{
	struct lock_waiter *w = waits->bucket[tid % LOCK_WAITS_BUCKETS];

	while (w && w->event.tid != tid)
		w = w->same;
	return w;
}

void lock_waits_drop(struct lock_waits *waits, struct lock_waiter *waiter)
{
	struct lock_waiter **same = &waits->bucket[waiter->event.tid % LOCK_WAITS_BUCKETS];

	while (*same != waiter)
		same = &(*same)->same;
	*same = waiter->same;
	*waiter->place = waiter->next;
	if (waiter->next)
		waiter->next->place = waiter->place;
	lock_info_clear(&waiter->info);
	free(waiter->text);
	free(waiter);
}

struct lock_waiter *lock_waits_add(struct lock_waits *waits, const struct event_lock *event)
{
	struct lock_waiter **bucket = &waits->bucket[event->tid % LOCK_WAITS_BUCKETS];
	struct lock_waiter *w = lock_waits_of(waits, event->tid);

	if (w)
		lock_waits_drop(waits, w);
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->event = *event;
	w->slice_ns = event->start_ns;
	w->same = *bucket;
	*bucket = w;
	w->next = waits->first;
	w->place = &waits->first;
	if (w->next)
		w->next->place = &w->next;
	waits->first = w;
	return w;
}

/* A search for a cycle. */
struct walk {
	const struct lock_waits *waits;
	uint32_t *cycle;
	unsigned int steps;		/* left */
};

/* Follow the holders of @w, the @n-th of the path. Return the length of a cycle, or 0. */
static unsigned int walk_cycle(struct walk *walk, const struct lock_waiter *w, unsigned int n)
{
	unsigned int found = 0;

	walk->cycle[n++] = w->event.pid;
	for (unsigned int i = 0; !found && i < w->info.nholders && walk->steps; i++) {
		uint32_t pid = w->info.holders[i].pid;
		const struct lock_waiter *next = lock_waits_of(walk->waits, pid);

		walk->steps--;
		if (!w->info.holders[i].current)
			continue;
		if (pid == walk->cycle[0] && pid)
			return n;
		for (unsigned int j = 1; next && j < n; j++)
			if (walk->cycle[j] == pid)
				next = NULL;
		if (next && n < LOCK_CYCLE)
			found = walk_cycle(walk, next, n);
	}
	return found;
}

unsigned int lock_waits_cycle(const struct lock_waits *waits, const struct lock_waiter *waiter,
			      uint32_t cycle[LOCK_CYCLE])
{
	struct walk walk = { waits, cycle, STEPS_MAX };

	return walk_cycle(&walk, waiter, 0);
}

void lock_waits_clear(struct lock_waits *waits)
{
	while (waits->first)
		lock_waits_drop(waits, waits->first);
}
