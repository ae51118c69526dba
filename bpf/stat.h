/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Histograms: durations of statements, or of waits in them, that are counted instead of sent. */
#ifndef BPF_STAT_H
#define BPF_STAT_H

#include "bpf/record.h"
#include "bpf/slot.h"

CONSTANT(stat_unit_ns);	/* unit of the histogram; 0: statements are sent, not counted */
CONSTANT(stat_by);	/* enum stat_by */
CONSTANT(threshold_ns);

MAP(histogram);		/* hash: struct stat_key → u64 */

#define STAT_BLANKS	16	/* characters before the first word that are skipped, at most */

/*
 * Return whether @a < @b, which are below 2^63, without a branch: the verifier follows both sides
 * of each, and a loop over a text has too many paths.
 */
INLINE __u64 stat_below(__u64 a, __u64 b)
{
	__u64 difference = a - b;

	__asm__("" : "+r"(difference));	/* the compiler would make it a comparison */
	return difference >> 63;
}

INLINE __u64 stat_is_blank(__u64 c)
{
	const __u64 blanks = 1ull << ' ' | 1ull << '\n' | 1ull << '\t' | 1ull << '\r' | 1ull << '(';

	return stat_below(c, 64) & blanks >> (c & 63);
}

/* Set @group to the first word of the text, in lower case. */
INLINE void stat_command(char group[STAT_GROUP], struct session *session)
{
	__u64 len = session->s.text_len, at = 0, same = 1;

	NO_UNROLL
	for (__u64 i = 0; i < STAT_BLANKS; i++) {
		same &= stat_is_blank((__u8)session->text[i]) & stat_below(i, len);
		at += same;
	}
	at &= 2 * STAT_BLANKS - 1;	/* a bound for the verifier */
	same = 1;
	NO_UNROLL
	for (__u64 i = 0; i < STAT_GROUP - 1; i++) {
		__u64 c = (__u8)session->text[at + i] | 0x20;

		same &= stat_below((c - 'a') & 0xff, 26) & stat_below(at + i, len);
		group[i] = c & -same;
	}
}

/* Byte by byte: a program cannot have string constants. */
INLINE void stat_status(char group[STAT_GROUP], __u32 failed)
{
	group[0] = failed ? 'e' : 'o';
	group[1] = failed ? 'r' : 'k';
	if (!failed)
		return;
	group[2] = 'r';
	group[3] = 'o';
	group[4] = 'r';
}

/* What is counted. */
enum stat_flag {
	STAT_FAILED = 1,
	STAT_NO_TEXT = 2,	/* it has none, or it is not known yet */
};

/* Count @ns in the group of @session. @flags: enum stat_flag. */
static __attribute__((noinline)) void stat_count(struct session *session, __u64 ns, __u32 flags)
{
	struct stat_key key = { .engine_number = session->engine_number };
	__u64 one = 1, *n;
	__u32 log = record_log2(ns), owner = session->s.head.owner;

	key.coarse = (__u16)record_log2(ns / VALUE(stat_unit_ns));
	key.fine = (__u16)(ns < STAT_FINE ? ns : (log - 3) * STAT_FINE + (ns >> (log - 4) & 15));
	if (VALUE(stat_by) == STAT_BY_COMMAND && !(flags & STAT_NO_TEXT))
		stat_command(key.group, session);
	else if (VALUE(stat_by) == STAT_BY_STATUS)
		stat_status(key.group, flags & STAT_FAILED);
	else if (VALUE(stat_by) > STAT_BY_STATUS)
		__builtin_memcpy(key.group, session->group, STAT_GROUP);
	n = bpf_map_lookup_elem(histogram, &key);
	if (n) {
		__sync_fetch_and_add(n, 1);
		return;
	}
	if (owner_may_add_group(owner) &&
	    !bpf_map_update_elem(histogram, &key, &one, BPF_NOEXIST)) {
		owner_entries(owner, OWNER_GROUPS, 1);
		return;
	}
	/* Another CPU added the key, or the table is full. */
	n = bpf_map_lookup_elem(histogram, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		lost_at(session->s.target_id, owner, LOST_TABLE_FULL);
}

#endif
