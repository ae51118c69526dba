/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/count/: statements as numbers, in bounded memory: by fingerprint, and as histograms.
 * Of statements it keeps no more than a text for each fingerprint.
 */

/*
 * Statements aggregated by fingerprint, in bounded memory: when the table is full, the quarter of
 * its entries with the least total time is folded into one entry, "other". A fingerprint that
 * comes again afterwards is counted from 0 again; the sum over all entries
 * is always exact. Those of statements in routines are in no sum, and dropped.
 */
#ifndef DB_COUNT_TOP_H
#define DB_COUNT_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

#define TOP_ENTRIES	2000	/* at most 27 MB, in practice 2 or 3 */
#define TOP_TEXT	1024	/* bytes of a fingerprint that are kept, with the NUL */
#define TOP_SAMPLE	4096	/* bytes of a sample, as many as --text permits by default */

#define TOP_COUNT_BITS	48
#define TOP_COUNT_MASK	((1ull << TOP_COUNT_BITS) - 1)

/*
 * Calls by duration, in buckets of 1/16 of their value: the error is at most 1/32. From 16 on, the
 * bucket 16 * (n + 1) + i begins at (16 + i) * 2^n ns.
 */
struct top_histogram {
	uint64_t *bucket;	/* number << TOP_COUNT_BITS | calls, ascending; calls > 0 */
	uint16_t count, room;
};

/* Sums of the calls whose time breakdown is known. */
struct top_why {
	uint64_t calls;
	__u64 ns[BREAKDOWN_PARTS];
	__u64 use[USES];
	uint32_t used;		/* bits: elements of ->use that are known of any call */
};

struct top_entry {
	const char *engine;	/* name in struct engine, static; NULL: "other" */
	uint64_t hash;
	bool nested;		/* in routines: their time is part of that of others */
	uint64_t calls, errors, rows;
	uint64_t total_ns, min_ns, max_ns;
	uint64_t seen_ns;	/* last call, by the caller's clock */
	char *fingerprint;	/* NUL-terminated; NULL: "other" */
	char *database;		/* of all calls, foreign bytes, NUL-terminated; NULL: unknown */
	bool databases;		/* they were in several, or in unknown ones */
	char *sample;		/* text of the slowest call, sample_len bytes, no NUL */
	uint32_t sample_len;
	bool sample_cut;	/* the text was longer */
	struct top_why *why;	/* NULL: known of no call */
	struct top_histogram histogram;
};

/* A statement to count. All is copied but ->engine. */
struct top_call {
	const char *engine;
	uint64_t hash;			/* of the fingerprint; with ->engine and ->nested the key */
	const char *fingerprint;	/* NUL-terminated; that of the first call is kept */
	const char *database;		/* NUL-terminated; NULL: unknown */
	const char *text;		/* any bytes; NULL: could not be read */
	size_t text_len;
	bool text_cut;
	uint64_t duration_ns, rows, seen_ns;
	bool failed, nested;
	const struct event_breakdown *why;	/* NULL: unknown */
};

enum top_order {
	TOP_TOTAL, TOP_CALLS, TOP_MEAN, TOP_P95, TOP_P99, TOP_MAX, TOP_ROWS,
	TOP_ERRORS,
	TOP_PART,				/* + enum breakdown_part: time in that part */
	TOP_USE = TOP_PART + BREAKDOWN_PARTS,	/* + enum use: sum of that, or the largest */
	TOP_ORDERS = TOP_USE + USES,
};

struct top;

/*
 * Create a table for at most @entries fingerprints, at least 4. top_free() frees it. NULL: no
 * memory.
 */
struct top *top_new(size_t entries);

/*
 * Count @call. Return 0, or -ENOMEM: then it is counted as "other", or only missing from the
 * percentiles of its fingerprint.
 */
int top_add(struct top *top, const struct top_call *call);

/* Return the entry of that key, not nested, valid until @top changes; NULL: there is none. */
const struct top_entry *top_find(const struct top *top, const char *engine, uint64_t hash);

/*
 * Add all that @from counted to @to. Return 0, or -ENOMEM: then what has no entry is counted as
 * "other".
 */
int top_merge(struct top *to, const struct top *from);

/* The slots of top_slots(): the last one counts all that is longer. */
#define TOP_SLOTS	48

/* Store in @slots how many calls took from 2^n to 2^(n+1) - 1 ns; slot 0 also counts 0. */
void top_slots(const struct top_entry *entry, uint64_t slots[TOP_SLOTS]);

/*
 * Return the duration in ns that @permille of the calls (500: the median, 1000: the maximum) did
 * not exceed, with an error of at most 1/32; 0 without calls.
 */
uint64_t top_percentile(const struct top_entry *entry, unsigned int permille);

/* Return what entries are sorted by in @order: a number or ns; 0 if unknown. */
uint64_t top_value(const struct top_entry *entry, enum top_order order);

/*
 * Return the entries but "other" in descending @order, and their number in *@count. Borrowed until
 * the next call with @top. NULL: no entries if *@count is 0, else out of memory.
 */
const struct top_entry *const *top_sort(struct top *top, enum top_order order,
					size_t *count);

/* Fold the entries with the least total time into "other" until @keep are left. */
void top_fold(struct top *top, size_t keep);

/* Return "other", and in *@folded (may be NULL) the number of entries in it. Borrowed as above. */
const struct top_entry *top_other(const struct top *top, uint64_t *folded);

/* Free @top, which may be NULL. */
void top_free(struct top *top);

#endif
