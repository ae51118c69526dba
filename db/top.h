/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What statements of one fingerprint came to, for the most costly of them, in bounded
 * memory: when the table is full, the quarter of its entries with the least total time
 * is folded into one entry, "other". A fingerprint that comes again after that starts
 * anew, so its numbers are what was seen since; the sum over all is always exact.
 */
#ifndef DB_TOP_H
#define DB_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

#define TOP_ENTRIES	2000	/* at most 20 MB, in practice 2 or 3 */
#define TOP_TEXT	1024	/* what is kept of a text, with its NUL */

/* Calls by duration, in buckets that are 1/16 wide: no value is off by more than 1/32. */
struct top_histogram {
	uint64_t *bucket;	/* number << 48 | calls, ascending; only those that have calls */
	uint16_t count, room;
};

/* Where the time of calls went and what they used, of those of which it is known. */
struct top_why {
	uint64_t calls;
	__u64 ns[BREAKDOWN_PARTS];
	__u64 use[USES];
	uint32_t used;		/* bits: what of ->use is known of any call */
};

struct top_entry {
	const char *engine;	/* borrowed for good, as in struct engine; NULL: of "other" */
	uint64_t hash;
	uint64_t calls, errors, rows;
	uint64_t total_ns, min_ns, max_ns;
	uint64_t seen_ns;	/* the last call, in the caller's clock */
	char *fingerprint;	/* NUL-terminated; NULL: of "other" */
	char *sample;		/* the slowest call's text, sample_len bytes, not NUL-terminated */
	uint32_t sample_len;
	bool sample_cut;	/* there was more */
	struct top_why *why;	/* NULL: known of none */
	struct top_histogram histogram;
};

/* A statement to be counted; all is copied but ->engine. */
struct top_call {
	const char *engine;
	uint64_t hash;			/* with ->engine the key */
	const char *fingerprint;	/* NUL-terminated; only the first one's is kept */
	const char *text;		/* any bytes; NULL: could not be read */
	size_t text_len;
	bool text_cut;
	uint64_t duration_ns, rows, seen_ns;
	bool failed;
	const struct event_breakdown *why;	/* NULL: not known */
};

enum top_order {
	TOP_TOTAL, TOP_CALLS, TOP_MEAN, TOP_P95, TOP_P99, TOP_MAX, TOP_ROWS,
	TOP_ERRORS,
	TOP_PART,				/* + enum breakdown_part: time in that part */
	TOP_USE = TOP_PART + BREAKDOWN_PARTS,	/* + enum use: sum of that, or the largest */
	TOP_ORDERS = TOP_USE + USES,
};

struct top;

/* An empty table for at most @entries fingerprints, 4 at least. The caller's; NULL: no memory. */
struct top *top_new(size_t entries);

/*
 * Counts @call. 0, or -ENOMEM: then it is counted as "other", or misses in the percentiles
 * of its fingerprint only.
 */
int top_add(struct top *top, const struct top_call *call);

/*
 * The duration in ns that @permille (500: the median, 1000: the longest) of the calls did
 * not exceed, off by 1/32 at most; 0 without calls.
 */
uint64_t top_percentile(const struct top_entry *entry, unsigned int permille);

/*
 * The entries, those with most first, and in *@count how many; "other" is not among them.
 * Borrowed, all of it, until the next call that is given @tally. NULL with *@count 0: there
 * is none; with another: no memory.
 */
const struct top_entry *const *top_sort(struct top *top, enum top_order order,
					size_t *count);

/* Folds the entries with the least total time into "other", so that @keep stay. */
void top_fold(struct top *top, size_t keep);

/* What was folded, and in *@folded (may be NULL) of how many entries. Borrowed as above. */
const struct top_entry *top_other(const struct top *top, uint64_t *folded);

/* NULL is fine. */
void top_free(struct top *top);

#endif
