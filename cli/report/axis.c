// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/axis.h"

#include "base/base.h"

void report_axis_set(struct report_axis *axis, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t begin = begin_ns / NS_PER_MS, end = end_ns / NS_PER_MS;

	*axis = (struct report_axis){ .count = 0 };
	if (!begin_ns)
		return;
	end = end < begin ? begin : end;
	while ((end >> axis->shift) - (begin >> axis->shift) >= REPORT_COLUMNS)
		axis->shift++;
	axis->first = begin >> axis->shift;
	axis->count = (unsigned int)((end >> axis->shift) - axis->first) + 1;
}

unsigned int report_axis_column(const struct report_axis *axis, uint64_t wall_ns)
{
	uint64_t number = wall_ns / NS_PER_MS >> axis->shift;

	if (number < axis->first)
		return 0;
	return number - axis->first < axis->count ? (unsigned int)(number - axis->first) :
						    axis->count - 1;
}

uint64_t report_axis_ms(const struct report_axis *axis, unsigned int column)
{
	return (axis->first + column) << axis->shift;
}

uint64_t report_axis_width(const struct report_axis *axis)
{
	return 1ull << axis->shift;
}

unsigned int report_row(uint64_t ns)
{
	unsigned int log = ns ? 63 - (unsigned int)__builtin_clzll(ns) : 0;

	if (log < REPORT_ROW_LOG)
		return 0;
	return log - REPORT_ROW_LOG < REPORT_ROWS ? log - REPORT_ROW_LOG : REPORT_ROWS - 1;
}
