// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/count/top.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/session/breakdown.h"

#define SUB_BITS	4			/* 16 buckets between powers of two */
#define SUB		(1u << SUB_BITS)
#define VALUE_BITS	48			/* 78 hours; longer ones count as that */
#define BUCKETS		((VALUE_BITS - SUB_BITS + 1) * SUB)
#define ROOM_MIN	4
#define ENTRIES_MIN	4
#define FOLD_PART	4			/* fold a quarter at once */

struct top_key {
	uint64_t value;
	const struct top_entry *entry;
};

struct top {
	struct top_entry other;
	uint64_t folded;
	size_t limit, count;
	struct top_entry *entry;	/* the first ->count are in use */
	uint32_t *slot;			/* hash table: index of an entry + 1, or 0 */
	size_t mask;			/* number of slots - 1 */
	uint64_t *total;		/* scratch of top_fold() */
	struct top_key *key;		/* scratch of top_sort(), … */
	const struct top_entry **sorted;	/* … and its result */
};

/* Buckets of durations */

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int bits;

	if (ns < SUB)
		return (unsigned int)ns;
	if (ns >> VALUE_BITS)
		return BUCKETS - 1;
	bits = 63 - (unsigned int)__builtin_clzll(ns) - SUB_BITS;
	return (bits << SUB_BITS) + (unsigned int)(ns >> bits);
}

/* Return the middle of a bucket in ns. */
static uint64_t bucket_value(unsigned int bucket)
{
	unsigned int bits = bucket >> SUB_BITS;

	if (bits < 2)
		return bucket;
	bits--;
	return ((uint64_t)(SUB + (bucket & (SUB - 1))) << bits) + (1ull << bits >> 1);
}

static int buckets_grow(struct top_histogram *h)
{
	unsigned int room = h->room ? 2u * h->room : ROOM_MIN;
	uint64_t *bucket;

	if (room > BUCKETS)
		room = BUCKETS;
	bucket = realloc(h->bucket, room * sizeof(*bucket));
	if (!bucket)
		return -ENOMEM;
	h->bucket = bucket;
	h->room = (uint16_t)room;
	return 0;
}

static int buckets_add(struct top_histogram *h, unsigned int number, uint64_t calls)
{
	size_t low = 0, high = h->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (h->bucket[middle] >> TOP_COUNT_BITS < number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < h->count && h->bucket[low] >> TOP_COUNT_BITS == number) {
		h->bucket[low] += calls;
		return 0;
	}
	if (h->count == h->room && buckets_grow(h))
		return -ENOMEM;
	memmove(h->bucket + low + 1, h->bucket + low, (h->count - low) * sizeof(*h->bucket));
	h->bucket[low] = (uint64_t)number << TOP_COUNT_BITS | calls;
	h->count++;
	return 0;
}

uint64_t top_percentile(const struct top_entry *entry, unsigned int permille)
{
	const struct top_histogram *h = &entry->histogram;
	uint64_t calls = 0, rank, ns = 0;

	for (size_t i = 0; i < h->count; i++)
		calls += h->bucket[i] & TOP_COUNT_MASK;
	if (!calls)
		return 0;
	rank = calls / 1000 * permille + (calls % 1000 * permille + 999) / 1000;
	if (rank >= calls)
		return entry->max_ns;
	rank += !rank;
	for (size_t i = 0; i < h->count && rank; i++) {
		calls = h->bucket[i] & TOP_COUNT_MASK;
		rank -= calls < rank ? calls : rank;
		ns = bucket_value((unsigned int)(h->bucket[i] >> TOP_COUNT_BITS));
	}
	if (ns < entry->min_ns)
		return entry->min_ns;
	return ns > entry->max_ns ? entry->max_ns : ns;
}

void top_slots(const struct top_entry *entry, uint64_t slots[TOP_SLOTS])
{
	const struct top_histogram *h = &entry->histogram;

	memset(slots, 0, TOP_SLOTS * sizeof(*slots));
	for (size_t i = 0; i < h->count; i++) {
		uint64_t ns = bucket_value((unsigned int)(h->bucket[i] >> TOP_COUNT_BITS)) | 1;
		unsigned int slot = 63 - (unsigned int)__builtin_clzll(ns);

		slots[slot] += h->bucket[i] & TOP_COUNT_MASK;
	}
}

/* Entries */

/* Return the entry's breakdown, or NULL if out of memory: it is then unknown. */
static struct top_why *entry_why(struct top_entry *e)
{
	if (!e->why)
		e->why = calloc(1, sizeof(*e->why));
	return e->why;
}

static void use_add(__u64 *to, const __u64 *from, uint32_t used)
{
	for (int i = 0; i < USES; i++)
		if (used & 1u << i)
			breakdown_use_add(&to[i], from[i], (enum use)i);
}

static void entry_add_why(struct top_entry *e, const struct event_breakdown *one)
{
	struct top_why *why = one ? entry_why(e) : NULL;

	if (!why)
		return;
	why->calls++;
	why->used |= one->used;
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		why->ns[i] += one->ns[i];
	use_add(why->use, one->use, one->used);
}

static void entry_merge_why(struct top_entry *to, const struct top_why *from)
{
	struct top_why *why = from ? entry_why(to) : NULL;

	if (!why)
		return;
	why->calls += from->calls;
	why->used |= from->used;
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		why->ns[i] += from->ns[i];
	use_add(why->use, from->use, from->used);
}

/* Keep the database of the calls, @database; NULL or "": unknown, as long as it is the same. */
static void entry_database(struct top_entry *e, const char *database)
{
	if (database && !*database)
		database = NULL;
	if (e->databases)
		return;
	if (!e->calls && database)
		e->database = strdup(database);
	if (e->database && database && !strcmp(e->database, database))
		return;
	free(e->database);
	e->database = NULL;
	e->databases = true;
}

static void entry_count(struct top_entry *e, const struct top_call *call)
{
	entry_database(e, call->database);
	e->calls++;
	e->errors += call->failed;
	e->rows += call->rows;
	e->total_ns += call->duration_ns;
	if (e->calls == 1 || call->duration_ns < e->min_ns)
		e->min_ns = call->duration_ns;
	if (call->duration_ns > e->max_ns)
		e->max_ns = call->duration_ns;
	if (call->seen_ns > e->seen_ns)
		e->seen_ns = call->seen_ns;
	entry_add_why(e, call->why);
}

/* Keep the text of @call, the slowest so far. If out of memory, keep the old one. */
static void entry_sample(struct top_entry *e, const struct top_call *call)
{
	size_t len = call->text_len < TOP_SAMPLE ? call->text_len : TOP_SAMPLE;
	char *sample = e->sample;

	if (!call->text)
		return;
	if (!sample || len > e->sample_len)
		sample = realloc(sample, len + 1);
	if (!sample)
		return;
	memcpy(sample, call->text, len);
	e->sample = sample;
	e->sample_len = (uint32_t)len;
	e->sample_cut = call->text_cut || len < call->text_len;
}

/* Add @from to @to, but for its texts. */
static void entry_merge(struct top_entry *to, const struct top_entry *from)
{
	entry_database(to, from->database);
	if (!to->calls || from->min_ns < to->min_ns)
		to->min_ns = from->min_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	if (from->seen_ns > to->seen_ns)
		to->seen_ns = from->seen_ns;
	to->calls += from->calls;
	to->errors += from->errors;
	to->rows += from->rows;
	to->total_ns += from->total_ns;
	entry_merge_why(to, from->why);
	/* Cannot fail for "other", which has room for all buckets. */
	for (size_t i = 0; i < from->histogram.count; i++) {
		uint64_t bucket = from->histogram.bucket[i];

		buckets_add(&to->histogram, (unsigned int)(bucket >> TOP_COUNT_BITS),
			      bucket & TOP_COUNT_MASK);
	}
}

static void entry_free(struct top_entry *e)
{
	free(e->fingerprint);
	free(e->sample);
	free(e->database);
	free(e->why);
	free(e->histogram.bucket);
}

/* Copy at most TOP_TEXT bytes without splitting a UTF-8 character. NULL: out of memory. */
static char *fingerprint_copy(const char *text)
{
	size_t len = strnlen(text, TOP_TEXT);
	char *copy;

	if (len == TOP_TEXT)
		for (len -= 4; len && ((unsigned char)text[len] & 0xc0) == 0x80; len--)
			continue;
	copy = malloc(len + 4);
	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	strcpy(copy + len, text[len] ? "..." : "");
	return copy;
}

/* The table */

struct top *top_new(size_t entries)
{
	struct top *t = calloc(1, sizeof(*t));
	size_t slots = 2 * ENTRIES_MIN;

	if (!t)
		return NULL;
	t->limit = entries < ENTRIES_MIN ? ENTRIES_MIN : entries;
	while (slots < 2 * t->limit)
		slots *= 2;
	t->mask = slots - 1;
	t->entry = calloc(t->limit, sizeof(*t->entry));
	t->slot = calloc(slots, sizeof(*t->slot));
	t->total = calloc(t->limit, sizeof(*t->total));
	t->other.histogram.bucket = calloc(BUCKETS, sizeof(uint64_t));
	t->other.histogram.room = BUCKETS;
	if (t->entry && t->slot && t->total && t->other.histogram.bucket)
		return t;
	top_free(t);
	return NULL;
}

void top_free(struct top *top)
{
	if (!top)
		return;
	for (size_t i = 0; i < top->count; i++)
		entry_free(&top->entry[i]);
	entry_free(&top->other);
	free(top->entry);
	free(top->slot);
	free(top->total);
	free(top->key);
	free(top->sorted);
	free(top);
}

/* Return the slot of the entry with that key, or the unused slot for it. */
static uint32_t *slot_find(const struct top *t, const char *engine, uint64_t hash, bool nested)
{
	for (size_t at = hash & t->mask;; at = (at + 1) & t->mask) {
		const struct top_entry *e = &t->entry[t->slot[at] - !!t->slot[at]];

		if (!t->slot[at] || (e->hash == hash && e->nested == nested &&
				     !strcmp(e->engine, engine)))
			return &t->slot[at];
	}
}

/* Return the value of @rank in ascending order (quickselect). Reorders @total. */
static uint64_t total_select(uint64_t *total, size_t count, size_t rank)
{
	ptrdiff_t low = 0, high = (ptrdiff_t)count - 1, at = (ptrdiff_t)rank;
	uint64_t state = count;

	while (low < high) {
		ptrdiff_t i = low, j = high;
		uint64_t pivot, swapped;

		/* A random pivot: no usual order of statements is a bad case. */
		state = state * 6364136223846793005u + 1442695040888963407u;
		pivot = total[low + (ptrdiff_t)((state >> 33) % (uint64_t)(high - low + 1))];
		while (i <= j) {
			while (total[i] < pivot)
				i++;
			while (total[j] > pivot)
				j--;
			if (i > j)
				break;
			swapped = total[i];
			total[i++] = total[j];
			total[j--] = swapped;
		}
		if (at > j && at < i)
			return pivot;
		if (at <= j)
			high = j;
		else
			low = i;
	}
	return total[at];
}

void top_fold(struct top *top, size_t keep)
{
	size_t least, below = 0, kept = 0;
	uint64_t bound;

	if (keep >= top->count)
		return;
	least = top->count - keep;
	for (size_t i = 0; i < top->count; i++)
		top->total[i] = top->entry[i].total_ns;
	bound = total_select(top->total, top->count, least - 1);
	for (size_t i = 0; i < top->count; i++)
		below += top->entry[i].total_ns < bound;
	memset(top->slot, 0, (top->mask + 1) * sizeof(*top->slot));
	/* Of the entries equal to the bound, fold as many as are still missing. */
	for (size_t i = 0, at_bound = least - below; i < top->count; i++) {
		struct top_entry *e = &top->entry[i];

		if (e->total_ns < bound || (e->total_ns == bound && at_bound)) {
			at_bound -= e->total_ns == bound;
			if (!e->nested) {
				entry_merge(&top->other, e);
				top->folded++;
			}
			entry_free(e);
			continue;
		}
		top->entry[kept++] = *e;
		*slot_find(top, e->engine, e->hash, e->nested) = (uint32_t)kept;
	}
	top->count = kept;
}

/* Return the entry of that key, a new one if there is none; NULL: out of memory. */
static struct top_entry *top_entry(struct top *t, const char *engine, uint64_t hash, bool nested,
				   const char *fingerprint)
{
	uint32_t *slot = slot_find(t, engine, hash, nested);
	struct top_entry *e;

	if (*slot)
		return &t->entry[*slot - 1];
	if (t->count == t->limit) {
		top_fold(t, t->limit - t->limit / FOLD_PART);
		slot = slot_find(t, engine, hash, nested);
	}
	e = &t->entry[t->count];
	*e = (struct top_entry){ .engine = engine, .hash = hash, .nested = nested };
	e->fingerprint = fingerprint_copy(fingerprint);
	if (!e->fingerprint || buckets_grow(&e->histogram)) {
		entry_free(e);
		return NULL;
	}
	*slot = (uint32_t)++t->count;
	return e;
}

int top_add(struct top *top, const struct top_call *call)
{
	struct top_entry *e = top_entry(top, call->engine, call->hash, call->nested,
					call->fingerprint);
	unsigned int bucket = bucket_of(call->duration_ns);

	if (!e && call->nested)
		return -ENOMEM;
	if (!e) {
		entry_count(&top->other, call);
		buckets_add(&top->other.histogram, bucket, 1);
		return -ENOMEM;
	}
	if (!e->sample || call->duration_ns > e->max_ns)
		entry_sample(e, call);
	entry_count(e, call);
	return buckets_add(&e->histogram, bucket, 1);
}

const struct top_entry *top_find(const struct top *top, const char *engine, uint64_t hash)
{
	uint32_t slot = *slot_find(top, engine, hash, false);

	return slot ? &top->entry[slot - 1] : NULL;
}

int top_merge(struct top *to, const struct top *from)
{
	int err = 0;

	for (size_t i = 0; i < from->count; i++) {
		const struct top_entry *one = &from->entry[i];
		struct top_entry *e = top_entry(to, one->engine, one->hash, one->nested,
						one->fingerprint);

		err = e ? err : -ENOMEM;
		if (e && (!e->sample || one->max_ns > e->max_ns))
			entry_sample(e, &(struct top_call){ .text = one->sample,
							    .text_len = one->sample_len,
							    .text_cut = one->sample_cut });
		if (e || !one->nested)
			entry_merge(e ? e : &to->other, one);
	}
	if (from->other.calls)
		entry_merge(&to->other, &from->other);
	to->folded += from->folded;
	return err;
}

const struct top_entry *top_other(const struct top *top, uint64_t *folded)
{
	if (folded)
		*folded = top->folded;
	return &top->other;
}

/* Sorting */

uint64_t top_value(const struct top_entry *e, enum top_order order)
{
	if (order >= TOP_USE)
		return e->why ? e->why->use[order - TOP_USE] : 0;
	if (order >= TOP_PART)
		return e->why ? e->why->ns[order - TOP_PART] : 0;
	switch (order) {
	case TOP_TOTAL:
		return e->total_ns;
	case TOP_CALLS:
		return e->calls;
	case TOP_MEAN:
		return e->calls ? e->total_ns / e->calls : 0;
	case TOP_P95:
		return top_percentile(e, 950);
	case TOP_P99:
		return top_percentile(e, 990);
	case TOP_MAX:
		return e->max_ns;
	case TOP_ROWS:
		return e->rows;
	case TOP_ERRORS:
		return e->errors;
	default:
		return 0;
	}
}

/* Descending by value; the order of equal ones is always the same. */
static int key_compare(const void *left, const void *right)
{
	const struct top_key *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? 1 : -1;
	if (a->entry->total_ns != b->entry->total_ns)
		return a->entry->total_ns < b->entry->total_ns ? 1 : -1;
	return (a->entry->hash > b->entry->hash) - (a->entry->hash < b->entry->hash);
}

const struct top_entry *const *top_sort(struct top *top, enum top_order order,
					size_t *count)
{
	*count = top->count;
	if (!top->count)
		return NULL;
	if (!top->key)
		top->key = calloc(top->limit, sizeof(*top->key));
	if (!top->sorted)
		top->sorted = calloc(top->limit, sizeof(*top->sorted));
	if (!top->key || !top->sorted)
		return NULL;
	for (size_t i = 0; i < top->count; i++)
		top->key[i] = (struct top_key){ top_value(&top->entry[i], order),
						&top->entry[i] };
	qsort(top->key, top->count, sizeof(*top->key), key_compare);
	for (size_t i = 0; i < top->count; i++)
		top->sorted[i] = top->key[i].entry;
	return top->sorted;
}
