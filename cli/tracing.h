/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The statement tracer in the event loop, as the options ask for it: for slow, stat and top. */
#ifndef CLI_TRACING_H
#define CLI_TRACING_H

#include "cli/loop.h"
#include "db/tracer.h"

struct tracing {
	struct loop loop;		/* first: the functions of struct loop_ops get it */
	struct tracer *tracer;		/* owned; NULL until tracing_open(), and in a replay */
	bool waits;			/* lock waits are counted, not statements */
};

/* Return the selection of statements by the options, which are borrowed. */
struct filter tracing_filter(const struct options *options);

/*
 * Fill @config from the options; the command then sets ->statement and what else it needs. All
 * callbacks get @loop.
 */
void tracing_config(struct loop *loop, struct tracer_config *config);

/*
 * Open the tracer, drop privileges and print the banner. Return EXIT_OK or EXIT_FAILED. The caller
 * closes ->tracer in both cases.
 */
int tracing_open(struct tracing *tracing, const struct tracer_config *config);

/* For struct loop_ops. */
int tracing_drain(struct loop *loop);
int tracing_sleep(struct loop *loop);
void tracing_running(struct loop *loop);
void tracing_detach(struct loop *loop);
void tracing_close(struct loop *loop);
void tracing_summary(struct loop *loop, struct summary *summary);

/* Begin a recording again at its start. */
void tracing_rewind(struct loop *loop);

/* As tracer_histogram() and tracer_run_ns(). */
ssize_t tracing_histogram(const struct tracing *tracing, struct histogram_row **rows);
int tracing_run_ns(const struct tracing *tracing, uint64_t *ns);

#endif
