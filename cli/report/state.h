/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of a report; private to its modules. */
#ifndef CLI_REPORT_STATE_H
#define CLI_REPORT_STATE_H

#include "cli/families.h"
#include "cli/report/axis.h"
#include "cli/report/kept.h"
#include "cli/report/marks.h"
#include "db/count/top.h"
#include "db/loss.h"

#define REPORT_GROUPS	60		/* that are shown */
#define REPORT_ENGINES	16
#define REPORT_SERVERS	64
#define REPORT_DAMAGES	32

struct report_server {
	char *engine, *version, *path, *container;	/* owned; "": unknown */
	uint32_t pid;
};

struct report_loss {
	const char *name;		/* static */
	uint64_t count;
};

struct report {
	char *host, *threshold, *version, *source;	/* owned; "": unknown */
	uint64_t begin_ns, end_ns;	/* 0: unknown */
	bool again;			/* report_again() was called */

	struct report_axis axis;
	struct report_column *columns;	/* REPORT_COLUMNS */
	struct top *groups;		/* by fingerprint */
	struct top *all, *rest;		/* in one group: all, those of groups that are not shown */
	/* Of each column: by the index of the group in ->sorted, or REPORT_GROUPS; NULL: none. */
	struct top *calls[REPORT_COLUMNS];
	struct families families;

	struct report_longest slowest, longest;
	struct report_statement statements[REPORT_KEPT];	/* the slowest */
	struct report_lock_wait waits[REPORT_KEPT];		/* the longest */
	struct report_mark statement_marks[REPORT_KEPT], wait_marks[REPORT_KEPT];
	struct report_marks *marks;	/* REPORT_COLUMNS of statements, then as many of waits */
	uint64_t running, transactions, undated, no_memory;
	uint64_t nested;		/* statements in routines: only listed */
	struct report_waits all_waits;

	char *engines[REPORT_ENGINES];	/* owned: names that the rest borrows */
	struct report_server servers[REPORT_SERVERS];
	unsigned int nengines, nservers, more_servers;
	char *damages[REPORT_DAMAGES];	/* owned */
	unsigned int ndamages, more_damages;
	struct report_loss losses[LOSSES];
	unsigned int nlosses;
	uint64_t boundary;
	bool has_losses;

	/* Set by report_again(): the groups, by total time, of which the first are shown. */
	const struct top_entry *const *sorted;
	size_t nsorted, shown;
	/* Set by report_write(): report_cells_shift(), and the order of what is kept. */
	unsigned int bucket_shift;
	unsigned int slowest_order[REPORT_KEPT], longest_order[REPORT_KEPT];
};

#endif
