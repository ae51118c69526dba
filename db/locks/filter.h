/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The selection of lock waits by the waiting session. */
#ifndef DB_LOCKS_FILTER_H
#define DB_LOCKS_FILTER_H

#include "db/discover/target.h"
#include "db/filter.h"
#include "db/locks/info.h"
#include "db/session/identity.h"

/* All zero but for ->filter. */
struct lock_filter {
	struct filter filter;		/* its strings are borrowed */
	struct identity_table identities;	/* of the threads that have waited lately */
	uint64_t forget_ns;		/* CLOCK_MONOTONIC: when these are dropped */
};

/*
 * Return whether the filter selects the wait @event in a process of @target. @info is what was read
 * of the wait, or NULL. An unknown value does not match.
 */
bool lock_filter_selects(struct lock_filter *filter, const struct target *target,
			 const struct event_lock *event, const struct lock_info *info);

/* Free what @filter owns. */
void lock_filter_close(struct lock_filter *filter);

#endif
