/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Histograms of the durations of statements, or of waits in them, by group: counted by the
 * programs, see bpf/stat.h, or in user space if statements are selected by their text.
 */
#ifndef DB_COUNT_HISTOGRAM_H
#define DB_COUNT_HISTOGRAM_H

#include <sys/types.h>

#include "bpf/event.h"
#include "db/engine.h"
#include "db/event.h"
#include "loader/owners.h"

#define HISTOGRAM_MAX	16384		/* rows */

/* A number of durations of one engine, group and slot. */
struct histogram_row {
	const struct engine *engine;
	char group[STAT_GROUP];		/* foreign bytes, NUL-terminated; "": unknown, or all */
	uint16_t coarse, fine;		/* as in struct stat_key */
	uint64_t count;
};

/* Counted in user space. All zero: closed. */
struct histogram {
	struct histogram_row *rows;	/* HISTOGRAM_MAX, sorted by engine, group and slots */
	size_t nrows;
	uint64_t unit_ns;		/* of ->coarse */
	enum stat_by by;
	uint16_t nrows_of[OWNERS];	/* rows that each owner has added: a share at most */
	struct owners *owners;		/* borrowed; durations without room are their losses */
};

/* Return 0 or -ENOMEM. histogram_close() ends it. */
int histogram_open(struct histogram *h, uint64_t unit_ns, enum stat_by by, struct owners *owners);

/* Count the duration @ns of @statement, of owner @owner, or of a wait in it. */
void histogram_add(struct histogram *h, uint16_t owner, const struct statement *statement,
		   uint64_t ns);

/* Copy the rows to *@rows, which the caller frees. Return their number or -ENOMEM. */
ssize_t histogram_copy(const struct histogram *h, struct histogram_row **rows);

/*
 * Read the kernel's counts from @map to *@rows, sorted, which the caller frees. @engines are those
 * of discover_engines(). Return the number of rows or -ENOMEM.
 */
ssize_t histogram_read(int map, const struct engine *const *engines, struct histogram_row **rows);

/* Free what @h owns. */
void histogram_close(struct histogram *h);

#endif
