/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Statements counted by labels since the start: the data of openmetrics.h and otlp_metrics.h.
 *
 * Labels are foreign text that users of a database choose. They are made valid before they are
 * compared, so that no two series have equal labels, and have no character that an output must
 * escape. The number of series is limited; the processes of one Unix user, as the kernel knows it,
 * can add a part of them only. What is beyond is counted in a series
 * without labels. A series is never removed: its counts only grow.
 */
#ifndef CLI_FORMAT_METRICS_H
#define CLI_FORMAT_METRICS_H

#include "bpf/event.h"
#include "db/event.h"

#define METRICS_SERIES	1000	/* with labels */
#define METRICS_SLOTS	2048	/* of the hash table, a power of two */
#define METRICS_BOUNDS	22

enum metrics_label {
	METRICS_ENGINE, METRICS_SERVER, METRICS_UID, METRICS_DATABASE, METRICS_USER,
	METRICS_COMMAND, METRICS_FINGERPRINT, METRICS_BACKEND,
	METRICS_LABELS,
};

/* Bits: the number of series that one user, or that all can have. */
enum metrics_limit {
	METRICS_LIMIT_USER = 1,
	METRICS_LIMIT_ALL = 2,
};

struct metrics_series {
	uint64_t hash;
	uint32_t uid;			/* of the processes, by the kernel; UINT32_MAX: unknown */
	uint32_t len;			/* of ->labels */
	uint64_t count, errors, rows, sum_ns;
	uint64_t appended;		/* ->count as last appended by otlp_metrics.h */
	uint64_t bucket[METRICS_BOUNDS + 1];	/* not cumulative */
	__u64 part_ns[BREAKDOWN_PARTS];
	char *text;			/* of the fingerprint; owned; NULL: none */
	char labels[];			/* NUL-terminated, in order; "": absent */
};

/* Closed if all zero. */
struct metrics {
	struct metrics_series *series[METRICS_SERIES + 1];	/* the first one has no labels */
	size_t count;
	uint16_t slot[METRICS_SLOTS];	/* index in ->series; 0: free */
	unsigned int limited;		/* METRICS_LIMIT_*: that were reached */
};

/* Return 0 or -ENOMEM. metrics_close() ends it. */
int metrics_open(struct metrics *metrics);

/*
 * Count @statement, which has ended. With @fingerprint, its text, it is counted by @hash of it
 * instead of by user and command.
 */
void metrics_add(struct metrics *metrics, const struct statement *statement, uint64_t hash,
		 const char *fingerprint);

/*
 * Return the inclusive upper bound of bucket @i in ns, not of the last one, which has none: 1, 2.5
 * and 5 times the powers of ten from 10 us to 100 s.
 */
uint64_t metrics_bound_ns(unsigned int i);

/* Return it in seconds, in the canonical form of a label; "+Inf" for the last one. Static. */
const char *metrics_bound_text(unsigned int i);

/* Return label @label of @series; "" if absent. */
const char *metrics_label(const struct metrics_series *series, enum metrics_label label);

/* Free what @metrics owns. */
void metrics_close(struct metrics *metrics);

#endif
