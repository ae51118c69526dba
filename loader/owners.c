// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/owners.h"

#include <string.h>

#include "loader/sys.h"

static void owners_grant(struct owners *o, uint32_t number)
{
	sys_map_update(o->grants, &number, &o->grant[number]);
	o->granted[number] = o->grant[number].received;
}

void owners_received(struct owners *o, uint16_t number, uint64_t size)
{
	number &= OWNERS - 1;
	if (o->grant[number].received == o->granted[number] && o->nchanged < OWNERS)
		o->changed[o->nchanged++] = number;
	o->grant[number].received += OWNER_CHARGE(size);
	if (o->grant[number].received - o->granted[number] > o->lag_max)
		owners_flush(o);
}

void owners_removed(struct owners *o, uint16_t number)
{
	number &= OWNERS - 1;
	o->grant[number].removed++;
	owners_grant(o, number);
}

void owners_flush(struct owners *o)
{
	while (o->nchanged)
		owners_grant(o, o->changed[--o->nchanged]);
}

void owners_lost(struct owners *o, uint16_t number, enum counter which, uint64_t n)
{
	o->lost[number & (OWNERS - 1)][which] += n;
	o->lost_sum[which] += n;
}

bool owners_uid(const struct owners *o, uint16_t number, uint32_t *uid)
{
	uint32_t key = number;
	struct owner owner;

	if (sys_map_lookup(o->map, &key, &owner) || owner.known != OWNER_ONE)
		return false;
	*uid = owner.uid;
	return true;
}

uint64_t owner_losses_sum(const struct owner_losses *losses)
{
	uint64_t sum = 0;

	for (int i = LOST_RING_FULL; i < COUNTERS; i++)
		sum += losses->lost[i];
	return sum;
}

/* Insert @one, which displaces the smallest if there is no room. */
static void report_insert(struct owners_report *report, const struct owner_losses *one)
{
	size_t at = report->n;

	while (at && owner_losses_sum(&report->user[at - 1]) < owner_losses_sum(one))
		at--;
	if (at == OWNERS_REPORTED)
		return;
	if (report->n < OWNERS_REPORTED)
		report->n++;
	memmove(&report->user[at + 1], &report->user[at],
		(report->n - at - 1) * sizeof(report->user[0]));
	report->user[at] = *one;
}

void owners_report(const struct owners *o, struct owners_report *report)
{
	struct owner owner;

	report->n = 0;
	for (uint32_t number = 0; number < OWNERS; number++) {
		struct owner_losses one;

		if (sys_map_lookup(o->map, &number, &owner))
			break;
		one = (struct owner_losses){ .uid = owner.uid,
					     .several = owner.known == OWNER_SEVERAL };
		for (int i = 0; i < COUNTERS; i++)
			one.lost[i] = owner.lost[i] + o->lost[number][i];
		if (owner_losses_sum(&one))
			report_insert(report, &one);
	}
}
