/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Metrics of OpenTelemetry: one OTLP/JSON ExportMetricsServiceRequest a line. The duration is that
 * in the server, not db.client.operation.duration of the semantic conventions, which includes the
 * network. Attributes have the names of the conventions.
 */
#ifndef CLI_OTLP_METRICS_H
#define CLI_OTLP_METRICS_H

#include "cli/openmetrics.h"
#include "cli/otlp.h"

/* Append the line of all metrics. Do nothing if @otlp has no output. */
void otlp_metrics_put(struct otlp *otlp, const struct metrics *metrics,
		      const struct metrics_tool *tool);

#endif
