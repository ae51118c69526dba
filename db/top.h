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

#define TALLY_ENTRIES	2000	/* at most 20 MB, in practice 2 or 3 */
#define TALLY_TEXT	1024	/* what is kept of a text, with its NUL */

/* Calls by duration, in buckets that are 1/16 wide: no value is off by more than 1/32. */
struct tally_histogram {
	uint64_t *bucket;	/* number << 48 | calls, ascending; only those that have calls */
	uint16_t count, room;
};

/* Where the time of calls went and what they used, of those of which it is known. */
struct tally_why {
	uint64_t calls;
	__u64 ns[WHY_PARTS];
	__u64 use[USES];
	uint32_t used;		/* bits: what of ->use is known of any call */
};

struct tally_entry {
	const char *engine;	/* borrowed for good, as in struct engine; NULL: of "other" */
	uint64_t hash;
	uint64_t calls, errors, rows;
	uint64_t total_ns, min_ns, max_ns;
	uint64_t seen_ns;	/* the last call, in the caller's clock */
	char *fingerprint;	/* NUL-terminated; NULL: of "other" */
	char *sample;		/* the slowest call's text, sample_len bytes, not NUL-terminated */
	uint32_t sample_len;
	bool sample_cut;	/* there was more */
	struct tally_why *why;	/* NULL: known of none */
	struct tally_histogram histogram;
};

/* A statement to be counted; all is copied but ->engine. */
struct tally_call {
	const char *engine;
	uint64_t hash;			/* with ->engine the key */
	const char *fingerprint;	/* NUL-terminated; only the first one's is kept */
	const char *text;		/* any bytes; NULL: could not be read */
	size_t text_len;
	bool text_cut;
	uint64_t duration_ns, rows, seen_ns;
	bool failed;
	const struct event_why *why;	/* NULL: not known */
};

enum tally_order {
	TALLY_TOTAL, TALLY_CALLS, TALLY_MEAN, TALLY_P95, TALLY_P99, TALLY_MAX, TALLY_ROWS,
	TALLY_ERRORS,
	TALLY_PART,				/* + enum why_part: time in that part */
	TALLY_USE = TALLY_PART + WHY_PARTS,	/* + enum use: sum of that, or the largest */
	TALLY_ORDERS = TALLY_USE + USES,
};

struct tally;

/* An empty table for at most @entries fingerprints, 4 at least. The caller's; NULL: no memory. */
struct tally *tally_new(size_t entries);

/*
 * Counts @call. 0, or -ENOMEM: then it is counted as "other", or misses in the percentiles
 * of its fingerprint only.
 */
int tally_add(struct tally *tally, const struct tally_call *call);

/*
 * The duration in ns that @permille (500: the median, 1000: the longest) of the calls did
 * not exceed, off by 1/32 at most; 0 without calls.
 */
uint64_t tally_percentile(const struct tally_entry *entry, unsigned int permille);

/*
 * The entries, those with most first, and in *@count how many; "other" is not among them.
 * Borrowed, all of it, until the next call that is given @tally. NULL with *@count 0: there
 * is none; with another: no memory.
 */
const struct tally_entry *const *tally_sort(struct tally *tally, enum tally_order order,
					    size_t *count);

/* Folds the entries with the least total time into "other", so that @keep stay. */
void tally_fold(struct tally *tally, size_t keep);

/* What was folded, and in *@folded (may be NULL) of how many entries. Borrowed as above. */
const struct tally_entry *tally_other(const struct tally *tally, uint64_t *folded);

/* NULL is fine. */
void tally_free(struct tally *tally);

#endif
