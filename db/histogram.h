/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many statements, or waits in them, had which duration, by group: what the kernel counts, see
 * bpf/stat.h, and the same for statements whose texts must be looked at here.
 */
#ifndef DB_HISTOGRAM_H
#define DB_HISTOGRAM_H

#include <sys/types.h>

#include "bpf/event.h"
#include "db/engine.h"
#include "db/statement.h"
#include "db/target.h"

#define HISTOGRAM_MAX	16384		/* slots of durations of all groups */

/* So many of one kind of server and group had a duration of that slot. */
struct histogram_row {
	const struct engine *engine;
	char group[STAT_GROUP];		/* foreign bytes, NUL-terminated; "": not known, or all */
	uint16_t coarse, fine;		/* as struct stat_key has them */
	uint64_t count;
};

/* Counted here. All zero: closed. */
struct histogram {
	struct histogram_row *rows;	/* HISTOGRAM_MAX, sorted by engine, group and slots */
	size_t nrows;
	uint64_t unit_ns;		/* of ->coarse */
	enum stat_by by;
	uint64_t lost;			/* for which there was no room */
};

/* 0 or -ENOMEM. */
int histogram_open(struct histogram *counts, uint64_t unit_ns, enum stat_by by);

/* Counts @ns, of @statement or of a wait in it. */
void histogram_add(struct histogram *counts, const struct engine *engine,
		   const struct statement *statement, uint64_t ns);

/* A copy of what was counted: the number of *@rows, which are the caller's to free; or -ENOMEM. */
ssize_t histogram_copy(const struct histogram *counts, struct histogram_row **rows);

/* The same of what the kernel counted in @map of those @targets; each row stands once. */
ssize_t histogram_read(int map, const struct target *targets, size_t ntargets,
		       struct histogram_row **rows);

/* Frees what it keeps, not @counts. */
void histogram_close(struct histogram *counts);

#endif
