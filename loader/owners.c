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

/*
 * Insert @one. If there is no room for it, or if its user has OWNERS_FILES rows, it replaces the
 * last one, or the last one of this user, unless that is not smaller.
 */
static void report_insert(struct owners_report *report, const struct owner_losses *one)
{
	size_t at = 0, last = report->n, same = 0;

	for (size_t i = 0; i < report->n; i++) {
		at += owner_losses_sum(&report->row[i]) >= owner_losses_sum(one);
		same += report->row[i].uid == one->uid;
	}
	if (same == OWNERS_FILES)
		while (report->row[--last].uid != one->uid)
			continue;
	else if (report->n == OWNERS_REPORTED)
		last--;
	else
		report->n++;
	if (at > last)
		return;
	memmove(&report->row[at + 1], &report->row[at], (last - at) * sizeof(report->row[0]));
	report->row[at] = *one;
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

void owners_report_files(const struct owners *o, struct owners_report *report)
{
	struct loss_key keys[2];
	struct losses losses;

	report->n = 0;
	/* Elements are never deleted, so the order of keys is stable. */
	for (size_t n = 0; n < LOSSES_MAX; n++) {
		struct owner_losses one;

		if (sys_map_next(o->losses, n ? &keys[0] : NULL, &keys[1]) ||
		    sys_map_lookup(o->losses, &keys[1], &losses))
			break;
		keys[0] = keys[1];
		one = (struct owner_losses){ .uid = keys[1].uid, .target_id = keys[1].target_id };
		memcpy(one.lost, losses.lost, sizeof(one.lost));
		report_insert(report, &one);
	}
}
