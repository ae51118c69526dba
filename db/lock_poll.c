// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/lock_poll.h"

#include <string.h>

#define REST		16	/* times the duration of a pass: at most 6 % of a CPU */
#define INTERVAL_MAX	10000000000u	/* ns */

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
	if (!poll->interval_ns)
		poll->interval_ns = LOCK_POLL_NS;
	poll->wake_ns = 0;
	return true;
}

bool lock_poll_due(struct lock_poll *poll, struct lock_waiter *waiter, uint64_t now_ns,
		   uint64_t age_ns)
{
	unsigned int bit = poll_bit(&waiter->event);
	bool due = poll->changed[bit / 64] >> bit % 64 & 1 ||
		   (waiter->due_ns && now_ns >= waiter->due_ns);

	if (due || !waiter->due_ns) {
		uint64_t share = age_ns / LOCK_POLL_SHARE;

		share = share < LOCK_POLL_MAX ? share : LOCK_POLL_MAX;
		waiter->due_ns = now_ns + (share > poll->interval_ns ? share : poll->interval_ns);
	}
	if (!poll->wake_ns || waiter->due_ns < poll->wake_ns)
		poll->wake_ns = waiter->due_ns;
	return due;
}

void lock_poll_end(struct lock_poll *poll, uint64_t begun_ns, uint64_t now_ns, bool cut)
{
	poll->next_ns = now_ns + (now_ns - begun_ns) * REST;
	if (cut && poll->interval_ns < INTERVAL_MAX)
		poll->interval_ns *= 2;
	else if (!cut && poll->interval_ns > LOCK_POLL_NS)
		poll->interval_ns /= 2;
	if (!cut)
		memset(poll->changed, 0, sizeof(poll->changed));
	if (cut || (poll->wake_ns && poll->wake_ns < poll->next_ns))
		poll->wake_ns = poll->next_ns;
}
