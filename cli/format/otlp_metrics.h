/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Metrics of OpenTelemetry: one OTLP/JSON ExportMetricsServiceRequest a line. The duration is that
 * in the server, not db.client.operation.duration of the semantic conventions, which includes the
 * network. Attributes have the names of the conventions.
 */
#ifndef CLI_FORMAT_OTLP_METRICS_H
#define CLI_FORMAT_OTLP_METRICS_H

#include "cli/format/openmetrics.h"
#include "cli/format/otlp.h"

/*
 * Append a line: the metrics of the tracer, and of the series that have counted since the last one,
 * as points are cumulative. Do nothing if @otlp has no output.
 */
void otlp_metrics_put(struct otlp *otlp, const struct metrics *metrics,
		      const struct metrics_tool *tool);

/* Call otlp_flush() and return its result; after an error, the next line has all series. */
int otlp_metrics_flush(struct otlp *otlp, const struct metrics *metrics);

#endif
