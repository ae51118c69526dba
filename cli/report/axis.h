/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time in columns of equal width: 1 ms, doubled whenever the times that were seen would not fit
 * into REPORT_COLUMNS of them.
 */
#ifndef CLI_REPORT_AXIS_H
#define CLI_REPORT_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

#define REPORT_COLUMNS	240
#define REPORT_ROWS	32		/* of the heat map: powers of two of ns, from .. */
#define REPORT_ROW_LOG	9		/* .. 512 ns; the first and last have all beyond */
#define REPORT_PARTS	(BREAKDOWN_PARTS + 1)
#define REPORT_UNKNOWN	BREAKDOWN_PARTS	/* time of statements without a breakdown */

/* All zero: no time was seen. */
struct report_axis {
	bool set;
	unsigned int shift;		/* a column is 2^shift ms */
	uint64_t first;			/* number of the first column since 1970 */
	uint64_t lo_ms, hi_ms;		/* first and last time */
};

/* Sums of a column. */
struct report_column {
	uint32_t cells[REPORT_ROWS];	/* statements that ended, by duration */
	uint64_t calls, errors, total_ns, max_ns;	/* of these */
	uint64_t part_ns[REPORT_PARTS];	/* time of statements that ran, by part */
};

/* Calls of a group over time. All zero: none. */
struct report_series {
	struct report_axis axis;
	uint32_t calls[REPORT_COLUMNS];
	uint64_t ns[REPORT_COLUMNS];
};

/* Extend @axis by a time since 1970. Return whether its columns have changed. */
bool report_axis_include(struct report_axis *axis, uint64_t wall_ns);

/* Return the column of a time, or the first or last one. The axis must be set. */
unsigned int report_axis_column(const struct report_axis *axis, uint64_t wall_ns);

/* Return the number of the first column of a time that was seen, and of such columns. */
unsigned int report_axis_begin(const struct report_axis *axis);
unsigned int report_axis_count(const struct report_axis *axis);

/* Return the begin of a column, in ms since 1970, and the width of each in ms. */
uint64_t report_axis_ms(const struct report_axis *axis, unsigned int column);
uint64_t report_axis_width(const struct report_axis *axis);

/* Return the column of @to for column @i of @from, which @to was extended from. */
unsigned int report_axis_map(const struct report_axis *from, const struct report_axis *to,
			     unsigned int i);

/* Add the columns of @from to @to, which is empty: they are of @old, the new ones of @axis. */
void report_columns_map(struct report_column *to, const struct report_column *from,
			const struct report_axis *old, const struct report_axis *axis);

/* Convert @series to the columns of @axis. */
void report_series_fit(struct report_series *series, const struct report_axis *axis);

/* Return the row of a duration. */
unsigned int report_row(uint64_t ns);

#endif
