/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Statements and lock waits as bars of a timeline, without their texts: those that a report has
 * kept, and the longest that ended in each column of time, so that the reader can choose any
 * moment.
 */
#ifndef CLI_REPORT_MARKS_H
#define CLI_REPORT_MARKS_H

#include "cli/report/axis.h"
#include "cli/report/kept.h"

#define REPORT_MARKS		8	/* of each kind in a column */

struct report_mark_holder {
	struct report_session session;
	uint64_t blocked_ns;
	bool queued, idle;
};

struct report_mark {
	uint64_t wall_ns, duration_ns;
	const char *engine;		/* owned by the report */
	struct report_session session;
	uint64_t hash;			/* of the fingerprint of a statement */
	bool failed;			/* a wait: by a deadlock */
	unsigned int nholders;
	struct report_mark_holder holders[LOCK_HOLDERS_KEPT];
};

/* Those of a column, in any order. */
struct report_marks {
	struct report_mark marks[REPORT_MARKS];
	unsigned int count;
};

/* Write @s or @wait to @mark. @engine is borrowed. */
void report_mark_statement(struct report_mark *mark, const struct statement *s,
			   const char *engine, uint64_t hash);
void report_mark_wait(struct report_mark *mark, const struct lock_wait *wait, const char *engine);

/* Add a copy of @mark, in place of the shortest one if there is no room and that is shorter. */
void report_marks_add(struct report_marks *marks, const struct report_mark *mark);

#endif
