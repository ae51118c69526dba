/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of top. Input: a byte with the number of entries, then calls: a byte for engine and
 * hash, a byte of choices, texts that end in a NUL, and a duration. All sums are computed here as
 * well.
 */
#include "db/count/top.h"
#include "tests/fuzz/fuzz.h"

struct sums {
	uint64_t calls, errors, rows, total_ns, max_ns;
};

static void sums_add(struct sums *sums, const struct top_entry *e)
{
	sums->calls += e->calls;
	sums->errors += e->errors;
	sums->rows += e->rows;
	sums->total_ns += e->total_ns;
	sums->max_ns = e->max_ns > sums->max_ns ? e->max_ns : sums->max_ns;
}

static void check_entry(const struct top_entry *e)
{
	uint64_t before = 0, calls = 0;

	REQUIRE(e->calls && e->min_ns <= e->max_ns && e->errors <= e->calls);
	for (unsigned int permille = 0; permille <= 1000; permille += 125) {
		uint64_t ns = top_percentile(e, permille);

		REQUIRE(ns >= e->min_ns && ns <= e->max_ns && ns >= before, "%u", permille);
		before = ns;
	}
	REQUIRE(before == e->max_ns);
	for (size_t i = 0; i < e->histogram.count; i++)
		calls += e->histogram.bucket[i] & ((1ull << 48) - 1);
	REQUIRE(calls == e->calls);
	REQUIRE(!e->fingerprint || strlen(e->fingerprint) < TOP_TEXT);
	REQUIRE(!e->sample || e->sample_len <= TOP_SAMPLE);
}

static void check_top(struct top *top, enum top_order order, const struct sums *want)
{
	const struct top_entry *other;
	const struct top_entry *const *sorted;
	struct sums sums = { 0 };
	size_t count;

	sorted = top_sort(top, order, &count);
	REQUIRE(sorted || !count);
	for (size_t i = 0; i < count; i++) {
		check_entry(sorted[i]);
		sums_add(&sums, sorted[i]);
	}
	other = top_other(top, NULL);
	if (other->calls)
		check_entry(other);
	sums_add(&sums, other);
	REQUIRE(!memcmp(&sums, want, sizeof(sums)));
}

/* Read a text and repeat it up to @size bytes. The caller frees it. */
static char *take_text(struct input *in, size_t size)
{
	char *text = input_until(in, '\0'), *longer = malloc(size + 1);
	size_t len = strlen(text);

	for (size_t i = 0; i < size; i++)
		longer[i] = len ? text[i % len] : 'x';
	longer[size] = '\0';
	free(text);
	return longer;
}

static void take_call(struct top *top, struct input *in, struct sums *want)
{
	uint8_t which = input_byte(in), how = input_byte(in);
	size_t len = how & 0x40 ? TOP_TEXT + which : which;
	char *fingerprint = take_text(in, how & 0x80 ? TOP_TEXT - 4 + (which & 7) : which);
	char *text = take_text(in, len);
	struct top_call call = {
		.engine = which & 1 ? "one" : "other", .hash = which >> 1,
		.fingerprint = fingerprint, .text = how & 1 ? text : NULL, .text_len = len,
		.text_cut = how & 2, .duration_ns = input_u64(in) >> (how >> 2 & 3) * 16,
		.rows = how & 8 ? which : 0, .seen_ns = which, .failed = how & 4,
	};

	REQUIRE(!top_add(top, &call));
	want->calls++;
	want->errors += call.failed;
	want->rows += call.rows;
	want->total_ns += call.duration_ns;
	want->max_ns = call.duration_ns > want->max_ns ? call.duration_ns : want->max_ns;
	free(fingerprint);
	free(text);
	if (how & 0x20)
		top_fold(top, which % 8);
	if (how & 0x10)
		check_top(top, (enum top_order)(which % (TOP_ERRORS + 1)), want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct top *top = top_new(input_byte(&in) % 32);
	struct sums want = { 0 };

	if (!top)
		abort();
	while (in.left)
		take_call(top, &in, &want);
	check_top(top, TOP_TOTAL, &want);
	top_free(top);
	return 0;
}
