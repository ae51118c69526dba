// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/histogram.h"

#include "cli/format/json.h"

#define STARS	40

static unsigned long long slot_low(int slot)
{
	return slot ? 1ull << slot : 0;
}

static unsigned long long slot_high(int slot)
{
	return slot == HISTOGRAM_SLOTS - 1 ? ~0ull : (2ull << slot) - 1;
}

static void histogram_bar(struct output *out, uint64_t count, uint64_t most)
{
	int stars = (int)(count * STARS / most);

	output_printf(out, " : %-8llu |%.*s%*s|\n", (unsigned long long)count, stars,
		      "****************************************", STARS - stars, "");
}

void histogram_bars(struct output *out, const struct histogram_slots *slots, const char *title)
{
	uint64_t most = slots->negative;
	int last = -1;

	for (int i = 0; i < HISTOGRAM_SLOTS; i++) {
		most = slots->count[i] > most ? slots->count[i] : most;
		last = slots->count[i] ? i : last;
	}
	output_printf(out, "     %-19s : count     distribution\n", title);
	if (slots->negative) {
		output_printf(out, "%24s", "below 0");
		histogram_bar(out, slots->negative, most);
	}
	for (int i = 0; i <= last; i++) {
		output_printf(out, "%10llu -> %-10llu", slot_low(i), slot_high(i));
		histogram_bar(out, slots->count[i], most);
	}
}

void histogram_buckets(struct output *out, const struct histogram_slots *slots, uint64_t unit_ns)
{
	const char *before = "{\"lt";
	uint64_t sum = slots->negative;
	int last = -1;

	for (int i = 0; i < HISTOGRAM_SLOTS; i++)
		last = slots->count[i] ? i : last;
	output_string(out, ",\"buckets\":[");
	if (sum) {
		json_number(out, "{\"lt\":0,\"count\":", sum);
		before = "},{\"lt";
	}
	/* The bound of the last slot is that of the type. */
	for (int i = 0; i <= last && i < HISTOGRAM_SLOTS - 1; i++) {
		sum += slots->count[i];
		if (!sum)
			continue;
		output_string(out, before);
		output_string(out, unit_ns ? "_ms\":" : "\":");
		output_fixed(out, (unit_ns ? unit_ns : 1) * (2ull << i), unit_ns ? 6 : 0);
		json_number(out, ",\"count\":", sum);
		before = "},{\"lt";
	}
	output_string(out, *before == '}' ? "}]" : "]");
}
