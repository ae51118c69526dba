// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/count/histogram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/sys.h"
#include "sql/command.h"

int histogram_open(struct histogram *h, uint64_t unit_ns, enum stat_by by, struct owners *owners)
{
	*h = (struct histogram){ .unit_ns = unit_ns, .by = by, .owners = owners };
	h->rows = calloc(HISTOGRAM_MAX, sizeof(*h->rows));
	return h->rows ? 0 : -ENOMEM;
}

/* Copy the command in lower case, as stat_command() in bpf/ does. */
static void group_of_command(const struct statement *s, char group[STAT_GROUP])
{
	size_t i = s->text ? command_skip(s->server->engine->dialect, s->text, s->text_len) : 0;
	size_t n = 0;

	for (; s->text && i < s->text_len && n < STAT_GROUP - 1; i++) {
		group[n] = s->text[i] | 0x20;
		if (group[n] < 'a' || group[n] > 'z')
			break;
		n++;
	}
	group[n] = '\0';
}

static void group_of(enum stat_by by, const struct statement *s, char group[STAT_GROUP])
{
	const char *name = by == STAT_BY_STATUS ? s->failed ? "error" : "ok" :
			   by == STAT_BY_DATABASE ? s->who->database :
			   by == STAT_BY_USER ? s->who->user : NULL;

	if (by == STAT_BY_COMMAND)
		group_of_command(s, group);
	else if (name)
		memcpy(group, name, strnlen(name, STAT_GROUP - 1));
}

/* Set the slots of the duration @ns, as stat_count() in bpf/ does. */
static void row_set_slots(struct histogram_row *row, uint64_t ns, uint64_t unit_ns)
{
	uint32_t log = ns ? 63 - (uint32_t)__builtin_clzll(ns) : 0;
	uint64_t units = ns / unit_ns;

	row->coarse = units ? (uint16_t)(63 - __builtin_clzll(units)) : 0;
	row->fine = (uint16_t)(ns < STAT_FINE ? ns :
			       (log - 3) * STAT_FINE + (ns >> (log - 4) & (STAT_FINE - 1)));
}

static int row_compare(const void *a, const void *b)
{
	const struct histogram_row *x = a, *y = b;
	int order = strcmp(x->engine->name, y->engine->name);

	order = order ? order : strcmp(x->group, y->group);
	order = order ? order : (int)x->coarse - (int)y->coarse;
	return order ? order : (int)x->fine - (int)y->fine;
}

/* Return the index of @row, or the index to insert it at. */
static size_t histogram_place(const struct histogram *h, const struct histogram_row *row)
{
	size_t low = 0, high = h->nrows;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (row_compare(&h->rows[middle], row) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void histogram_add(struct histogram *h, uint16_t owner, const struct statement *statement,
		   uint64_t ns)
{
	struct histogram_row row = { .engine = statement->server->engine, .count = 1 }, *at;
	uint16_t *used = &h->nrows_of[owner & (OWNERS - 1)];

	group_of(h->by, statement, row.group);
	row_set_slots(&row, ns, h->unit_ns);
	at = &h->rows[histogram_place(h, &row)];
	if (at < h->rows + h->nrows && !row_compare(at, &row)) {
		at->count++;
	} else if (h->nrows == HISTOGRAM_MAX || *used == OWNER_SHARE(HISTOGRAM_MAX)) {
		owners_lost(h->owners, owner, LOST_TABLE_FULL, 1);
	} else {
		memmove(at + 1, at, (size_t)(h->rows + h->nrows - at) * sizeof(row));
		*at = row;
		h->nrows++;
		++*used;
	}
}

ssize_t histogram_copy(const struct histogram *h, struct histogram_row **rows)
{
	*rows = calloc(h->nrows + 1, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	memcpy(*rows, h->rows, h->nrows * sizeof(**rows));
	return (ssize_t)h->nrows;
}

ssize_t histogram_read(int map, const struct engine *const *engines, struct histogram_row **rows)
{
	struct stat_key keys[2];
	size_t n = 0, nengines = 0;

	*rows = calloc(HISTOGRAM_MAX, sizeof(**rows));
	if (!*rows)
		return -ENOMEM;
	while (engines[nengines])
		nengines++;
	/* Elements are never deleted from the map, so iteration returns each key once. */
	while (n < HISTOGRAM_MAX && !sys_map_next(map, n ? &keys[0] : NULL, &keys[1])) {
		struct histogram_row *row = &(*rows)[n];

		keys[0] = keys[1];
		if (keys[1].engine_number >= nengines ||
		    sys_map_lookup(map, &keys[1], &row->count))
			break;
		row->engine = engines[keys[1].engine_number];
		memcpy(row->group, keys[1].group, STAT_GROUP - 1);
		row->coarse = keys[1].coarse;
		row->fine = keys[1].fine;
		n++;
	}
	qsort(*rows, n, sizeof(**rows), row_compare);
	return (ssize_t)n;
}

void histogram_close(struct histogram *h)
{
	free(h->rows);
	*h = (struct histogram){ .rows = NULL };
}
