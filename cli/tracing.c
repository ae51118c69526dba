// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/tracing.h"

#include <errno.h>

#include "cli/banner.h"
#include "cli/overhead.h"

#define OVERHEAD_NS	10000000000u	/* for which the limit may be exceeded, by default */

static bool wants_phases(const struct options *options)
{
	return options->phases || field_needs(&options->columns) & FIELD_NEEDS_PHASES;
}

static bool wants_identity(const struct options *options)
{
	return options->json || options->user || options->database ||
	       options->client || options->application || options->backend ||
	       options->container ||
	       field_needs(&options->columns) & FIELD_NEEDS_IDENTITY;
}

struct filter tracing_filter(const struct options *options)
{
	return (struct filter){
		.user = options->user, .database = options->database, .client = options->client,
		.application = options->application, .backend = options->backend,
		.container = options->container,
		.match = options->has_match ? &options->match : NULL,
	};
}

struct server_filter tracing_servers(const struct options *options)
{
	return (struct server_filter){
		.engine = options->engine,
		.pids = options->pids, .npids = options->pid_count,
		.paths = options->paths, .npaths = options->path_count,
		.start = options->start, .done = options->done,
		.text_arg = options->text_arg,
	};
}

void tracing_config(struct loop *loop, struct tracer_config *config)
{
	const struct options *options = &loop->options;

	loop->banner.phases = wants_phases(options);
	*config = (struct tracer_config){
		.servers = tracing_servers(options),
		.threshold_ns = options->threshold_ns,
		.text_bytes = options->text_bytes,
		.identify = wants_identity(options),
		.rows = options->json || field_needs(&options->columns) & FIELD_NEEDS_ROWS,
		.query_ids = options->json ||
			     field_needs(&options->columns) & FIELD_NEEDS_QUERY_ID,
		.why = options->why || options->use || options->phases ||
		       field_needs(&options->columns) & FIELD_NEEDS_BREAKDOWN,
		.use = options->use, .phases = loop->banner.phases, .nested = options->nested,
		.sink = {
			.filter = tracing_filter(options), .redact = options->redact,
			.nested = options->nested,
			.tags = options->json || field_needs(&options->columns) & FIELD_NEEDS_TAGS,
			.arg = loop,
		},
		.denied = options->denied, .stopped = loop_interrupted,
		.limit = {
			.limit = options->max_overhead,
			.period_ns = options->max_overhead_ns ? options->max_overhead_ns :
								OVERHEAD_NS,
		},
		.limited = overhead_event,
		.arg = loop, .server = banner_server, .error = banner_error,
		.site = options->verbose ? banner_site : NULL,
	};
}

int tracing_start(struct loop *loop, const struct tracer_config *config)
{
	return loop->source->start(loop, config);
}

int tracing_drain(struct loop *loop)
{
	return loop->source->drain(loop);
}

int tracing_sleep(struct loop *loop)
{
	return loop->source->sleep(loop);
}

void tracing_running(struct loop *loop)
{
	loop->source->running(loop);
}

void tracing_detach(struct loop *loop)
{
	loop->source->detach(loop);
}

void tracing_summary(struct loop *loop, struct summary *summary)
{
	loop->source->summary(loop, summary, loop->waits);
	summary->printed = loop->counted;
}

ssize_t source_no_lwlocks(const struct loop *loop, struct lwlock_count **sums)
{
	(void)loop;
	*sums = NULL;
	return 0;
}

int source_no_run_ns(const struct loop *loop, uint64_t *ns)
{
	(void)loop;
	(void)ns;
	return -ENODATA;
}
