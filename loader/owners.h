/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* User-space side of bpf/owner.h: the shares of users in the buffer and the tables, and losses. */
#ifndef LOADER_OWNERS_H
#define LOADER_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

/* The part of the buffer or of a table that one user's processes may take. */
#define OWNER_SHARE(all)	((all) / 4 * 3)

/* All zero has no maps. */
struct owners {
	int map, grants;		/* maps "owners" and "grants", borrowed .. */
	int losses;			/* .. and "losses", -1 if programs do not use it */
	uint64_t lag_max;		/* bytes received that map "grants" may lack */
	struct grant grant[OWNERS];
	uint64_t granted[OWNERS];	/* ->received in map "grants" */
	uint16_t changed[OWNERS];	/* numbers of owners whose map element lags */
	uint32_t nchanged;
	uint64_t lost[OWNERS][COUNTERS];	/* in user space, by enum counter .. */
	uint64_t lost_sum[COUNTERS];		/* .. and of all owners */
};

/* Losses of the processes of one user, or of those that run one file. */
struct owner_losses {
	uint32_t uid;			/* as in the initial user namespace */
	uint32_t target_id;		/* the file */
	bool several;			/* other users share the element of this one */
	uint64_t lost[COUNTERS];	/* by enum counter */
};

#define OWNERS_REPORTED	16
#define OWNERS_FILES	4		/* of one user in a report */

struct owners_report {
	size_t n;
	struct owner_losses row[OWNERS_REPORTED];
};

/* Count a record of @size bytes of owner @number as received. */
void owners_received(struct owners *owners, uint16_t number, uint64_t size);

/* Count a removal from map "sessions", where it was counted for owner @number, at once. */
void owners_removed(struct owners *owners, uint16_t number);

/* Let the programs know what was received. */
void owners_flush(struct owners *owners);

/* Count @n losses of owner @number in user space, which the programs do not know. */
void owners_lost(struct owners *owners, uint16_t number, enum counter which, uint64_t n);

/* Read the user ID of owner @number to *@uid. Return false if it is not known to be one user's. */
bool owners_uid(const struct owners *owners, uint16_t number, uint32_t *uid);

/* Fill @report with the users that have losses, those with the largest sums first. */
void owners_report(const struct owners *owners, struct owners_report *report);

/* The same for users and files. */
void owners_report_files(const struct owners *owners, struct owners_report *report);

/* Return the sum of the losses in a row. */
uint64_t owner_losses_sum(const struct owner_losses *losses);

#endif
