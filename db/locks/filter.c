// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/locks/filter.h"

#include "host/clock.h"

#define FORGET_NS	500000000u	/* no thread ID is reused within this time */

bool lock_filter_selects(struct lock_filter *filter, const struct target *target,
			 const struct event_lock *event, const struct lock_info *info)
{
	static const struct identity unknown;
	const struct identity *identity = info ? &info->identity : &unknown;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!filter_any(&filter->filter))
		return true;
	if (now >= filter->forget_ns) {
		identity_clear(&filter->identities);
		filter->forget_ns = now + FORGET_NS;
	}
	if (target->engine->identify)
		identity = identity_of(&filter->identities, target->engine, event->tid);
	return filter_session(&filter->filter, &(struct filter_session){
			identity->user, identity->database, identity->client,
			identity_container(&filter->identities, event->tid), NULL }) &&
	       filter_text(&filter->filter, info ? info->self.text : NULL,
			   info && info->self.text ? info->self.len : 0);
}

void lock_filter_close(struct lock_filter *filter)
{
	identity_clear(&filter->identities);
}
