// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/chart.h"

#include <stdio.h>

#include "cli/format/json.h"
#include "cli/format/short.h"
#include "cli/report/svg.h"
#include "db/session/breakdown.h"

#define ROW_HEIGHT	11
#define LEVELS		9		/* of the heat map, classes h1 to h9 */
#define LOAD_HEIGHT	180
#define TOP		6
#define SPARK_WIDTH	REPORT_COLUMNS
#define SPARK_HEIGHT	32

struct view {
	unsigned int count;
	const struct report_column *columns;
};

static struct view view_of(const struct report *r)
{
	return (struct view){ r->axis.count, r->columns };
}

static unsigned int view_x(const struct view *view, unsigned int i)
{
	return SVG_LEFT + i * SVG_WIDTH / view->count;
}

static void view_axis(const struct report *r, struct output *out, unsigned int height)
{
	struct view view = view_of(r);

	svg_time_axis(out, &(struct svg_time){
		.from = report_axis_ms(&r->axis, 0),
		.to = report_axis_ms(&r->axis, view.count),
		.x = SVG_LEFT, .width = SVG_WIDTH, .top = TOP, .bottom = TOP + height,
	});
}

const char *report_part_name(unsigned int part)
{
	return part < BREAKDOWN_PARTS ? breakdown_part_name((enum breakdown_part)part) :
					"unknown";
}

void report_time(struct output *out, uint64_t wall_ns, bool date)
{
	char text[JSON_TIME];

	json_time_text(text, wall_ns);
	text[10] = ' ';
	output_bytes(out, text + (date ? 0 : 11), date ? 19 : 12);
}

void report_duration(struct output *out, uint64_t ns)
{
	char text[SHORT_TEXT];

	output_string(out, short_duration(text, ns));
}

/* The heat map */

/* Return the logarithm of @n > 0 in sixteenths, approximately. */
static unsigned int log_of(uint64_t n)
{
	unsigned int bits = 63 - (unsigned int)__builtin_clzll(n);

	return bits * 16 + (unsigned int)((bits < 4 ? n << (4 - bits) : n >> (bits - 4)) & 15);
}

/* Return the level of a cell: 0 if it is empty. */
static unsigned int level_of(uint32_t count, uint32_t most)
{
	return !count ? 0 : most < 2 ? LEVELS : 1 + (LEVELS - 1) * log_of(count) / log_of(most);
}

struct rows {
	unsigned int first, last;	/* that are drawn */
	uint32_t most;			/* the largest count of a cell */
};

static struct rows used_rows(const struct view *view)
{
	struct rows rows = { REPORT_ROWS - 1, 0, 0 };

	for (unsigned int i = 0; i < view->count; i++) {
		for (unsigned int row = 0; row < REPORT_ROWS; row++) {
			uint32_t count = view->columns[i].cells[row];

			if (!count)
				continue;
			rows.first = row < rows.first ? row : rows.first;
			rows.last = row > rows.last ? row : rows.last;
			rows.most = count > rows.most ? count : rows.most;
		}
	}
	/* Some rows more, for the labels. */
	rows.first = rows.first < 2 || !rows.most ? 0 : rows.first - 2;
	rows.last = rows.last + 2 < REPORT_ROWS ? rows.last + 2 : REPORT_ROWS - 1;
	return rows;
}

static unsigned int row_y(const struct rows *rows, unsigned int row)
{
	return TOP + (rows->last - row) * ROW_HEIGHT;
}

/* Append the cells of a level in a row; adjacent ones are one rectangle. */
static void heat_row(struct output *out, const struct view *view, const struct rows *rows,
		     unsigned int row, unsigned int level)
{
	for (unsigned int i = 0, end; i < view->count; i = end + 1) {
		for (end = i; end < view->count; end++)
			if (level_of(view->columns[end].cells[row], rows->most) != level)
				break;
		if (end == i)
			continue;
		output_printf(out, "M%u %uH%uv%uH%uz", view_x(view, i), row_y(rows, row),
			      view_x(view, end), ROW_HEIGHT, view_x(view, i));
	}
}

/* Append lines at the powers of ten: log2(10) is 3.3219. */
static void heat_grid(struct output *out, const struct rows *rows)
{
	uint64_t ns = 1000;
	char text[SHORT_TEXT];

	for (unsigned int power = 3; power < 13; power++, ns *= 10) {
		unsigned int at = power * 33219 * ROW_HEIGHT / 10000;
		unsigned int low = (rows->first + REPORT_ROW_LOG) * ROW_HEIGHT;
		unsigned int high = (rows->last + 1 + REPORT_ROW_LOG) * ROW_HEIGHT;

		if (at < low || at > high)
			continue;
		svg_line(out, "g", (unsigned int[]){ SVG_LEFT, TOP + high - at },
			 (unsigned int[]){ SVG_LEFT + SVG_WIDTH, TOP + high - at });
		svg_text(out, "yl", SVG_LEFT - 6, TOP + high - at + 4, short_duration(text, ns));
	}
}

/* Append a mark of each column with errors, above the map. */
static void heat_errors(struct output *out, const struct view *view)
{
	output_string(out, "<path class=\"er\" d=\"");
	for (unsigned int i = 0; i < view->count; i++)
		if (view->columns[i].errors)
			output_printf(out, "M%u 0H%uv5H%uz", view_x(view, i), view_x(view, i + 1),
				      view_x(view, i));
	svg_path_end(out);
}

void report_heat(const struct report *r, struct output *out)
{
	struct view view = view_of(r);
	struct rows rows = used_rows(&view);
	unsigned int height = (rows.last - rows.first + 1) * ROW_HEIGHT;
	char class[] = "h0";

	svg_open(out, "heat", SVG_FULL, height + TOP + 20,
		 "Heat map: number of statements by the time they ended, and by duration. The "
		 "table of intervals has the numbers.");
	heat_errors(out, &view);
	for (unsigned int level = 1; level <= LEVELS; level++) {
		class[1] = (char)('0' + level);
		output_printf(out, "<path class=\"%s\" d=\"", class);
		for (unsigned int row = rows.first; row <= rows.last; row++)
			heat_row(out, &view, &rows, row, level);
		svg_path_end(out);
	}
	heat_grid(out, &rows);
	view_axis(r, out, height);
	output_printf(out, "<rect class=\"sel\" x=\"%u\" y=\"%u\" width=\"0\" height=\"%u\"/>",
		      SVG_LEFT, TOP, height);
	svg_close(out);
	output_printf(out, "<p class=\"note\">1 <span class=\"scale\"></span> %u statements; above "
		      "the map: <b class=\"bad\">failures</b></p>\n", rows.most);
}

/* The load */

static uint64_t column_sum(const struct report_column *column)
{
	uint64_t sum = 0;

	for (int i = 0; i < REPORT_PARTS; i++)
		sum += column->part_ns[i];
	return sum;
}

/* Append the area between two lines, which are steps of the columns. */
static void load_area(struct output *out, const struct view *view, unsigned int part,
		      const uint16_t *low, const uint16_t *high)
{
	char class[32];

	snprintf(class, sizeof(class), "p-%s", report_part_name(part));
	svg_path(out, class, SVG_LEFT, low[0]);
	for (unsigned int i = 0; i < view->count; i++) {
		if (i && high[i] == high[i - 1])
			continue;
		if (i)
			svg_path_to(out, 'H', view_x(view, i));
		svg_path_to(out, 'V', high[i]);
	}
	svg_path_to(out, 'H', SVG_LEFT + SVG_WIDTH);
	for (unsigned int i = view->count; i--;) {
		if (i + 1 < view->count && low[i] == low[i + 1])
			continue;
		if (i + 1 < view->count)
			svg_path_to(out, 'H', view_x(view, i + 1));
		svg_path_to(out, 'V', low[i]);
	}
	output_printf(out, "z\"><title>%s</title></path>", report_part_name(part));
}

static void load_areas(struct output *out, const struct view *view, uint64_t most)
{
	uint16_t lines[2][REPORT_COLUMNS];
	uint64_t sums[REPORT_COLUMNS] = { 0 };
	unsigned int bottom = TOP + LOAD_HEIGHT;

	for (unsigned int i = 0; i < view->count; i++)
		lines[0][i] = (uint16_t)bottom;
	for (unsigned int part = 0; part < REPORT_PARTS; part++) {
		const uint16_t *low = lines[part & 1];
		uint16_t *high = lines[!(part & 1)];
		bool any = false;

		for (unsigned int i = 0; i < view->count; i++) {
			double share;

			sums[i] += view->columns[i].part_ns[part];
			share = (double)sums[i] / (double)most;
			share = share < 1 ? share : 1;
			high[i] = (uint16_t)(bottom - (unsigned int)(share * LOAD_HEIGHT));
			any |= high[i] != low[i];
		}
		if (any)
			load_area(out, view, part, low, high);
	}
}

/* Return the least of 1, 2, 5, 10, 20, .. that is at least a fifth of @most. */
static uint64_t load_step(uint64_t most)
{
	uint64_t step = 1;

	for (int i = 0; most / 5 + !!(most % 5) > step; i++)
		step = i % 3 == 1 ? step / 2 * 5 : step * 2;
	return step;
}

void report_load(const struct report *r, struct output *out)
{
	struct view view = view_of(r);
	/* ns of the part / us of the column: thousandths. */
	uint64_t most = 1, step, width_us = report_axis_width(&r->axis) * 1000;
	char text[SHORT_TEXT];

	for (unsigned int i = 0; i < view.count; i++)
		most = column_sum(&view.columns[i]) > most ? column_sum(&view.columns[i]) : most;
	most = most / width_us + 1;
	step = load_step(most);
	most = (most + step - 1) / step * step;
	svg_open(out, "load", SVG_FULL, LOAD_HEIGHT + TOP + 20,
		 "Load: statements that ran at the same time, on average, by what they did.");
	load_areas(out, &view, most * width_us);
	for (uint64_t at = 0; at <= most; at += step) {
		unsigned int y = TOP + LOAD_HEIGHT - (unsigned int)(at * LOAD_HEIGHT / most);

		svg_line(out, "g", (unsigned int[]){ SVG_LEFT, y },
			 (unsigned int[]){ SVG_LEFT + SVG_WIDTH, y });
		svg_text(out, "yl", SVG_LEFT - 6, y + 4, at % 1000 ? short_number(text, at) :
			 short_count(text, at / 1000));
	}
	view_axis(r, out, LOAD_HEIGHT);
	output_printf(out, "<rect class=\"sel\" x=\"%u\" y=\"%u\" width=\"0\" height=\"%u\"/>",
		      SVG_LEFT, TOP, LOAD_HEIGHT);
	svg_close(out);
}

static unsigned int permille(uint64_t part, uint64_t all)
{
	double share = all ? (double)part / (double)all : 0;

	return (unsigned int)((share < 1 ? share : 1) * 1000);
}

void report_legend(const struct report *r, struct output *out, uint64_t total_ns)
{
	uint64_t sums[REPORT_PARTS] = { 0 };

	for (unsigned int i = 0; i < REPORT_COLUMNS; i++)
		for (unsigned int part = 0; part < REPORT_PARTS; part++)
			sums[part] += r->columns[i].part_ns[part];
	output_string(out, "<ul class=\"legend\">");
	for (unsigned int part = 0; part < REPORT_PARTS; part++) {
		if (!sums[part])
			continue;
		output_printf(out, "<li data-part=\"%u\"><svg viewBox=\"0 0 10 10\" "
			      "aria-hidden=\"true\"><rect "
			      "class=\"p-%s\" width=\"10\" height=\"10\"/></svg>%s <b>",
			      part, report_part_name(part), report_part_name(part));
		report_duration(out, sums[part]);
		output_string(out, "</b> <i>");
		output_fixed(out, permille(sums[part], total_ns), 1);
		output_string(out, "%</i></li>");
	}
	output_string(out, "</ul>\n");
}

/* In tables */

void report_bar(struct output *out, const __u64 ns[BREAKDOWN_PARTS])
{
	uint64_t total = 0, before = 0;
	unsigned int x = 0, end;
	bool first = true;

	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		total += ns[i];
	output_string(out, "<svg class=\"bar\" viewBox=\"0 0 1000 10\" "
		      "preserveAspectRatio=\"none\" "
		      "role=\"img\" aria-label=\"");
	for (unsigned int i = 0; i < BREAKDOWN_PARTS; i++) {
		if (permille(ns[i], total) < 5)
			continue;
		output_printf(out, "%s%s %u%%", first ? "" : ", ", report_part_name(i),
			      (permille(ns[i], total) + 5) / 10);
		first = false;
	}
	output_string(out, first ? "nothing\">" : "\">");
	for (unsigned int i = 0; i < BREAKDOWN_PARTS; i++, x = end) {
		before += ns[i];
		end = permille(before, total);
		if (end <= x) {
			end = x;
			continue;
		}
		output_printf(out, "<rect class=\"p-%s\" x=\"%u\" width=\"%u\" height=\"10\">"
			      "<title>%s %u%%</title></rect>", report_part_name(i), x, end - x,
			      report_part_name(i), (end - x + 5) / 10);
	}
	output_string(out, "</svg>");
}

/* Calls of a group in each column. */
struct series {
	uint64_t calls[REPORT_COLUMNS], mean[REPORT_COLUMNS];
};

static unsigned int spark_y(uint64_t value, uint64_t most)
{
	unsigned int height = (unsigned int)((double)value / (double)most * (SPARK_HEIGHT - 2));

	return SPARK_HEIGHT - (value && !height ? 1 : height);
}

/* Append the columns of calls as an area. */
static void spark_calls(struct output *out, const struct series *series, unsigned int count,
			uint64_t most)
{
	unsigned int before = SPARK_HEIGHT;

	svg_path(out, "sc", 0, SPARK_HEIGHT);
	for (unsigned int i = 0; i < count; i++) {
		unsigned int y = spark_y(series->calls[i], most);

		if (y == before)
			continue;
		svg_path_to(out, 'H', i * SPARK_WIDTH / count);
		svg_path_to(out, 'V', y);
		before = y;
	}
	svg_path_to(out, 'H', SPARK_WIDTH);
	svg_path_to(out, 'V', SPARK_HEIGHT);
	svg_path_end(out);
}

void report_sparkline(const struct report *r, struct output *out, size_t group)
{
	unsigned int count = r->axis.count;
	struct series series = { .calls = { 0 } };
	uint64_t calls = 1, mean = 1;
	char text[SHORT_TEXT];

	for (unsigned int i = 0; i < count; i++) {
		const struct top_entry *e = r->calls[i] ? top_find(r->calls[i], "", group) : NULL;

		if (!e)
			continue;
		series.calls[i] = e->calls;
		series.mean[i] = e->total_ns / e->calls;
		calls = series.calls[i] > calls ? series.calls[i] : calls;
		mean = series.mean[i] > mean ? series.mean[i] : mean;
	}
	output_printf(out, "<svg class=\"spark\" viewBox=\"0 0 %u %u\" "
		      "preserveAspectRatio=\"none\" "
		      "role=\"img\" aria-label=\"calls, at most %llu in an interval, and their "
		      "mean, "
		      "at most %s\">", SPARK_WIDTH, SPARK_HEIGHT, (unsigned long long)calls,
		      short_duration(text, mean));
	spark_calls(out, &series, count, calls);
	output_string(out, "<path class=\"sm\" d=\"");
	for (unsigned int i = 0; i < count; i++)
		if (series.calls[i])
			output_printf(out, "M%u %uh%u", i * SPARK_WIDTH / count,
				      spark_y(series.mean[i], mean), SPARK_WIDTH / count + 1);
	svg_path_end(out);
	output_printf(out, "<rect class=\"sel\" width=\"0\" height=\"%u\"/></svg>", SPARK_HEIGHT);
}
