/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A source of events in place of the tracers: a recording, see cli/replay.h. */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "db/count/histogram.h"
#include "db/tracer.h"

struct loop;

struct source {
	/* Open the source before ->ops->run, and its clock. Return START_GO or an exit status. */
	int (*open)(struct loop *loop);
	/* Begin, with the events of which @config has a callback. As tracing_open(). */
	int (*start)(struct loop *loop, const struct tracer_config *config);
	/* As the functions of struct loop_ops, and as tracer_histogram(). */
	int (*drain)(struct loop *loop);
	/* Begin again at the start, without calling ->start. */
	void (*rewind)(struct loop *loop);
	void (*running)(struct loop *loop);
	void (*detach)(struct loop *loop);
	void (*summary)(struct loop *loop, struct summary *summary);
	ssize_t (*histogram)(const struct loop *loop, struct histogram_row **rows);
	void (*close)(struct loop *loop);
};

#endif
