/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time in columns of equal width: the least of 1, 2, 4, .. ms of which REPORT_COLUMNS hold the time
 * of the recording.
 */
#ifndef CLI_REPORT_AXIS_H
#define CLI_REPORT_AXIS_H

#include <stdint.h>

#include "bpf/event.h"

#define REPORT_COLUMNS	240
#define REPORT_ROWS	32		/* of the heat map: powers of two of ns, from .. */
#define REPORT_ROW_LOG	9		/* .. 512 ns; the first and last have all beyond */
#define REPORT_PARTS	(BREAKDOWN_PARTS + 1)
#define REPORT_UNKNOWN	BREAKDOWN_PARTS	/* time of statements without a breakdown */

struct report_axis {
	uint64_t first;			/* number of the first column since 1970 */
	unsigned int shift;		/* a column is 2^shift ms */
	unsigned int count;		/* of columns; 0: the time is unknown */
};

/* Sums of lock waits. */
struct report_waits {
	uint64_t count, ns, deadlocks, failed;
};

/* Sums of a column. */
struct report_column {
	uint32_t cells[REPORT_ROWS];	/* statements that ended, by duration */
	uint64_t calls, errors, total_ns, max_ns;	/* of these */
	__u64 part_ns[REPORT_PARTS];	/* time of statements that ran, by part */
	struct report_waits waits;	/* that ended */
};

/* Set the axis of the time from @begin_ns to @end_ns since 1970; a @begin_ns of 0: unknown. */
void report_axis_set(struct report_axis *axis, uint64_t begin_ns, uint64_t end_ns);

/* Return the column of a time, or the first or last one. There must be one. */
unsigned int report_axis_column(const struct report_axis *axis, uint64_t wall_ns);

/* Return the begin of a column, in ms since 1970, and the width of each in ms. */
uint64_t report_axis_ms(const struct report_axis *axis, unsigned int column);
uint64_t report_axis_width(const struct report_axis *axis);

/* Return the row of a duration. */
unsigned int report_row(uint64_t ns);

#endif
