// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/axis.h"

#include <string.h>

#include "base/base.h"

bool report_axis_include(struct report_axis *axis, uint64_t wall_ns)
{
	uint64_t ms = wall_ns / NS_PER_MS, first;
	struct report_axis old = *axis;

	if (!axis->set)
		*axis = (struct report_axis){ .set = true, .first = ms, .lo_ms = ms, .hi_ms = ms };
	axis->lo_ms = ms < axis->lo_ms ? ms : axis->lo_ms;
	axis->hi_ms = ms > axis->hi_ms ? ms : axis->hi_ms;
	while ((axis->hi_ms >> axis->shift) - (axis->lo_ms >> axis->shift) >= REPORT_COLUMNS)
		axis->shift++;
	first = old.first >> (axis->shift - old.shift);
	/* Leave all room on the side where it was missing, so that this is seldom repeated. */
	if (axis->lo_ms >> axis->shift < first) {
		first = axis->hi_ms >> axis->shift;
		first -= first < REPORT_COLUMNS ? first : REPORT_COLUMNS - 1;
	}
	if (!old.set || (axis->hi_ms >> axis->shift) - first >= REPORT_COLUMNS)
		first = axis->lo_ms >> axis->shift;
	axis->first = first;
	return old.set && (axis->shift != old.shift || axis->first != old.first);
}

unsigned int report_axis_column(const struct report_axis *axis, uint64_t wall_ns)
{
	uint64_t number = wall_ns / NS_PER_MS >> axis->shift;
	unsigned int last = report_axis_begin(axis) + report_axis_count(axis) - 1;

	if (number < axis->lo_ms >> axis->shift)
		return report_axis_begin(axis);
	return number - axis->first > last ? last : (unsigned int)(number - axis->first);
}

unsigned int report_axis_begin(const struct report_axis *axis)
{
	return (unsigned int)((axis->lo_ms >> axis->shift) - axis->first);
}

unsigned int report_axis_count(const struct report_axis *axis)
{
	return (unsigned int)((axis->hi_ms >> axis->shift) - (axis->lo_ms >> axis->shift)) + 1;
}

uint64_t report_axis_ms(const struct report_axis *axis, unsigned int column)
{
	return (axis->first + column) << axis->shift;
}

uint64_t report_axis_width(const struct report_axis *axis)
{
	return 1ull << axis->shift;
}

unsigned int report_axis_map(const struct report_axis *from, const struct report_axis *to,
			     unsigned int i)
{
	uint64_t number = (from->first + i) >> (to->shift - from->shift);

	/* Columns of no time that was seen may be outside; they are empty. */
	if (number < to->first)
		return 0;
	return number - to->first < REPORT_COLUMNS ? (unsigned int)(number - to->first) :
						     REPORT_COLUMNS - 1;
}

void report_columns_map(struct report_column *to, const struct report_column *from,
			const struct report_axis *old, const struct report_axis *axis)
{
	for (unsigned int i = 0; i < REPORT_COLUMNS; i++) {
		struct report_column *sum = &to[report_axis_map(old, axis, i)];
		const struct report_column *one = &from[i];

		for (int row = 0; row < REPORT_ROWS; row++)
			sum->cells[row] += one->cells[row];
		for (int part = 0; part < REPORT_PARTS; part++)
			sum->part_ns[part] += one->part_ns[part];
		sum->calls += one->calls;
		sum->errors += one->errors;
		sum->total_ns += one->total_ns;
		sum->max_ns = one->max_ns > sum->max_ns ? one->max_ns : sum->max_ns;
	}
}

void report_series_fit(struct report_series *series, const struct report_axis *axis)
{
	struct report_series old = *series;

	series->axis = *axis;
	if (!old.axis.set || (old.axis.shift == axis->shift && old.axis.first == axis->first))
		return;
	memset(series->calls, 0, sizeof(series->calls));
	memset(series->ns, 0, sizeof(series->ns));
	for (unsigned int i = 0; i < REPORT_COLUMNS; i++) {
		unsigned int at = report_axis_map(&old.axis, axis, i);

		series->calls[at] += old.calls[i];
		series->ns[at] += old.ns[i];
	}
}

unsigned int report_row(uint64_t ns)
{
	unsigned int log = ns ? 63 - (unsigned int)__builtin_clzll(ns) : 0;

	if (log < REPORT_ROW_LOG)
		return 0;
	return log - REPORT_ROW_LOG < REPORT_ROWS ? log - REPORT_ROW_LOG : REPORT_ROWS - 1;
}
