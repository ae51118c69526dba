// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* db/count/top.c: percentiles compared with sorting, sums, and bounds of memory and time. */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "db/count/top.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define HOUR_NS 3600000000000ull
#define MANY 1000000
#define MANY_BYTES_MAX 27000000	/* as documented in db/count/top.h */
#define MANY_NS_MAX 20000	/* per call, on a loaded machine */

static int add(struct top *t, uint64_t hash, uint64_t ns)
{
	struct top_call call = {
		.engine = "mysql", .hash = hash, .fingerprint = "select ?",
		.text = "select 1", .text_len = 8, .duration_ns = ns, .rows = 1, .seen_ns = 1,
	};

	return top_add(t, &call);
}

static const struct top_entry *find(struct top *t, uint64_t hash)
{
	size_t count;
	const struct top_entry *const *entry = top_sort(t, TOP_TOTAL, &count);

	for (size_t i = 0; i < count; i++)
		if (entry[i]->hash == hash)
			return entry[i];
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Return a random duration of one of several distributions. */
static uint64_t random_duration(unsigned int kind)
{
	uint64_t r = random_next() >> 11;

	switch (kind) {
	case 0:		/* any order of magnitude up to an hour */
		return (r % HOUR_NS) >> (random_next() >> 32) % 42;
	case 1:		/* uniform */
		return 1000000 + r % 9000000;
	case 2:		/* constant */
		return 123456789;
	case 3:		/* bimodal */
		return r % 10 ? 50000 + r % 1000 : 800000000 + r % 100000000;
	case 4:		/* very small */
		return r % 40;
	default:	/* a long tail */
		return 100000 + 3000000000u / (1 + r % 30000);
	}
}

static void percentiles(void)
{
	static const unsigned int permille[] = { 0, 1, 10, 100, 250, 500, 750, 900, 950, 990, 999,
						 1000 };
	static uint64_t value[20000];
	double worst = 0;

	for (unsigned int round = 0; round < 120; round++) {
		size_t n = 1 + random_next() % (round < 60 ? 50 : ARRAY_SIZE(value));
		struct top *t = top_new(TOP_ENTRIES);
		const struct top_entry *e;

		for (size_t i = 0; i < n; i++) {
			value[i] = random_duration(round % 6);
			CHECK(!add(t, 7, value[i]));
		}
		qsort(value, n, sizeof(value[0]), compare);
		e = find(t, 7);
		for (size_t i = 0; i < ARRAY_SIZE(permille); i++) {
			size_t rank = (n * permille[i] + 999) / 1000;
			uint64_t exact = value[rank ? rank - 1 : 0];
			uint64_t got = top_percentile(e, permille[i]);
			double error = (double)got - (double)exact;

			error /= exact ? (double)exact : 1;
			error = error < 0 ? -error : error;
			worst = error > worst ? error : worst;
			CHECK(error <= 1.0 / 32,
			      "kind %u, %zu values, %u: %" PRIu64 ", not %" PRIu64, round % 6, n,
			      permille[i], got, exact);
		}
		CHECK(e->min_ns == value[0] && e->max_ns == value[n - 1] && e->calls == n);
		CHECK(top_percentile(e, 1000) == e->max_ns);
		top_free(t);
	}
	printf("# off by %.2f %% at most\n", 100 * worst);
}

/* Values around powers of two, and beyond the largest bucket. */
static void one_value(void)
{
	for (unsigned int bit = 0; bit < 64; bit++)
		for (int64_t off = -1; off <= 1; off++) {
			struct top *t = top_new(4);
			uint64_t ns = (1ull << bit) + (uint64_t)off;

			add(t, 1, ns);
			CHECK(top_percentile(find(t, 1), 500) == ns, "%" PRIu64, ns);
			top_free(t);
		}
}

static void one_entry(void)
{
	struct top *t = top_new(10);
	struct top_call call = {
		.engine = "mysql", .hash = 5, .fingerprint = "select ?", .text = "select 'a\0b'",
		.text_len = 12, .duration_ns = 30, .rows = 3, .seen_ns = 100,
	};
	const struct top_entry *e;

	top_add(t, &call);
	call.text = "select 2";
	call.text_len = 8;
	call.duration_ns = 50;
	call.failed = call.text_cut = true;
	call.seen_ns = 300;
	top_add(t, &call);
	call.text = NULL;
	call.duration_ns = 60;
	call.seen_ns = 200;
	top_add(t, &call);
	e = find(t, 5);
	CHECK(e && e->calls == 3 && e->errors == 2 && e->rows == 9 && e->total_ns == 140);
	CHECK(e->min_ns == 30 && e->max_ns == 60 && e->seen_ns == 300);
	CHECK(!strcmp(e->fingerprint, "select ?") && !strcmp(e->engine, "mysql"));
	CHECK(e->sample_len == 8 && !memcmp(e->sample, "select 2", 8) && e->sample_cut);
	/* The same hash of another engine is another entry. */
	call.engine = "postgresql";
	top_add(t, &call);
	e = find(t, 5);
	CHECK(e->calls == 3, "%" PRIu64, e->calls);
	top_free(t);
	top_free(NULL);
}

static void long_texts(void)
{
	static char text[5000];
	struct top *t = top_new(10);
	struct top_call call = { .engine = "mysql", .fingerprint = text, .text = text,
				 .text_len = sizeof(text) - 1 };
	const struct top_entry *e;

	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	for (call.hash = 0; call.hash < 2; call.hash++) {
		text[0] = 'a';
		top_add(t, &call);
		memmove(text + 1, text, sizeof(text) - 2);
	}
	for (uint64_t hash = 0; hash < 2; hash++) {
		size_t len;

		e = find(t, hash);
		len = strlen(e->fingerprint);
		CHECK(len < TOP_TEXT && len > TOP_TEXT - 8, "%zu", len);
		CHECK(!strcmp(e->fingerprint + len - 3, "..."), "%s", e->fingerprint);
		CHECK(e->fingerprint[len - 4] != '\xc3', "half a character");
		CHECK(e->sample_len == TOP_SAMPLE && e->sample_cut, "%u", e->sample_len);
	}
	top_free(t);
}

struct sums {
	uint64_t calls, errors, rows, total_ns, entries;
};

static void sum_entry(struct sums *sums, const struct top_entry *e)
{
	sums->calls += e->calls;
	sums->errors += e->errors;
	sums->rows += e->rows;
	sums->total_ns += e->total_ns;
}

static struct sums sum_all(struct top *t)
{
	struct sums sums = { 0 };
	size_t count;
	const struct top_entry *const *entry = top_sort(t, TOP_CALLS, &count);

	for (size_t i = 0; i < count; i++)
		sum_entry(&sums, entry[i]);
	sum_entry(&sums, top_other(t, &sums.entries));
	sums.entries += count;
	return sums;
}

static void nothing_is_lost(void)
{
	for (size_t limit = 0; limit < 200; limit += 1 + limit / 3) {
		struct top *t = top_new(limit);
		struct sums in = { 0 }, out;
		size_t count;

		for (int i = 0; i < 20000; i++) {
			struct top_call call = {
				.engine = random_next() & 64 ? "mysql" : "postgresql",
				.hash = random_next() >> 32 & 255, .fingerprint = "x",
				.duration_ns = random_duration(i % 6), .rows = random_next() >> 60,
				.failed = !(random_next() & 1023 << 20),
			};

			CHECK(!top_add(t, &call));
			in.calls++;
			in.errors += call.failed;
			in.rows += call.rows;
			in.total_ns += call.duration_ns;
		}
		out = sum_all(t);
		CHECK(in.calls == out.calls && in.errors == out.errors && in.rows == out.rows &&
		      in.total_ns == out.total_ns, "limit %zu", limit);
		top_sort(t, TOP_TOTAL, &count);
		CHECK(count <= (limit < 4 ? 4 : limit), "%zu of %zu", count, limit);
		top_fold(t, 1);
		top_fold(t, 5);
		top_sort(t, TOP_TOTAL, &count);
		CHECK(count == 1, "%zu", count);
		top_fold(t, 0);
		CHECK(!top_sort(t, TOP_TOTAL, &count) && !count);
		CHECK(sum_all(t).calls == in.calls && top_other(t, NULL)->calls == in.calls);
		/* It can be used again. */
		add(t, 3, 4);
		CHECK(find(t, 3)->calls == 1);
		top_free(t);
	}
}

/* Exactly the entries with the least total are folded, and "other" is their sum. */
static void the_least_are_folded(void)
{
	static uint64_t total[1000];
	struct top *t = top_new(ARRAY_SIZE(total)), *one = top_new(4);
	const struct top_entry *const *entry;
	size_t count, keep = 300;
	uint64_t folded;

	for (size_t i = 0; i < ARRAY_SIZE(total); i++) {
		total[i] = random_next() >> 54;
		add(t, i, total[i]);
	}
	qsort(total, ARRAY_SIZE(total), sizeof(total[0]), compare);
	for (size_t i = 0; i < ARRAY_SIZE(total) - keep; i++)
		add(one, 1, total[i]);
	top_fold(t, keep);
	entry = top_sort(t, TOP_TOTAL, &count);
	CHECK(count == keep, "%zu", count);
	for (size_t i = 0; i < count; i++)
		CHECK(entry[i]->total_ns == total[ARRAY_SIZE(total) - 1 - i], "%zu", i);
	CHECK(top_other(t, &folded)->calls == ARRAY_SIZE(total) - keep);
	CHECK(folded == ARRAY_SIZE(total) - keep, "%" PRIu64, folded);
	for (unsigned int permille = 0; permille <= 1000; permille++)
		CHECK(top_percentile(top_other(t, NULL), permille) ==
		      top_percentile(find(one, 1), permille), "%u", permille);
	top_free(t);
	top_free(one);
}

static uint64_t value_of(const struct top_entry *e, enum top_order order)
{
	const uint64_t value[] = {
		[TOP_TOTAL] = e->total_ns, [TOP_CALLS] = e->calls,
		[TOP_MEAN] = e->total_ns / e->calls, [TOP_P95] = top_percentile(e, 950),
		[TOP_P99] = top_percentile(e, 990), [TOP_MAX] = e->max_ns,
		[TOP_ROWS] = e->rows, [TOP_ERRORS] = e->errors,
	};

	return value[order];
}

static void sorted(void)
{
	struct top *t = top_new(100);
	const struct top_entry *const *entry;
	size_t count;

	for (int i = 0; i < 5000; i++) {
		struct top_call call = { .engine = "mysql", .hash = random_next() >> 32 & 63,
					 .fingerprint = "x", .duration_ns = random_duration(0),
					 .rows = random_next() >> 60,
					 .failed = random_next() & 1 };

		top_add(t, &call);
	}
	for (enum top_order order = TOP_TOTAL; order <= TOP_ERRORS; order++) {
		entry = top_sort(t, order, &count);
		CHECK(count == 64, "%zu", count);
		for (size_t i = 1; i < count; i++)
			CHECK(value_of(entry[i - 1], order) >= value_of(entry[i], order), "%u: %zu",
			      order, i);
	}
	top_free(t);
}

/* Breakdowns are summed for the calls that have one, and folded. */
static void where_time_went(void)
{
	struct top *t = top_new(100);
	uint64_t ns = 0, pages = 0, known = 0;
	const struct top_entry *const *entry;
	const struct top_why *other;
	size_t count;

	for (uint64_t i = 0; i < 1000; i++) {
		struct event_breakdown why = { .used = i & 1 ? 1u << USE_SHARED_HIT : 0 };
		struct top_call call = { .engine = "mysql", .hash = i % 50, .fingerprint = "x",
					 .duration_ns = i, .why = i % 50 ? &why : NULL };

		/* The longest statements wait least. */
		why.ns[BREAKDOWN_LOCK] = 1000 - i % 50;
		why.use[USE_SHARED_HIT] = i;
		top_add(t, &call);
		ns += i % 50 ? why.ns[BREAKDOWN_LOCK] : 0;
		pages += i & 1 ? i : 0;
		known += !!call.why;
	}
	CHECK(!find(t, 0)->why && find(t, 3)->why->calls == 20);
	CHECK(!find(t, 2)->why->used && find(t, 3)->why->used == 1u << USE_SHARED_HIT);
	entry = top_sort(t, (enum top_order)(TOP_PART + BREAKDOWN_LOCK), &count);
	CHECK(count == 50 && entry[0]->hash == 1 && entry[48]->hash == 49 && !entry[49]->why);
	entry = top_sort(t, (enum top_order)(TOP_USE + USE_SHARED_HIT), &count);
	CHECK(count == 50 && entry[0]->hash == 49 && entry[24]->hash == 1);
	top_fold(t, 10);
	top_fold(t, 0);
	other = top_other(t, NULL)->why;
	CHECK(other && other->ns[BREAKDOWN_LOCK] == ns && other->calls == known);
	CHECK(other && other->use[USE_SHARED_HIT] == pages && other->used == 1u << USE_SHARED_HIT);
	top_free(t);
}

/* Memory is a maximum, not a sum, and unknown values of a call do not count. */
static void largest_counts(void)
{
	struct top *t = top_new(100);
	const struct top_why *other;

	for (uint64_t i = 0; i < 100; i++) {
		struct event_breakdown why = { .used = i == 99 ? 1u << USE_SORTS : ~0u };

		why.use[USE_SORTS] = 1;
		why.use[USE_SORT_BYTES] = why.use[USE_PEAK_GROWTH] = i ^ 5;
		top_add(t, &(struct top_call){ .engine = "mysql", .hash = i % 5, .fingerprint = "x",
					       .why = &why });
	}
	CHECK(find(t, 0)->why->use[USE_SORT_BYTES] == (90 ^ 5) &&
	      find(t, 0)->why->use[USE_SORTS] == 20);
	top_fold(t, 1);
	top_fold(t, 0);
	other = top_other(t, NULL)->why;
	CHECK(other && other->use[USE_SORTS] == 100 && other->use[USE_PEAK_GROWTH] == (98 ^ 5));
	top_free(t);
}

static size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	if (!f || fscanf(f, "%*u %zu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A million distinct cheap statements, and a few expensive ones among them. */
static void a_million(void)
{
	static char text[TOP_TEXT];
	size_t before = resident(), most = 0;
	struct top *t = top_new(TOP_ENTRIES);
	uint64_t took = now_ns(), costly = 0, calls[50] = { 0 };

	memset(text, 'x', sizeof(text) - 1);
	for (uint64_t i = 0; i < MANY; i++) {
		struct top_call call = {
			.engine = "mysql", .hash = random_next() | 64,
			.fingerprint = text + (i & 511) + 400, .text = text, .text_len = i & 511,
			.duration_ns = random_duration(1),
		};

		if (!(i % 100)) {
			call.hash = random_next() % ARRAY_SIZE(calls);
			call.duration_ns *= 1000;
			calls[call.hash]++;
			costly++;
		}
		top_add(t, &call);
		if (!(i & 4095))
			most = resident() > most ? resident() : most;
	}
	took = now_ns() - took;
	CHECK(sum_all(t).calls == MANY && sum_all(t).entries == MANY - costly + ARRAY_SIZE(calls),
	      "%" PRIu64, sum_all(t).entries);
	for (uint64_t i = 0; i < ARRAY_SIZE(calls); i++)
		CHECK(find(t, i) && find(t, i)->calls == calls[i], "%" PRIu64, i);
	CHECK(most - before < MANY_BYTES_MAX, "%zu", most - before);
	CHECK(took / MANY < MANY_NS_MAX, "%" PRIu64 " ns", took / MANY);
	printf("# a million fingerprints: %zu KiB, %" PRIu64 " ns each\n",
	       (most - before) >> 10, took / MANY);
	top_free(t);
}

/* The largest possible table: every entry with long texts and calls in every bucket. */
static void the_most_memory(void)
{
	static char text[TOP_SAMPLE + 1];
	size_t before = resident();
	struct top *t = top_new(TOP_ENTRIES);
	struct event_breakdown why = { .used = 0 };
	struct top_call call = { .engine = "mysql", .fingerprint = text, .text = text,
				 .text_len = TOP_SAMPLE, .why = &why };

	memset(text, 'x', TOP_SAMPLE);
	for (call.hash = 0; call.hash < TOP_ENTRIES; call.hash++)
		for (uint64_t i = 1; i < 49 * 32; i++) {
			call.duration_ns = (32 + i % 32) << i / 32 >> 5;
			top_add(t, &call);
		}
	CHECK(resident() - before < MANY_BYTES_MAX, "%zu", resident() - before);
	printf("# at most %zu KiB\n", (resident() - before) >> 10);
	top_free(t);
}

/* Merging tables is counting in one, but for evictions. */
static void merged(void)
{
	struct top *all = top_new(TOP_ENTRIES), *half[2] = { top_new(TOP_ENTRIES), top_new(8) };
	const struct top_entry *const *entry, *one;
	uint64_t slots[TOP_SLOTS], folded, calls = 0;
	size_t count;

	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t ns = random_duration(i % 6);
		char text[24];
		struct top_call call = {
			.engine = i & 1 ? "mysql" : "postgresql", .hash = i % 6,
			.fingerprint = "f", .text = text,
			.text_len = (size_t)snprintf(text, sizeof(text), "%" PRIu64, ns),
			.duration_ns = ns, .rows = i, .failed = i % 7 == 0,
			.database = i % 6 == 2 ? NULL : i % 6 == 4 && i > 4000 ? "b" : "a",
		};

		top_add(all, &call);
		top_add(half[i / 2500], &call);
	}
	CHECK(!top_merge(half[0], half[1]));
	entry = top_sort(all, TOP_TOTAL, &count);
	CHECK(count == 6);
	for (size_t i = 0; entry && i < count; i++) {
		uint64_t sum = 0;

		one = find(half[0], entry[i]->hash);
		CHECK(one && one->calls == entry[i]->calls && one->total_ns == entry[i]->total_ns &&
		      one->min_ns == entry[i]->min_ns && one->max_ns == entry[i]->max_ns &&
		      one->errors == entry[i]->errors && one->rows == entry[i]->rows);
		for (unsigned int p = 0; one && p <= 1000; p += 50)
			CHECK(top_percentile(one, p) == top_percentile(entry[i], p));
		CHECK(one->sample_len == entry[i]->sample_len &&
		      !memcmp(one->sample, entry[i]->sample, one->sample_len));
		CHECK(strtoull(one->sample, NULL, 10) == one->max_ns);
		CHECK(one->hash == 2 || one->hash == 4 ? !one->database :
							  !strcmp(one->database, "a"));
		top_slots(one, slots);
		for (size_t slot = 0; slot < TOP_SLOTS; slot++)
			sum += slots[slot];
		CHECK(sum == one->calls);
		calls += one->calls;
	}
	CHECK(calls == 5000);
	/* A full table folds what it takes over. */
	for (uint64_t i = 0; i < 100; i++)
		add(half[1], 100 + i, i);
	count = 0;
	top_merge(half[0], half[1]);
	one = top_other(half[0], &folded);
	CHECK(one->calls && folded);
	top_free(all);
	top_free(half[0]);
	top_free(half[1]);
}

/* Each duration is in the slot of its power of two. */
static void slots_of_durations(void)
{
	for (unsigned int bit = 0; bit < 64; bit++)
		for (uint64_t ns = 1ull << bit, i = 0; i < 3; ns += (1ull << bit) / 3, i++) {
			struct top *t = top_new(4);
			uint64_t slots[TOP_SLOTS];

			add(t, 1, ns);
			top_slots(find(t, 1), slots);
			CHECK(slots[bit < TOP_SLOTS ? bit : TOP_SLOTS - 1] == 1, "%" PRIu64, ns);
			top_free(t);
		}
}

static void found(void)
{
	struct top *t = top_new(4);

	CHECK(!add(t, 1, 100) && !add(t, 2, 10));
	CHECK(top_find(t, "mysql", 1)->total_ns == 100 && top_find(t, "mysql", 2)->total_ns == 10);
	CHECK(!top_find(t, "postgresql", 1) && !top_find(t, "mysql", 3));
	top_fold(t, 1);
	CHECK(!top_find(t, "mysql", 2) && top_find(t, "mysql", 1));
	top_free(t);
}

/* Statements in routines have entries of their own, and are in no sum. */
static void in_routines(void)
{
	struct top *t = top_new(4), *to = top_new(4);
	struct top_call call = { .engine = "mysql", .fingerprint = "select ?", .duration_ns = 5 };
	const struct top_entry *const *entry;
	uint64_t folded;
	size_t count;

	for (unsigned int i = 0; i < 2; i++) {
		call.nested = i;
		CHECK(!top_add(t, &call));
		CHECK(!top_add(t, &call));
	}
	entry = top_sort(t, TOP_TOTAL, &count);
	CHECK(count == 2 && entry[0]->nested != entry[1]->nested);
	CHECK(entry[0]->calls == 2 && entry[1]->calls == 2);
	CHECK(!top_find(t, "mysql", 0)->nested);
	CHECK(!top_merge(to, t));
	top_sort(to, TOP_TOTAL, &count);
	CHECK(count == 2);
	top_fold(to, 0);
	CHECK(top_other(to, &folded)->calls == 2 && top_other(to, NULL)->total_ns == 10);
	CHECK(folded == 1, "%" PRIu64, folded);
	top_free(t);
	top_free(to);
}

int main(void)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);	/* resident memory is counted by pages */
	RUN(percentiles);
	RUN(one_value);
	RUN(one_entry);
	RUN(long_texts);
	RUN(nothing_is_lost);
	RUN(the_least_are_folded);
	RUN(sorted);
	RUN(where_time_went);
	RUN(merged);
	RUN(slots_of_durations);
	RUN(largest_counts);
	RUN_LONG(a_million);
	RUN(the_most_memory);
	RUN(found);
	RUN(in_routines);
	return check_done();
}
