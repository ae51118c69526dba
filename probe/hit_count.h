/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts of hits, and their order. */
#ifndef PROBE_HIT_COUNT_H
#define PROBE_HIT_COUNT_H

#include "bpf/event.h"
#include "probe/request.h"

/* The number of hits of a probe with the same values. */
struct probe_trace_count {
	const struct traced_probe *probe;
	uint64_t count;
	struct probe_hit_key key;	/* has foreign bytes; its ->probe_id does not matter */
};

/*
 * Compare the probes, names and files only, and the values of two counts, without the slot, as
 * strcmp().
 */
int hit_count_order(const struct probe_trace_count *a, const struct probe_trace_count *b);

/* Compare two counts with the slot, for qsort(). */
int hit_count_compare(const void *pa, const void *pb);

#endif
