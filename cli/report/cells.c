// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/cells.h"

#define BASE		36
#define BUCKETS_SHOWN	250000		/* of all cells: about 1.2 MB */
#define SHIFT_MAX	4		/* a bucket for each power of two */

static void number(struct output *out, uint64_t value)
{
	char digits[16];
	unsigned int at = sizeof(digits);

	digits[--at] = ' ';
	do {
		digits[--at] = "0123456789abcdefghijklmnopqrstuvwxyz"[value % BASE];
		value /= BASE;
	} while (value);
	output_bytes(out, digits + at, sizeof(digits) - at);
}

size_t report_group(const struct report *r, const char *engine, uint64_t hash)
{
	for (size_t i = 0; i < r->shown; i++)
		if (r->sorted[i]->hash == hash && r->sorted[i]->engine == engine)
			return i;
	return REPORT_GROUPS;
}

static unsigned int bucket_of(const struct top_entry *e, unsigned int i)
{
	return (unsigned int)(e->histogram.bucket[i] >> TOP_COUNT_BITS);
}

/* Return the number of buckets of @e that are left when @shift bits are left out. */
static size_t buckets_of(const struct top_entry *e, unsigned int shift)
{
	size_t count = 0;

	for (unsigned int i = 0; i < e->histogram.count; i++)
		count += !i || bucket_of(e, i) >> shift != bucket_of(e, i - 1) >> shift;
	return count;
}

unsigned int report_cells_shift(const struct report *r)
{
	unsigned int shift = 0;

	for (size_t count = SIZE_MAX; shift < SHIFT_MAX; shift++) {
		count = 0;
		for (unsigned int i = 0; i < REPORT_COLUMNS; i++)
			for (size_t group = 0; r->calls[i] && group <= REPORT_GROUPS; group++) {
				const struct top_entry *e = top_find(r->calls[i], "", group);

				count += e ? buckets_of(e, shift) : 0;
			}
		if (count <= BUCKETS_SHOWN)
			break;
	}
	return shift;
}

static void buckets(struct output *out, const struct top_entry *e, unsigned int shift)
{
	for (unsigned int i = 0, end; i < e->histogram.count; i = end) {
		uint64_t calls = 0;

		for (end = i; end < e->histogram.count &&
			      bucket_of(e, end) >> shift == bucket_of(e, i) >> shift; end++)
			calls += e->histogram.bucket[end] & TOP_COUNT_MASK;
		number(out, bucket_of(e, i) >> shift);
		number(out, calls);
	}
}

static void parts(struct output *out, const __u64 *ns, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		if (ns[i] < 1000)
			continue;
		number(out, i);
		number(out, ns[i] / 1000);
	}
}

void report_cells(const struct report *r, struct output *out, size_t group)
{
	output_string(out, " data-c=\"");
	for (unsigned int i = 0; i < r->axis.count; i++) {
		const struct top_entry *e = r->calls[i] ? top_find(r->calls[i], "", group) : NULL;

		if (!e)
			continue;
		number(out, i);
		number(out, e->calls);
		number(out, e->errors);
		number(out, e->rows);
		number(out, e->total_ns);
		number(out, e->max_ns);
		number(out, e->min_ns);
		output_char(out, ';');
		if (e->why)
			parts(out, e->why->ns, BREAKDOWN_PARTS);
		output_char(out, ';');
		buckets(out, e, r->bucket_shift);
		output_char(out, ',');
	}
	output_char(out, '"');
}

void report_column_cell(struct output *out, const struct report_column *column)
{
	output_string(out, " data-c=\"");
	parts(out, column->part_ns, REPORT_PARTS);
	output_char(out, ';');
	number(out, column->waits.count);
	number(out, column->waits.ns);
	number(out, column->waits.deadlocks);
	number(out, column->waits.failed);
	output_char(out, '"');
}
