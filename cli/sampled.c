// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stddef.h>
#include <sys/resource.h>

#include "cli/banner.h"
#include "cli/loop.h"
#include "cli/message.h"
#include "cli/source.h"
#include "db/sample/helper.h"
#include "db/sample/sampling.h"
#include "loader/sandbox.h"

#define CHILD_NICE	(-10)

/* The state beyond struct loop; one exists at a time. */
static struct {
	struct sampling *sampling;	/* owned */
	size_t servers;			/* reported so far .. */
	void (*server)(void *arg, const struct server_info *server);	/* .. by this */
} state;

/* What is shorter than the interval is not seen reliably, and never shown. */
static int sampled_open(struct loop *loop)
{
	struct options *options = &loop->options;

	state.sampling = NULL;
	state.servers = 0;
	if (options->threshold_ns < options->sample_ns)
		options->threshold_ns = options->sample_ns;
	return START_GO;
}

static void sampled_server(void *arg, const struct server_info *server)
{
	state.servers++;
	state.server(arg, server);
}

static void sampled_stalled(void *arg, uint32_t pid, uint32_t uid)
{
	struct loop *loop = arg;

	output_printf(&loop->err, "dbslower: process %u: its memory does not answer; the servers "
		      "of user ID %u are left out for a while\n", pid, uid);
	output_flush(&loop->err);
}

static int sampled_start(struct loop *loop, const struct tracer_config *config)
{
	struct error error = { .kind = ERROR_NONE };
	struct sandbox sandbox;
	int status = loop_ready(loop), nice = getpriority(PRIO_PROCESS, 0);

	if (status != EXIT_OK)
		return status;
	loop_json(loop);
	state.server = config->server;
	state.sampling = sampling_new(&(struct sampling_config){
		.servers = config->servers, .interval_ns = loop->options.sample_ns,
		.threshold_ns = loop->options.threshold_ns, .text_bytes = config->text_bytes,
		.sink = config->sink, .arg = loop, .server = sampled_server,
		.error = banner_error, .stalled = sampled_stalled,
	});
	if (!state.sampling)
		return message_no_memory();
	status = loop->ops->opened ? loop->ops->opened(loop) : EXIT_OK;
	if (status != EXIT_OK)
		return status;
	/*
	 * The child has the same privileges, also one that is started later. Where it counts most,
	 * all CPUs are busy: the first one comes before others, as it works for a moment only.
	 */
	setpriority(PRIO_PROCESS, 0, CHILD_NICE);
	if (!loop->options.keep_privileges) {
		sandbox_enter(config->needs | SANDBOX_READ | SANDBOX_HELPERS | SANDBOX_NO_BPF,
			      &sandbox);
		banner_sandbox(loop, &sandbox);
	}
	status = sampling_start(state.sampling, &error);
	setpriority(PRIO_PROCESS, 0, nice);
	if (status)
		return loop_refuse(loop, &error);
	banner_start(loop, NULL, state.servers);
	return EXIT_OK;
}

static int sampled_drain(struct loop *loop)
{
	int ret = sampling_drain(state.sampling);

	loop->failed |= ret < 0;
	loop->done |= loop->failed;
	return ret > 0;
}

static int sampled_sleep(struct loop *loop)
{
	loop->sleep_ms = HELPER_MS;
	return sampling_fd(state.sampling);
}

static void sampled_running(struct loop *loop)
{
	(void)loop;
	sampling_running(state.sampling);
}

static void sampled_detach(struct loop *loop)
{
	(void)loop;
	sampling_finish(state.sampling);
}

static void sampled_summary(struct loop *loop, struct summary *summary, bool waits)
{
	(void)loop;
	*summary = (struct summary){ .statements = 0 };
	if (!waits)
		sampling_summary(state.sampling, summary);
}

static ssize_t sampled_histogram(const struct loop *loop, struct histogram_row **rows)
{
	(void)loop;
	return sampling_histogram(state.sampling, rows);
}

static void sampled_close(struct loop *loop)
{
	(void)loop;
	sampling_close(state.sampling);
}

const struct source source_sampled = {
	.open = sampled_open, .start = sampled_start, .now = source_now, .wall = source_wall,
	.drain = sampled_drain, .sleep = sampled_sleep, .running = sampled_running,
	.detach = sampled_detach, .summary = sampled_summary, .histogram = sampled_histogram,
	.lwlocks = source_no_lwlocks, .run_ns = source_no_run_ns, .close = sampled_close,
};
