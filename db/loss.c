// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/loss.h"

#include <string.h>

#include "base/base.h"
#include "loader/runtime.h"

#define LOSS_ROW(loss, ...) [LOSS_ ## loss] = { __VA_ARGS__ },
const struct loss_row loss_rows[LOSSES] = { LOSS_ROWS(LOSS_ROW) };

void loss_count(struct summary *summary, const struct runtime *rt, uint32_t first)
{
	for (size_t i = 0; i < LOSSES; i++)
		if (loss_rows[i].counter)
			summary->lost[i] += runtime_counter(rt, first + loss_rows[i].counter);
}

void loss_add(struct summary *summary, const struct owners *owners)
{
	for (size_t i = 0; i < LOSSES; i++)
		if (loss_rows[i].counter)
			summary->lost[i] += owners->lost_sum[loss_rows[i].counter];
}

void loss_read(struct summary *summary, const struct runtime *rt)
{
	loss_count(summary, rt, 0);
	loss_add(summary, rt->owners);
	owners_report(rt->owners, &summary->users);
	owners_report_files(rt->owners, &summary->servers);
}

void loss_merge(struct summary *summary)
{
	struct owners_report *servers = &summary->servers;
	size_t kept = 0, j;

	for (size_t i = 0; i < servers->n; i++) {
		for (j = 0; j < kept; j++)
			if (summary->files[i].engine &&
			    servers->row[j].uid == servers->row[i].uid &&
			    !strcmp(summary->files[j].path, summary->files[i].path))
				break;
		for (int k = 0; k < COUNTERS && j < kept; k++)
			servers->row[j].lost[k] += servers->row[i].lost[k];
		if (j < kept)
			continue;
		servers->row[kept] = servers->row[i];
		summary->files[kept++] = summary->files[i];
	}
	servers->n = kept;
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
