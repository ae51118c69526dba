/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The statements of running servers without a probe, from samples of their sessions that a child
 * process takes, see db/sample/sampler.h. Statements are as db/tracer.h reports them.
 */
#ifndef DB_SAMPLE_SAMPLING_H
#define DB_SAMPLE_SAMPLING_H

#include "db/discover/announce.h"
#include "db/discover/discover.h"
#include "db/loss.h"
#include "db/sink.h"
#include "loader/error.h"

/* All of it is borrowed, until sampling_close(). */
struct sampling_config {
	struct server_filter servers;	/* without ->start and ->done */
	uint64_t interval_ns;
	uint64_t threshold_ns;		/* shorter statements are not reported */
	uint32_t text_bytes;		/* maximum length of a text */
	struct sink_config sink;	/* ->owners is the sampling's */
	void *arg;
	/* Called for each server that is sampled from now on. */
	void (*server)(void *arg, const struct server_info *server);
	/* Called for a file or process that cannot be read. */
	void (*error)(void *arg, const struct error *error);
	/* Called when the servers of user @uid are left out, as process @pid does not answer. */
	void (*stalled)(void *arg, uint32_t pid, uint32_t uid);
};

struct sampling;

/* Return a sampling that does nothing yet, which sampling_close() ends; NULL: no memory. */
struct sampling *sampling_new(const struct sampling_config *config);

/*
 * Start the child, and report the servers. Return 0, also if no server runs, or -errno with the
 * cause in @error.
 */
int sampling_start(struct sampling *sampling, struct error *error);

/* Return the descriptor that is readable when there is something to drain, borrowed; or -EAGAIN. */
int sampling_fd(const struct sampling *sampling);

/*
 * Give the statements that have ended to the sink, and look after the child: to be called at least
 * every HELPER_MS. Return 1: there were some, 0: none; or -ECHILD: there will be no further ones,
 * as was reported.
 */
int sampling_drain(struct sampling *sampling);

/* Give the statements that run to the sink. */
void sampling_running(struct sampling *sampling);

/* Have a last sample taken, and no further one; sampling_drain() then waits for it. */
void sampling_finish(struct sampling *sampling);

/* As tracer_histogram(). */
ssize_t sampling_histogram(const struct sampling *sampling, struct histogram_row **rows);

/* Fill @summary with all counters; ->printed is the caller's. */
void sampling_summary(const struct sampling *sampling, struct summary *summary);

void sampling_close(struct sampling *sampling);

#endif
