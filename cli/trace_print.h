/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How dbslower trace shows hits and what was counted of them. */
#ifndef CLI_TRACE_PRINT_H
#define CLI_TRACE_PRINT_H

#include "cli/output.h"
#include "cli/trace_parse.h"
#include "probe/trace.h"

struct trace_view {
	struct output *out;
	const struct trace_spec *specs;	/* by the number of their aim */
	bool json, wall;
	uint64_t start_ns;		/* what times count from, CLOCK_MONOTONIC */
	char *text;			/* room where a message is put together */
	size_t size, len;
};

/* Makes room for texts of @text_bytes. 0 or -ENOMEM; trace_view_free() ends it. */
int trace_view_init(struct trace_view *view, uint32_t text_bytes);

void trace_view_free(struct trace_view *view);

/* Adds the line of headers. */
void trace_show_header(struct trace_view *view);

/* Adds a line. */
void trace_show_hit(struct trace_view *view, const struct probe_hit *hit);

/* Adds a line for each of @counts, those of a probe together, the most first. Sorts them anew. */
void trace_show_counts(struct trace_view *view, struct probe_trace_count *counts, size_t n);

/* Adds a histogram for each probe in @counts. */
void trace_show_histograms(struct trace_view *view, const struct probe_trace_count *counts,
			   size_t n);

/* Adds the line that ends JSON. */
void trace_show_summary(struct trace_view *view, const struct probe_trace_summary *summary,
			uint64_t shown, uint64_t unreadable, uint64_t cut);

#endif
