// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/export.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cli/format/otlp_metrics.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "host/clock.h"
#include "host/open.h"
#include "loader/owners.h"

#define INTERVAL_NS	15000000000u	/* default of -i */

static struct {
	const char *openmetrics, *otlp_metrics;	/* files, "-": the standard output */
} own;

bool export_is_wanted(void)
{
	return own.openmetrics || own.otlp_metrics;
}

bool export_conflicts(int others)
{
	int outputs = output_is_standard(own.openmetrics) + output_is_standard(own.otlp_metrics);

	return outputs && outputs + others > 1;
}

static void export_time(struct export *export)
{
	const struct loop *loop = export->loop;
	uint64_t interval_ns = loop->options.interval_ns;

	export->tool.start_ns = loop_wall(loop);
	/* The first exposition shows at once whether the file can be written. */
	export->next_ns = !export->once ? 0 : interval_ns ? loop_now(loop) + interval_ns :
							    UINT64_MAX;
}

void export_begin(struct export *export)
{
	if (!export->loop || !export->loop->host)
		return;
	export_time(export);
	otlp_host(&export->otlp, export->loop->host);
}

int export_open(struct export *export, struct loop *loop)
{
	const struct options *options = &loop->options;
	const char *path = own.openmetrics;
	struct error error = { .kind = ERROR_NONE };
	int err = 0;

	export->dir = -1;
	if (!path && !own.otlp_metrics)
		return EXIT_OK;
	export->loop = loop;
	if (metrics_open(&export->metrics))
		return message_no_memory();
	export->once = output_is_standard(path);
	export->standard = export->once || output_is_standard(own.otlp_metrics);
	export->tool.path = path ? path : own.otlp_metrics;
	export_time(export);
	export->tool.losses = loop_losses(loop);
	export->interval_ns = options->interval_ns ? options->interval_ns : INTERVAL_NS;
	if (path && !export->once) {
		export->dir = open_parent(path);
		err = export->dir < 0 ? export->dir : openmetrics_check(export->dir, path);
	}
	if (!err) {
		path = own.otlp_metrics;
		err = otlp_open(&export->otlp, path, &loop->out);
	}
	if (!err)
		return EXIT_OK;
	error_set(&error, ERROR_OUTPUT, err, path, NULL);
	return loop_refuse(loop, &error);
}

void export_config(const struct export *export, struct tracer_config *config)
{
	if (!export->loop)
		return;
	config->sink.records = config->identify = config->rows = true;
	config->measure = true;
	config->needs |= export->dir >= 0 ? SANDBOX_REPLACE : 0;
}

bool export_statement(struct export *export, const struct statement *statement, uint64_t hash,
		      const char *fingerprint)
{
	if (export->loop && !statement->running && !statement->prepare && !statement->level)
		metrics_add(&export->metrics, statement, hash, fingerprint);
	export->tool.running += export->counting && statement->running;
	return export->counting;
}

/* Collect what is known of the tracer. */
static void export_collect(struct export *export)
{
	struct loop *loop = export->loop;
	struct metrics_tool *tool = &export->tool;
	uint64_t bpf_ns;

	tool->running = 0;
	export->counting = true;
	tracing_running(loop);
	export->counting = false;
	tool->why = loop->options.why;
	tool->now_ns = loop_wall(loop);
	tool->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	/* While it is not known, it is that of the last time: a counter does not decrease. */
	if (!export->loop->source->run_ns(export->loop, &bpf_ns)) {
		tool->has_bpf = true;
		tool->bpf_ns = bpf_ns;
	}
	tracing_summary(loop, &tool->summary);
}

/* Keep the first error of a write, of the file @path. */
static void export_fail(struct export *export, int err, const char *path)
{
	if (!err || export->error)
		return;
	export->error = err;
	export->failed = path;
}

/* Report each limit once. */
static void export_warn(struct export *export)
{
	struct output *err = &export->loop->err;
	unsigned int limits = export->metrics.limited & ~export->warned;

	if (limits & METRICS_LIMIT_USER)
		output_printf(err, "dbslower: metrics: limit of %d label sets of one user reached; "
			      "its further ones are counted without labels\n",
			      OWNER_SHARE(METRICS_SERIES));
	if (limits & METRICS_LIMIT_ALL)
		output_printf(err, "dbslower: metrics: limit of %d label sets of all users "
			      "reached; further ones are counted without labels\n", METRICS_SERIES);
	export->warned |= limits;
	output_flush(err);
}

/* Write the counts. On standard output, flushing is the loop's. */
static void export_write(struct export *export)
{
	struct loop *loop = export->loop;

	export->error = 0;
	export_collect(export);
	if (!export->written)
		otlp_stoppable(&export->otlp, loop->stop);
	if (export->once && !export->written)
		openmetrics_put(&loop->out, &export->metrics, &export->tool);
	else if (export->dir >= 0)
		export_fail(export, openmetrics_replace(export->dir, own.openmetrics,
							&export->scratch, &export->metrics,
							&export->tool), own.openmetrics);
	export->written = true;
	otlp_metrics_put(&export->otlp, &export->metrics, &export->tool);
	if (!output_is_standard(own.otlp_metrics))
		export_fail(export, otlp_metrics_flush(&export->otlp, &export->metrics),
			    own.otlp_metrics);
	export_warn(export);
}

void export_tick(struct export *export)
{
	struct loop *loop = export->loop ? export->loop : NULL;
	uint64_t now = loop ? loop_now(loop) : 0;
	bool failing = export->error;

	if (!loop)
		return;
	loop_wake(loop, export->next_ns);
	if (now < export->next_ns)
		return;
	export->next_ns = now + export->interval_ns;
	loop_wake(loop, export->next_ns);
	export_write(export);
	if (!export->error)
		export->succeeded = true;
	else if (!export->succeeded)
		loop->failed = true;
	else if (!failing)
		message_unwritten(&loop->err, export->failed, export->error);
	loop->done |= loop->failed || export->once;
}

int export_finish(struct export *export)
{
	if (!export->loop)
		return EXIT_OK;
	if ((!export->error || export->succeeded) && !(export->once && export->written))
		export_write(export);
	if (!export->error)
		return EXIT_OK;
	return message_unwritten(&export->loop->err, export->failed, export->error);
}

void export_close(struct export *export)
{
	if (!export->loop)
		return;
	metrics_close(&export->metrics);
	otlp_close(&export->otlp);
	if (export->dir >= 0)
		close(export->dir);
}

const struct option_row option_openmetrics = {
	.name = "openmetrics", .arg = "FILE",
	.help = "replace this file by metrics every -i (default 15 s)",
	.accepts = "expected a file, such as dbslower.prom, or - for the standard output",
	.set = option_set_word, .complete = option_complete_files, OPTION_OWN(own.openmetrics),
};

const struct option_row option_otlp_metrics = {
	.name = "otlp-metrics", .arg = "FILE",
	.help = "append OpenTelemetry metrics to this file every -i",
	.accepts = "expected a file, or - for the standard output",
	.set = option_set_word, .complete = option_complete_files, OPTION_OWN(own.otlp_metrics),
};
