// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/top/table.h"

#include <string.h>
#include <time.h>

#include "cli/format/breakdown.h"
#include "cli/format/escape.h"
#include "cli/format/field_json.h"
#include "cli/format/histogram.h"
#include "cli/format/json.h"
#include "cli/format/line.h"
#include "host/clock.h"

#define RUNNING_NS	1000000000u	/* running statements of this duration are listed */
#define TEXT_MIN	20		/* columns of the text at least */

/* The columns before the text; durations are in ms with 3 decimals. */
static const struct column {
	char header[10];
	uint8_t width;
	uint8_t rank;			/* of importance; 0 is always shown */
	uint8_t order;			/* enum top_order: the value */
	bool is_count;
} columns[] = {
	{ "CALLS", 8, 0, TOP_CALLS, true }, { "TOTAL(ms)", 13, 1, TOP_TOTAL, false },
	{ "MEAN(ms)", 10, 2, TOP_MEAN, false }, { "P95(ms)", 10, 4, TOP_P95, false },
	{ "P99(ms)", 10, 7, TOP_P99, false }, { "MAX(ms)", 10, 3, TOP_MAX, false },
	{ "ROWS", 10, 6, TOP_ROWS, true }, { "ERR", 5, 5, TOP_ERRORS, true },
};

#define COLUMNS	(sizeof(columns) / sizeof(columns[0]))

/* Choose the columns that leave room for the text, by importance. */
static void table_fit(struct top_table *table)
{
	unsigned int used = 1;

	table->columns = 0;
	for (size_t rank = 0; rank < COLUMNS; rank++)
		for (size_t i = 0; i < COLUMNS; i++) {
			if (columns[i].rank != rank)
				continue;
			used += columns[i].width;
			if (rank && table->width && used + TEXT_MIN > table->width)
				return;
			table->columns |= 1u << i;
		}
}

static struct line table_line(struct top_table *table)
{
	return (struct line){ .out = table->out,
			      .width = table->width ? table->width : SIZE_MAX };
}

static void table_head(struct top_table *table)
{
	struct line line = table_line(table);

	for (size_t i = 0; i < COLUMNS; i++)
		if (table->columns & 1u << i)
			line_printf(&line, "%*s", columns[i].width, columns[i].header);
	line_text(&line, " QUERY");
	output_char(line.out, '\n');
}

static void table_row(struct top_table *table, const struct top_entry *entry, const char *text)
{
	struct line line = table_line(table);
	char number[OUTPUT_NUMBER];

	for (size_t i = 0; i < COLUMNS; i++) {
		uint64_t value = top_value(entry, (enum top_order)columns[i].order);
		size_t len = columns[i].is_count ? output_format(number, value, 0) :
						   output_format(number, value / 1000, 3);

		if (table->columns & 1u << i)
			line_printf(&line, "%*.*s", columns[i].width, (int)len, number);
	}
	line_text(&line, entry->nested ? " > " : " ");
	line_name(&line, *text ? text : "[no text]");
	output_char(line.out, '\n');
}

/* Print the time breakdown of the group in lines of its own. */
static void table_why(struct top_table *table, const struct top_entry *entry)
{
	struct output *out = table->out;
	const struct options *options = table->options;
	const struct top_why *why = entry->why;

	if (!options->why && !options->use)
		return;
	if (!why) {
		output_string(out, "    not known\n");
		return;
	}
	breakdown_parts_text(out, why->ns, table->width);
	output_char(out, '\n');
	if (options->use)
		breakdown_use_text(out, why->used, why->use, table->width);
}

static void table_why_json(struct output *out, const struct top_why *why)
{
	json_number(out, ",\"why_calls\":", why->calls);
	output_string(out, ",\"why_ms\":");
	breakdown_parts_json(out, why->ns);
	if (!why->used)
		return;
	output_string(out, ",\"use\":");
	breakdown_use_json(out, why->used, why->use);
}

static void table_buckets(struct output *out, const struct top_entry *entry)
{
	struct histogram_slots slots = { .negative = 0 };

	top_slots(entry, slots.count);
	histogram_buckets(out, &slots, 1);
}

static void table_json(struct top_table *table, const struct top_entry *entry)
{
	struct output *out = table->out;
	static const struct {
		const char *key;
		unsigned int permille;
	} percentiles[] = { { ",\"p50_ms\":", 500 }, { ",\"p95_ms\":", 950 },
		{ ",\"p99_ms\":", 990 } };
	struct server server;

	if (entry->engine)
		server = server_set_common(table->servers, entry->engine);
	json_head(out, entry->engine ? "{\"type\":\"group\",\"time\":\"" :
				       "{\"type\":\"other\",\"time\":\"",
		  table->wall_ns, entry->engine ? &server : NULL);
	json_number(out, ",\"interval\":", table->interval);
	if (entry->engine)
		output_printf(out, ",\"hash\":\"%016llx\"", (unsigned long long)entry->hash);
	if (entry->nested)
		output_string(out, ",\"nested\":true");
	json_string(out, ",\"database\":\"", entry->database);
	json_number(out, ",\"calls\":", entry->calls);
	json_number(out, ",\"errors\":", entry->errors);
	json_number(out, ",\"rows\":", entry->rows);
	json_ms(out, ",\"total_ms\":", entry->total_ns);
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++)
		json_ms(out, percentiles[i].key, top_percentile(entry, percentiles[i].permille));
	json_ms(out, ",\"min_ms\":", entry->min_ns);
	json_ms(out, ",\"max_ms\":", entry->max_ns);
	table_buckets(out, entry);
	if (entry->why)
		table_why_json(out, entry->why);
	if (!entry->engine)
		json_number(out, ",\"fingerprints\":", table->folded);
	json_string(out, ",\"fingerprint\":\"", entry->fingerprint);
	if (entry->sample) {
		output_string(out, ",\"sample\":\"");
		escape_json(out, entry->sample, entry->sample_len, entry->sample_cut);
		output_char(out, '"');
	}
	output_string(out, "}\n");
}

size_t top_table_lines(const struct top_table *table)
{
	const struct options *options = table->options;
	size_t each = options->use ? 3 : options->why ? 2 : 1;

	if (table->limit)
		return table->limit;
	return table->height > 8 ? (table->height - 6) / each : 20;
}

/* Print the time of day, and the time that the table covers. */
static void table_time(struct top_table *table, uint64_t span_ns)
{
	struct line line = table_line(table);
	char clock[OUTPUT_NUMBER], span[OUTPUT_NUMBER];
	size_t len = output_clock(clock, table->wall_ns, 3);
	size_t digits = output_format(span, span_ns / 1000000, 3);

	line_printf(&line, "%.*s, %s%.*s s%s", (int)len, clock,
		    table->delta ? "last " : "", (int)digits, span,
		    table->delta ? "" : " since the start");
	output_char(line.out, '\n');
}

void top_table_begin(struct top_table *table, uint64_t span_ns)
{
	table->running = 0;
	if (table->options->json)
		return;
	table_fit(table);
	table_time(table, span_ns);
	table_head(table);
}

void top_table_group(struct top_table *table, const struct top_entry *entry, const char *text)
{
	if (table->options->json) {
		table_json(table, entry);
	} else {
		table_row(table, entry, text);
		table_why(table, entry);
	}
}

void top_table_running(struct top_table *table, const struct statement *statement)
{
	struct output *out = table->out;
	struct line line = table_line(table);
	char number[OUTPUT_NUMBER];
	size_t len;

	if (statement->duration_ns < RUNNING_NS)
		return;
	if (table->options->json) {
		field_json(out, statement);
		return;
	}
	if (!table->running++)
		output_printf(out, "%8s %12s %s\n", "PID", "RUNNING(ms)", "QUERY");
	len = output_format(number, statement->duration_ns / 1000, 3);
	line_printf(&line, "%8u %12.*s ", statement->who->pid, (int)len, number);
	if (statement->text)
		line_foreign(&line, statement->text, statement->text_len, statement->truncated,
			     SIZE_MAX);
	else
		line_text(&line, "-");
	output_char(out, '\n');
}
