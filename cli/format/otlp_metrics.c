// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/otlp_metrics.h"

#include <string.h>

#include "cli/format/json.h"
#include "cli/version.h"
#include "db/session/breakdown.h"

/* In the order of enum metrics_label. */
static const char *const attributes[METRICS_LABELS] = {
	"db.system.name", "dbslower.server", "dbslower.uid", "db.namespace", "dbslower.user",
	"db.operation.name", "dbslower.fingerprint", "dbslower.backend",
};

/* A request being written. */
struct request {
	struct output *out;
	const struct metrics_tool *tool;
	bool metric, point;		/* one was written: a comma precedes the next */
};

static void put_attribute(struct output *out, const char *before, const char *name,
			  const char *value)
{
	output_string(out, before);
	output_string(out, "{\"key\":\"");
	output_string(out, name);
	json_string(out, "\",\"value\":{\"stringValue\":\"", value);
	output_string(out, "}}");
}

/* Begin metric @name with data of the kind @kind: "sum" or "histogram". */
static void begin_metric(struct request *r, const char *name, const char *unit, const char *kind)
{
	output_printf(r->out, "%s{\"name\":\"dbslower.%s\",\"unit\":\"%s\",\"%s\":{"
		      "\"aggregationTemporality\":2,%s\"dataPoints\":[", r->metric ? "," : "", name,
		      unit, kind, *kind == 's' ? "\"isMonotonic\":true," : "");
	r->metric = true;
	r->point = false;
}

/* Begin a data point with the labels of @series, or without, and one more unless @name is NULL. */
static void begin_point(struct request *r, const struct metrics_series *series, const char *name,
			const char *value)
{
	const char *comma = "", *text;

	output_string(r->out, r->point ? ",{\"attributes\":[" : "{\"attributes\":[");
	r->point = true;
	for (int i = 0; series && i < METRICS_LABELS; i++) {
		text = metrics_label(series, (enum metrics_label)i);
		if (!*text)
			continue;
		put_attribute(r->out, comma, attributes[i], text);
		comma = ",";
	}
	if (name && value)
		put_attribute(r->out, comma, name, value);
	json_number(r->out, "],\"startTimeUnixNano\":\"", r->tool->start_ns);
	json_number(r->out, "\",\"timeUnixNano\":\"", r->tool->now_ns);
	output_char(r->out, '"');
}

/* Append the value of a data point, which it ends: an integer, or nanoseconds as seconds. */
static void put_value(struct request *r, uint64_t value, bool is_ns)
{
	output_string(r->out, is_ns ? ",\"asDouble\":" : ",\"asInt\":\"");
	if (is_ns)
		output_fixed(r->out, value, 9);
	else
		otlp_integer(r->out, value);
	output_string(r->out, is_ns ? "}" : "\"}");
}

static void put_duration(struct request *r, const struct metrics_series *series)
{
	begin_point(r, series, "db.query.text", series->text);
	json_number(r->out, ",\"count\":\"", series->count);
	output_string(r->out, "\",\"sum\":");
	output_fixed(r->out, series->sum_ns, 9);
	for (int i = 0; i <= METRICS_BOUNDS; i++)
		json_number(r->out, i ? "\",\"" : ",\"bucketCounts\":[\"", series->bucket[i]);
	for (unsigned int i = 0; i < METRICS_BOUNDS; i++) {
		output_string(r->out, i ? "," : "\"],\"explicitBounds\":[");
		output_string(r->out, metrics_bound_text(i));
	}
	output_string(r->out, "]}");
}

static void put_errors(struct request *r, const struct metrics_series *series)
{
	begin_point(r, series, NULL, NULL);
	put_value(r, series->errors, false);
}

static void put_rows(struct request *r, const struct metrics_series *series)
{
	begin_point(r, series, NULL, NULL);
	put_value(r, series->rows, false);
}

static void put_parts(struct request *r, const struct metrics_series *series)
{
	for (int i = 0; r->tool->why && i < BREAKDOWN_PARTS; i++) {
		begin_point(r, series, "dbslower.part",
			    breakdown_part_name((enum breakdown_part)i));
		put_value(r, series->part_ns[i], true);
	}
}

/* Append the metrics of the tracer. */
static void put_tool(struct request *r)
{
	const struct metrics_tool *tool = r->tool;

	begin_metric(r, "losses", "1", "sum");
	for (size_t i = 0; i < LOSSES; i++) {
		if (!loss_is_of((enum loss)i, tool->losses))
			continue;
		begin_point(r, NULL, "dbslower.cause", loss_rows[i].name);
		put_value(r, tool->summary.lost[i], false);
	}
	output_string(r->out, "]}}");
	begin_metric(r, "events", "{statement}", "sum");
	begin_point(r, NULL, NULL, NULL);
	put_value(r, tool->summary.statements, false);
	output_string(r->out, "]}}");
	begin_metric(r, "cpu.time", "s", "sum");
	begin_point(r, NULL, NULL, NULL);
	put_value(r, tool->cpu_ns, true);
	output_string(r->out, "]}}");
	if (!(tool->losses & LOSSES_OF_LIMIT))
		return;
	begin_metric(r, "untraced.time", "s", "sum");
	begin_point(r, NULL, NULL, NULL);
	put_value(r, tool->summary.untraced_ns, true);
	output_string(r->out, "]}}");
}

void otlp_metrics_put(struct otlp *otlp, const struct metrics *metrics,
		      const struct metrics_tool *tool)
{
	static const struct {
		const char *name, *unit, *kind;
		void (*put)(struct request *r, const struct metrics_series *series);
	} families[] = {
		{ "statement.duration", "s", "histogram", put_duration },
		{ "statement.errors", "{statement}", "sum", put_errors },
		{ "statement.rows", "{row}", "sum", put_rows },
		{ "statement.part", "s", "sum", put_parts },
	};
	struct request r = { .out = otlp->out, .tool = tool };

	if (!r.out)
		return;
	put_attribute(r.out, "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[",
		      "service.name", "dbslower");
	if (*otlp->host)
		put_attribute(r.out, ",", "host.name", otlp->host);
	output_printf(r.out, "]},\"scopeMetrics\":[{\"scope\":{\"name\":\"dbslower\",\"version\":"
		      "\"%.*s\"},\"metrics\":[", (int)strcspn(version_text, " "), version_text);
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		begin_metric(&r, families[i].name, families[i].unit, families[i].kind);
		for (size_t j = !metrics->series[0]->count; j < metrics->count; j++)
			if (metrics->series[j]->appended != metrics->series[j]->count)
				families[i].put(&r, metrics->series[j]);
		output_string(r.out, "]}}");
	}
	for (size_t i = 0; i < metrics->count; i++)
		metrics->series[i]->appended = metrics->series[i]->count;
	put_tool(&r);
	output_string(r.out, "]}]}]}\n");
}

int otlp_metrics_flush(struct otlp *otlp, const struct metrics *metrics)
{
	int err = otlp_flush(otlp);

	if (!err)
		return 0;
	otlp_retry(otlp);
	for (size_t i = 0; i < metrics->count; i++)
		metrics->series[i]->appended = 0;
	return err;
}
