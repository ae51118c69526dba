/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Histograms with a slot for each power of two, as bars or in JSON. */
#ifndef CLI_FORMAT_HISTOGRAM_H
#define CLI_FORMAT_HISTOGRAM_H

#include "cli/output.h"

#define HISTOGRAM_SLOTS	64

/* Slot n > 0 counts the values from 2^n to 2^(n+1) - 1, slot 0 counts 0 and 1. */
struct histogram_slots {
	uint64_t count[HISTOGRAM_SLOTS];
	uint64_t negative;		/* values below 0 */
};

/* Append a line of headers with @title, and a line for each slot up to the last that is not 0. */
void histogram_bars(struct output *out, const struct histogram_slots *slots, const char *title);

/*
 * Append the member "buckets", from the lowest to the highest slot that is not 0: for each upper
 * bound the number of all smaller values, [{"lt":2,"count":3},{"lt":4,"count":5}]. @unit_ns: the
 * values are durations in this unit, with bounds in ms as "lt_ms"; 0: numbers.
 */
void histogram_buckets(struct output *out, const struct histogram_slots *slots, uint64_t unit_ns);

#endif
