// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/tracing.h"

#include <errno.h>

#include "cli/banner.h"
#include "cli/overhead.h"
#include "cli/source.h"

#define OVERHEAD_NS	10000000000u	/* for which the limit may be exceeded, by default */

static struct tracer *tracing_tracer(struct loop *loop)
{
	return ((struct tracing *)loop)->tracer;
}

static bool tracing_wants_phases(const struct options *options)
{
	return options->phases || field_needs(&options->columns) & FIELD_NEEDS_PHASES;
}

static bool tracing_wants_identity(const struct options *options)
{
	return options->json || options->user || options->database ||
	       options->client || options->application || options->container ||
	       field_needs(&options->columns) & FIELD_NEEDS_IDENTITY;
}

struct filter tracing_filter(const struct options *options)
{
	return (struct filter){
		.user = options->user, .database = options->database, .client = options->client,
		.application = options->application, .container = options->container,
		.match = options->has_match ? &options->match : NULL,
	};
}

void tracing_config(struct loop *loop, struct tracer_config *config)
{
	const struct options *options = &loop->options;

	loop->banner.phases = tracing_wants_phases(options);
	*config = (struct tracer_config){
		.servers = {
			.engine = options->engine,
			.pids = options->pids, .npids = options->pid_count,
			.paths = options->paths, .npaths = options->path_count,
			.start = options->start, .done = options->done,
			.text_arg = options->text_arg,
		},
		.threshold_ns = options->threshold_ns,
		.text_bytes = options->text_bytes,
		.identify = tracing_wants_identity(options),
		.rows = options->json || field_needs(&options->columns) & FIELD_NEEDS_ROWS,
		.query_ids = options->json ||
			     field_needs(&options->columns) & FIELD_NEEDS_QUERY_ID,
		.why = options->why || options->use || options->phases ||
		       field_needs(&options->columns) & FIELD_NEEDS_BREAKDOWN,
		.use = options->use, .phases = loop->banner.phases,
		.sink = {
			.filter = tracing_filter(options), .redact = options->redact,
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

int tracing_open(struct tracing *tracing, const struct tracer_config *config)
{
	struct loop *loop = &tracing->loop;
	struct error error = { .kind = ERROR_NONE };
	struct sandbox sandbox;
	int status;

	tracing->waits = config->sink.wait && !config->sink.statement;
	if (loop->replay)
		return loop->command->source->start(loop, config);
	status = loop_ready(loop);
	if (status != EXIT_OK)
		return status;
	if (tracer_open(&tracing->tracer, config, &error))
		return loop_refuse(loop, &error);
	if (!loop->options.keep_privileges) {
		sandbox_enter(tracer_needs(tracing->tracer), &sandbox);
		banner_sandbox(loop, &sandbox);
	}
	banner_start(loop, tracer_features(tracing->tracer), tracer_targets(tracing->tracer));
	return EXIT_OK;
}

int tracing_drain(struct loop *loop)
{
	const struct source *source = loop->command->source;

	return source ? source->drain(loop) : tracer_drain(tracing_tracer(loop));
}

int tracing_sleep(struct loop *loop)
{
	if (loop->replay)
		return -EAGAIN;
	loop->sleep_ms = tracer_interval_ms(tracing_tracer(loop));
	return tracer_sleep(tracing_tracer(loop));
}

void tracing_running(struct loop *loop)
{
	if (loop->replay)
		loop->command->source->running(loop);
	else
		tracer_running(tracing_tracer(loop));
}

void tracing_detach(struct loop *loop)
{
	if (loop->replay)
		loop->command->source->detach(loop);
	else
		tracer_detach(tracing_tracer(loop));
}

void tracing_close(struct loop *loop)
{
	tracer_close(tracing_tracer(loop));
}

void tracing_summary(struct loop *loop, struct summary *summary)
{
	if (loop->replay)
		loop->command->source->summary(loop, summary);
	else
		tracer_summary(tracing_tracer(loop), summary,
			       ((struct tracing *)loop)->waits);
	summary->printed = loop->counted;
}

void tracing_rewind(struct loop *loop)
{
	loop->command->source->rewind(loop);
}

ssize_t tracing_histogram(const struct tracing *tracing, struct histogram_row **rows)
{
	const struct loop *loop = &tracing->loop;

	return loop->replay ? loop->command->source->histogram(loop, rows) :
			      tracer_histogram(tracing->tracer, rows);
}

int tracing_run_ns(const struct tracing *tracing, uint64_t *ns)
{
	return tracing->loop.replay ? -ENODATA : tracer_run_ns(tracing->tracer, ns);
}
