// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/loss.h"

#include "base/base.h"
#include "loader/runtime.h"

const struct loss_row loss_rows[LOSSES] = {
	[LOSS_RING_FULL] = {
		"ring_full", "events (buffer full)",
		"records that did not fit into the ring buffer", 0, LOST_RING_FULL,
	},
	[LOSS_TABLE_FULL] = {
		"table_full", "probe hits (table full)",
		"steps of statements, or groups, beyond the capacity of a kernel's table", 0,
		LOST_TABLE_FULL,
	},
	[LOSS_WHO_UNKNOWN] = {
		"who_unknown", "session records",
		"statements whose user, database and client did not fit", LOSSES_OF_SESSIONS,
		LOST_WHO,
	},
	[LOSS_START_WITHOUT_END] = {
		"start_without_end", "starts without an end",
		"statements whose end was not observed", LOSSES_OF_SESSIONS, LOST_START_WITHOUT_END,
	},
	[LOSS_END_WITHOUT_START] = {
		"end_without_start", "ends without a start",
		"ends of statements whose start was dropped", LOSSES_OF_SESSIONS,
		LOST_END_WITHOUT_START,
	},
	[LOSS_TEXT_UNREADABLE] = {
		"text_unreadable", "unreadable texts", "statements without their text",
		LOSSES_OF_TEXTS, 0,
	},
	[LOSS_TEXT_TRUNCATED] = {
		"text_truncated", "truncated texts",
		"statements with only the beginning of their text", LOSSES_OF_TEXTS, 0,
	},
	[LOSS_VALUE_UNREADABLE] = {
		"value_unreadable", "unknown values", "numbers that could not be read or computed",
		LOSSES_OF_VALUES, 0,
	},
	[LOSS_UNDECIDED] = {
		"undecided", "hits (unknown values in the filter)",
		"hits that the filter could not decide", LOSSES_OF_VALUES, LOST_UNDECIDED,
	},
	[LOSS_TEXT_DROPPED] = {
		"text_dropped", "texts (overhead limit)",
		"printed statements whose text was left out", LOSSES_OF_LIMIT, 0,
	},
	[LOSS_WHY_DROPPED] = {
		"why_dropped", "time breakdowns (overhead limit)",
		"printed statements whose time breakdown was left out", LOSSES_OF_LIMIT, 0,
	},
};

void loss_count(struct summary *summary, const struct runtime *rt, uint32_t first)
{
	for (size_t i = 0; i < LOSSES; i++)
		if (loss_rows[i].counter)
			summary->lost[i] += runtime_counter(rt, first + loss_rows[i].counter);
}

void loss_read(struct summary *summary, const struct runtime *rt)
{
	loss_count(summary, rt, 0);
	for (size_t i = 0; i < LOSSES; i++)
		if (loss_rows[i].counter)
			summary->lost[i] += rt->owners->lost_sum[loss_rows[i].counter];
	owners_report(rt->owners, &summary->users);
	owners_report_files(rt->owners, &summary->servers);
}

bool loss_is_of(enum loss loss, unsigned int groups)
{
	return !loss_rows[loss].group || loss_rows[loss].group & groups;
}

bool loss_any(const struct summary *summary)
{
	uint64_t sum = summary->untraced_ns / NS_PER_MS;

	for (size_t i = 0; i < LOSSES; i++)
		sum |= summary->lost[i];
	return sum;
}

uint64_t loss_events(const struct summary *summary)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < LOSSES; i++)
		sum += loss_rows[i].counter ? summary->lost[i] : 0;
	return sum;
}

const char *loss_of_counter(unsigned int counter)
{
	for (size_t i = 0; i < LOSSES; i++)
		if (counter && loss_rows[i].counter == counter)
			return loss_rows[i].name;
	return NULL;
}
