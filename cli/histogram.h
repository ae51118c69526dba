/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts by powers of two, as bars or as JSON. */
#ifndef CLI_HISTOGRAM_H
#define CLI_HISTOGRAM_H

#include "cli/output.h"

#define HISTOGRAM_SLOTS	64

/* Slot n > 0 counts what is from 2^n to 2^(n+1) - 1, slot 0 is 0 and 1. */
struct histogram_slots {
	uint64_t count[HISTOGRAM_SLOTS];
	uint64_t negative;
};

/* Adds a line of headers with @title, and one for each slot to the last that counted something. */
void histogram_bars(struct output *out, const struct histogram_slots *slots, const char *title);

/* Adds an array of the slots that counted something: [{"low":0,"high":1,"count":3}]. */
void histogram_buckets(struct output *out, const struct histogram_slots *slots);

#endif
