/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the events of a command come from: this host, by the tracer (cli/live.c) or from samples
 * (cli/sampled.c), or a recording (cli/replay.c). A command asks its source, which has a clock of
 * its own, and not which one it is.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "db/tracer.h"

struct loop;

struct source {
	/* Open it before ->ops->run. Return START_GO or an exit status. */
	int (*open)(struct loop *loop);
	/*
	 * Begin, with the events of which @config has a callback: drop privileges, print the
	 * banner. Return EXIT_OK or an exit status.
	 */
	int (*start)(struct loop *loop, const struct tracer_config *config);
	/* Return its CLOCK_MONOTONIC and CLOCK_REALTIME, in ns. */
	uint64_t (*now)(const struct loop *loop);
	uint64_t (*wall)(const struct loop *loop);
	/* As the functions of struct loop_ops. */
	int (*drain)(struct loop *loop);
	int (*sleep)(struct loop *loop);
	void (*running)(struct loop *loop);
	void (*detach)(struct loop *loop);
	/* Of statements, or of lock @waits. */
	void (*summary)(struct loop *loop, struct summary *summary, bool waits);
	/* As the functions of the tracer; -ENODATA, or none, if it is not known. */
	ssize_t (*histogram)(const struct loop *loop, struct histogram_row **rows);
	ssize_t (*lwlocks)(const struct loop *loop, struct lwlock_count **sums);
	int (*run_ns)(const struct loop *loop, uint64_t *ns);
	/* Begin again at the start; NULL: time cannot be moved. */
	void (*rewind)(struct loop *loop);
	/* End it, also if ->open failed. */
	void (*close)(struct loop *loop);
};

/* The clocks of this host. */
uint64_t source_now(const struct loop *loop);
uint64_t source_wall(const struct loop *loop);

/* Of sources that do not know it. */
ssize_t source_no_lwlocks(const struct loop *loop, struct lwlock_count **sums);
int source_no_run_ns(const struct loop *loop, uint64_t *ns);

extern const struct source source_live;
extern const struct source source_sampled;	/* --sample, by cli/sampled.c */

#endif
