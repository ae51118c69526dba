// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/histogram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/sys.h"

int histogram_open(struct histogram *counts, uint64_t unit_ns, enum stat_by by)
{
	*counts = (struct histogram){ .unit_ns = unit_ns, .by = by };
	counts->rows = calloc(HISTOGRAM_MAX, sizeof(*counts->rows));
	return counts->rows ? 0 : -ENOMEM;
}

/* As stat_command() in bpf/. */
static void counts_command(char group[STAT_GROUP], const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; text && i < len && i < STAT_GROUP + 8 && n < STAT_GROUP - 1; i++) {
		char c = text[i];

		if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
			group[n++] = (char)(c | 0x20);
		else if (n || !c || !strchr(" \n\t\r(", c))
			break;
	}
}

static void counts_group(enum stat_by by, const struct statement *s, char group[STAT_GROUP])
{
	const char *name = by == STAT_BY_STATUS ? s->failed ? "error" : "ok" :
			   by == STAT_BY_DATABASE ? s->database :
			   by == STAT_BY_USER ? s->user : NULL;

	if (by == STAT_BY_COMMAND)
		counts_command(group, s->text, s->text_len);
	else if (name)
		memcpy(group, name, strnlen(name, STAT_GROUP - 1));
}

/* As stat_count() in bpf/. */
static void counts_slots(struct histogram_row *row, uint64_t ns, uint64_t unit_ns)
{
	uint32_t log = ns ? 63 - (uint32_t)__builtin_clzll(ns) : 0;
	uint64_t units = ns / unit_ns;

	row->coarse = units ? (uint16_t)(63 - __builtin_clzll(units)) : 0;
	row->fine = (uint16_t)(ns < STAT_FINE ? ns :
			       (log - 3) * STAT_FINE + (ns >> (log - 4) & (STAT_FINE - 1)));
}

static int counts_compare(const void *a, const void *b)
{
	const struct histogram_row *x = a, *y = b;
	int order = strcmp(x->engine->name, y->engine->name);

	order = order ? order : strcmp(x->group, y->group);
	order = order ? order : (int)x->coarse - (int)y->coarse;
	return order ? order : (int)x->fine - (int)y->fine;
}

/* Where @row is, or would be. */
static size_t counts_place(const struct histogram *counts, const struct histogram_row *row)
{
	size_t low = 0, high = counts->nrows;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (counts_compare(&counts->rows[middle], row) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void histogram_add(struct histogram *counts, const struct engine *engine,
		   const struct statement *statement, uint64_t ns)
{
	struct histogram_row row = { .engine = engine, .count = 1 }, *at;

	counts_group(counts->by, statement, row.group);
	counts_slots(&row, ns, counts->unit_ns);
	at = &counts->rows[counts_place(counts, &row)];
	if (at < counts->rows + counts->nrows && !counts_compare(at, &row)) {
		at->count++;
	} else if (counts->nrows == HISTOGRAM_MAX) {
		counts->lost++;
	} else {
		memmove(at + 1, at, (size_t)(counts->rows + counts->nrows - at) * sizeof(row));
		*at = row;
		counts->nrows++;
	}
}

ssize_t histogram_copy(const struct histogram *counts, struct histogram_row **rows)
{
	*rows = calloc(counts->nrows + 1, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	memcpy(*rows, counts->rows, counts->nrows * sizeof(**rows));
	return (ssize_t)counts->nrows;
}

/* Adds up what several files of one engine have; the number that is left. */
static ssize_t counts_merge(struct histogram_row *rows, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept && !counts_compare(&rows[kept - 1], &rows[i]))
			rows[kept - 1].count += rows[i].count;
		else
			rows[kept++] = rows[i];
	}
	return (ssize_t)kept;
}

ssize_t histogram_read(int map, const struct target *targets, size_t ntargets,
		       struct histogram_row **rows)
{
	struct stat_key keys[2];
	size_t n = 0;

	*rows = calloc(HISTOGRAM_MAX, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	/* Nothing is ever deleted from it, so the order of keys holds. */
	while (n < HISTOGRAM_MAX && !sys_map_next(map, n ? &keys[0] : NULL, &keys[1])) {
		struct histogram_row *row = &(*rows)[n];

		keys[0] = keys[1];
		if (keys[1].target_id >= ntargets || sys_map_lookup(map, &keys[1], &row->count))
			break;
		row->engine = targets[keys[1].target_id].engine;
		memcpy(row->group, keys[1].group, STAT_GROUP - 1);
		row->coarse = keys[1].coarse;
		row->fine = keys[1].fine;
		n++;
	}
	qsort(*rows, n, sizeof(**rows), counts_compare);
	return counts_merge(*rows, n);
}

void histogram_close(struct histogram *counts)
{
	free(counts->rows);
	*counts = (struct histogram){ .rows = NULL };
}
