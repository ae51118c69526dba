// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <linux/capability.h>

#include "cli/banner.h"
#include "cli/loop.h"
#include "cli/memory.h"
#include "cli/message.h"
#include "cli/source.h"
#include "cli/tracing.h"
#include "host/clock.h"
#include "host/privileges.h"

static int live_open(struct loop *loop)
{
	(void)loop;
	return START_GO;
}

/*
 * Report why nothing can be traced, and what works without programs, if the command has that and
 * this process may do it. Return EXIT_FAILED.
 */
static int live_refuse(struct loop *loop, struct error *error)
{
	bool programs = error->kind == ERROR_MAP || error->kind == ERROR_PROGRAM ||
			error->kind == ERROR_NO_LOOPS || error->kind == ERROR_NO_JIT ||
			error->kind == ERROR_NO_UPROBES || error->kind == ERROR_ATTACH ||
			error->kind == ERROR_TRACEPOINT || error->kind == ERROR_TYPES ||
			error->kind == ERROR_STREAM;
	struct privileges host;

	privileges_read(&host);
	message_error_or(&loop->err, error,
			 programs && privileges_may(&host, CAP_SYS_PTRACE) ?
			 memory_other(loop->command) : "");
	output_flush(&loop->err);
	error_clear(error);
	return EXIT_FAILED;
}

static int live_start(struct loop *loop, const struct tracer_config *config)
{
	struct error error = { .kind = ERROR_NONE };
	struct sandbox sandbox;
	int status = loop_ready(loop);

	loop->waits = config->sink.wait && !config->sink.statement;
	if (status != EXIT_OK)
		return status;
	if (memory_check(loop, config) != EXIT_OK)
		return EXIT_FAILED;
	loop_json(loop);
	if (tracer_open(&loop->tracer, config, &error))
		return live_refuse(loop, &error);
	status = loop->ops->opened ? loop->ops->opened(loop) : EXIT_OK;
	if (status != EXIT_OK)
		return status;
	if (!loop->options.keep_privileges) {
		sandbox_enter(tracer_needs(loop->tracer), &sandbox);
		banner_sandbox(loop, &sandbox);
	}
	banner_start(loop, tracer_features(loop->tracer), tracer_targets(loop->tracer));
	return EXIT_OK;
}

uint64_t source_now(const struct loop *loop)
{
	(void)loop;
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t source_wall(const struct loop *loop)
{
	(void)loop;
	return clock_ns(CLOCK_REALTIME);
}

static int live_drain(struct loop *loop)
{
	return tracer_drain(loop->tracer);
}

static int live_sleep(struct loop *loop)
{
	loop->sleep_ms = tracer_interval_ms(loop->tracer);
	return tracer_sleep(loop->tracer);
}

static void live_running(struct loop *loop)
{
	tracer_running(loop->tracer);
}

static void live_detach(struct loop *loop)
{
	tracer_detach(loop->tracer);
}

static void live_summary(struct loop *loop, struct summary *summary, bool waits)
{
	tracer_summary(loop->tracer, summary, waits);
}

static ssize_t live_histogram(const struct loop *loop, struct histogram_row **rows)
{
	return tracer_histogram(loop->tracer, rows);
}

static ssize_t live_lwlocks(const struct loop *loop, struct lwlock_count **sums)
{
	return tracer_lwlocks(loop->tracer, sums);
}

static int live_run_ns(const struct loop *loop, uint64_t *ns)
{
	return tracer_run_ns(loop->tracer, ns);
}

static void live_close(struct loop *loop)
{
	tracer_close(loop->tracer);
}

const struct source source_live = {
	.open = live_open, .start = live_start, .now = source_now, .wall = source_wall,
	.drain = live_drain, .sleep = live_sleep, .running = live_running,
	.detach = live_detach, .summary = live_summary, .histogram = live_histogram,
	.lwlocks = live_lwlocks, .run_ns = live_run_ns, .close = live_close,
};
