/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Latency over time: a line for each interval, with a cell for each range of durations, from 1 us
 * to 100 s by their logarithm. Its shade, or colour on a terminal, is the logarithm of the count,
 * relative to that of the largest count so far.
 */
#ifndef CLI_FORMAT_HEATMAP_H
#define CLI_FORMAT_HEATMAP_H

#include <stdbool.h>

#include "cli/output.h"
#include "db/count/histogram.h"

struct heatmap {
	unsigned int scale;		/* cells that double the duration: 1, 2, 4 or 8 */
	bool color;
	uint64_t most;			/* the largest count of a cell so far */
};

/* Adapt to the terminal of the standard output, or to 80 columns, and NO_COLOR and TERM. */
void heatmap_open(struct heatmap *map);

/* Append the axis. */
void heatmap_axis(const struct heatmap *map, struct output *out);

/* Append the line of the interval that ended at @wall_ns, of CLOCK_REALTIME. */
void heatmap_line(struct heatmap *map, struct output *out, uint64_t wall_ns,
		  const struct histogram_row *rows, size_t nrows);

#endif
