/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Probe hits, counts and histograms as the command trace shows them. */
#ifndef CLI_TRACE_PRINT_H
#define CLI_TRACE_PRINT_H

#include "cli/output.h"
#include "cli/trace/parse.h"
#include "host/symbolize.h"
#include "probe/trace.h"

struct trace_view {
	struct output *out;
	const struct trace_spec *specs;	/* by the number of the probe request */
	bool json, wall, latency, stacks;
	bool by_latency;		/* histograms are of latencies, in us */
	uint64_t start_ns;		/* time zero, CLOCK_MONOTONIC */
	uint64_t wall_ns;		/* of counts, CLOCK_REALTIME */
	struct symbolizer *symbols;	/* owned; NULL: without stacks */
	char *text;			/* owned: buffer of the message that is being formatted */
	size_t size, len;
};

/* Allocate the buffer for values of @text_bytes. Return 0 or -ENOMEM. */
int trace_view_init(struct trace_view *view, uint32_t text_bytes);

void trace_view_free(struct trace_view *view);

/* Append the line of headers; nothing in JSON. */
void trace_show_header(struct trace_view *view);

/* Return whether value @i of @hit, or the text there, could not be read. */
bool trace_unreadable(const struct probe_hit *hit, unsigned int i);

/* Append the line of a hit. */
void trace_show_hit(struct trace_view *view, const struct probe_hit *hit);

/* Sort @counts, the largest first, and append a line for each. */
void trace_show_counts(struct trace_view *view, struct probe_trace_count *counts, size_t n);

/* Append a histogram for each probe in @counts, in which the counts of a probe are adjacent. */
void trace_show_histograms(struct trace_view *view, const struct probe_trace_count *counts,
			   size_t n);

#endif
