/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli/report/: the page of the command report: what it keeps of the events, tables, charts, style
 * and script.
 * No foreign byte gets into the page other than by cli/format/html.h.
 */

/*
 * A stream of statements and lock waits as one HTML page, which needs neither a network nor
 * scripts. Memory is bounded, whatever the number of statements: they are aggregated as they are
 * added. All strings are foreign bytes, copied, and cut if they are long.
 */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include <stdint.h>

#include "cli/output.h"
#include "db/loss.h"
#include "db/event.h"

struct report;

/* NULL and 0 are unknown. Times are those of CLOCK_REALTIME. */
struct report_config {
	const char *host;
	const char *threshold;		/* in words */
	const char *version;		/* of dbslower */
	const char *source;		/* the name of the recording */
	uint64_t begin_ns, end_ns;	/* of the recording; without, nothing is over time */
};

/* Create an empty report. report_free() frees it. NULL: no memory. */
struct report *report_new(const struct report_config *config);

/* Add a server. Strings may be NULL, @pid 0: unknown. The same one is shown once. */
void report_server(struct report *report, const char *engine, const char *version, uint32_t pid,
		   const char *path, const char *container);

/*
 * Add a statement that has ended, or one that was running when the recording ended. Transactions
 * are only counted. All are added twice: first to find the fingerprints that the page shows, then,
 * after report_again(), as what it shows of them.
 */
void report_statement(struct report *report, const struct statement *statement);

/* Return 0, or -ENOMEM: no fingerprint is shown. */
int report_again(struct report *report);

/* Add a lock wait; before report_again() it is ignored. */
void report_wait(struct report *report, const struct lock_wait *wait);

/* Set the losses: the counts of the last call are shown. */
void report_losses(struct report *report, const struct summary *summary);

/* Add a sentence about a part of the recording that is missing. */
void report_damage(struct report *report, const char *text);

/*
 * Write the page of all that was added. Return 0 or -errno: of @out, or -ENOMEM if statements had
 * to be left out of it.
 */
int report_write(struct report *report, struct output *out);

/* Free @report, which may be NULL. */
void report_free(struct report *report);

#endif
