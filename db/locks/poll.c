// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/locks/poll.h"

#include <string.h>

#define REST		16	/* times the duration of a pass: at most 6 % of a CPU */
#define INTERVAL_MAX	10000	/* ms */

/* Return the bit of the lock that @event waits for; of MySQL and MariaDB, of the whole server. */
static unsigned int poll_bit(const struct event_lock *event)
{
	uint32_t hash = event->target_id;

	if (event->flags & LOCK_SESSION)
		hash = hash * 31 + event->pid;
	else
		for (int i = 0; i < 4; i++)
			hash = hash * 31 + event->field[i];
	return (hash * 0x9e3779b1u) >> 23;
}

_Static_assert(LOCK_POLL_WORDS * 64 == 1 << (32 - 23), "a bit is in the array");

static struct lock_poll_owner *poll_owner(struct lock_poll *poll, const struct lock_waiter *waiter)
{
	return &poll->owner[waiter->event.head.owner % OWNERS];
}

void lock_poll_changed(struct lock_poll *poll, const struct event_lock *ended)
{
	unsigned int bit = poll_bit(ended);

	poll->changed[bit / 64] |= 1ull << bit % 64;
	if (poll->wake_ns > poll->next_ns)
		poll->wake_ns = poll->next_ns;
}

bool lock_poll_begin(struct lock_poll *poll, uint64_t now_ns)
{
	if (now_ns < poll->next_ns)
		return false;
	for (unsigned int i = 0; i < OWNERS; i++) {
		struct lock_poll_owner *owner = &poll->owner[i];

		if (owner->cut && owner->interval_ms < INTERVAL_MAX)
			owner->interval_ms *= 2;
		else if (!owner->cut)
			owner->interval_ms /= 2;
		if (owner->interval_ms < LOCK_POLL_MS)
			owner->interval_ms = LOCK_POLL_MS;
		owner->spent_us = 0;
		owner->cut = false;
	}
	poll->begun_ns = poll->read_ns = now_ns;
	poll->wake_ns = 0;
	return true;
}

bool lock_poll_due(struct lock_poll *poll, struct lock_waiter *waiter)
{
	struct lock_poll_owner *owner = poll_owner(poll, waiter);
	unsigned int bit = poll_bit(&waiter->event);

	/* The holders of a new wait have just been read. */
	if (!waiter->due_ns)
		waiter->due_ns = poll->begun_ns + owner->interval_ms * 1000000ull;
	if (poll->begun_ns < waiter->due_ns && !(poll->changed[bit / 64] >> bit % 64 & 1)) {
		if (!poll->wake_ns || waiter->due_ns < poll->wake_ns)
			poll->wake_ns = waiter->due_ns;
		return false;
	}
	if (owner->spent_us < LOCK_POLL_PASS / 1000)
		return true;
	owner->cut = true;
	poll->wake_ns = poll->begun_ns;
	return false;
}

void lock_poll_read(struct lock_poll *poll, struct lock_waiter *waiter, uint64_t now_ns,
		    uint64_t age_ns)
{
	struct lock_poll_owner *owner = poll_owner(poll, waiter);
	uint64_t share = age_ns / LOCK_POLL_SHARE, interval = owner->interval_ms * 1000000ull;

	owner->spent_us += (uint32_t)((now_ns - poll->read_ns) / 1000);
	poll->read_ns = now_ns;
	share = share < LOCK_POLL_MAX ? share : LOCK_POLL_MAX;
	waiter->due_ns = poll->begun_ns + (share > interval ? share : interval);
	if (!poll->wake_ns || waiter->due_ns < poll->wake_ns)
		poll->wake_ns = waiter->due_ns;
}

void lock_poll_end(struct lock_poll *poll, uint64_t now_ns)
{
	poll->next_ns = now_ns + (now_ns - poll->begun_ns) * REST;
	memset(poll->changed, 0, sizeof(poll->changed));
	if (poll->wake_ns && poll->wake_ns < poll->next_ns)
		poll->wake_ns = poll->next_ns;
}
