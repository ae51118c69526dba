/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The probe requests that the operands and options of the command trace specify. */
#ifndef CLI_TRACE_REQUEST_H
#define CLI_TRACE_REQUEST_H

#include "cli/loop.h"
#include "cli/trace/parse.h"

/* The command's own options. */
struct trace_options {
	bool on_return, count, latency, stacks;
	const char *histogram;		/* the value to count by; NULL: none */
	unsigned int registers;		/* of functions, so many arguments */
};

/* Return whether hits are counted, not printed. */
bool trace_request_counts(const struct trace_options *options);

/* Return whether latencies are measured, and whether hits are counted by them. */
bool trace_request_latency(const struct trace_options *options);
bool trace_request_by_latency(const struct trace_options *options);

/*
 * Parse the operands in ->options to @specs, room for OPTION_WORDS, and apply the options that
 * concern them. Return EXIT_OK, or another status after a message. trace_spec_free() frees each of
 * @specs in both cases.
 */
int trace_request_read(struct loop *loop, const struct trace_options *own,
		       struct trace_spec *specs);

#endif
