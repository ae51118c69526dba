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

#define STAT_BLANKS	24	/* blanks before a word, at most, below 32 */
#define STAT_SKIPPED	2	/* PostgreSQL: statements before the one that counts, at most, .. */
#define STAT_AHEAD	48	/* .. and bytes of each, below 64 */

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

INLINE __u64 stat_is_same(__u64 a, __u64 b)
{
	return stat_below(a ^ b, 1);
}

INLINE __u64 stat_is_letter(__u64 c)
{
	return stat_below(((c | 0x20) - 'a') & 0xff, 26);
}

/* Return the offset of the first character from @at on that is not a blank. */
INLINE __u64 stat_skip_blanks(struct session *session, __u64 at)
{
	__u64 len = session->s.text_len, same = 1, n = 0;

	NO_UNROLL
	for (__u64 i = 0; i < STAT_BLANKS; i++) {
		same &= stat_is_blank((__u8)session->text[at + i]) & stat_below(at + i, len);
		n += same;
	}
	return at + (n & 31);	/* a bound for the verifier */
}

/*
 * Return the offset of the next statement, or 0: there is none, the one at @at is long, or it has
 * what may quote a semicolon.
 */
INLINE __u64 stat_skip(struct session *session, __u64 at)
{
	const __u64 quotes = 1ull << '"' | 1ull << '#' | 1ull << '$' | 1ull << '\'' | 1ull << '-' |
			     1ull << '/';
	__u64 len = session->s.text_len, same = 1, quoted = 0, n = 0;

	NO_UNROLL
	for (__u64 i = 0; i < STAT_AHEAD; i++) {
		__u64 c = (__u8)session->text[at + i];

		same &= stat_below(at + i, len) & (1 ^ stat_is_same(c, ';'));
		quoted |= same & ((stat_below(c, 64) & quotes >> (c & 63)) |
				  stat_is_same(c, '`') | stat_is_same(c, '\\'));
		n += same;
	}
	n &= 63;	/* a bound for the verifier */
	if (quoted || n >= STAT_AHEAD || at + n >= len)
		return 0;
	at = stat_skip_blanks(session, at + n + 1);
	return at < len && stat_is_letter((__u8)session->text[at]) ? at : 0;
}

/* The first eight letters of a word as a number. */
#define STAT_WORD(a, b, c, d, e, f, g, h)					\
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 |	\
	 (__u64)(e) << 32 | (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

/* Return whether @group is a command that only prepares for what follows in the same text. */
INLINE __u64 stat_prepares(const char group[STAT_GROUP])
{
	__u64 word;

	__builtin_memcpy(&word, group, sizeof(word));
	return stat_is_same(word, STAT_WORD('b', 'e', 'g', 'i', 'n', 0, 0, 0)) |
	       stat_is_same(word, STAT_WORD('s', 't', 'a', 'r', 't', 0, 0, 0)) |
	       stat_is_same(word, STAT_WORD('s', 'a', 'v', 'e', 'p', 'o', 'i', 'n')) |
	       stat_is_same(word, STAT_WORD('s', 'e', 't', 0, 0, 0, 0, 0)) |
	       stat_is_same(word, STAT_WORD('r', 'e', 's', 'e', 't', 0, 0, 0));
}

/*
 * The text of @session is another one: set its group, if that is the command, in lower case, as
 * command_skip() of sql/ finds it behind @skipped statements at most.
 */
static __attribute__((noinline)) void stat_command(struct session *session, int skipped)
{
	__u64 len = session->s.text_len, at;
	char *group = session->group;

	if (VALUE(stat_by) != STAT_BY_COMMAND)
		return;
	at = stat_skip_blanks(session, 0);
	NO_UNROLL
	for (int round = 0; round <= skipped; round++) {
		__u64 same = 1;

		NO_UNROLL
		for (__u64 i = 0; i < STAT_GROUP - 1; i++) {
			__u64 c = (__u8)session->text[at + i] | 0x20;

			same &= stat_is_letter(c) & stat_below(at + i, len);
			group[i] = c & -same;
		}
		if (!stat_prepares(group))
			break;
		at = stat_skip(session, at);
		if (!at)
			break;
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
	if (VALUE(stat_by) == STAT_BY_STATUS)
		stat_status(key.group, flags & STAT_FAILED);
	else if (VALUE(stat_by) > STAT_BY_STATUS ||
		 (VALUE(stat_by) == STAT_BY_COMMAND && !(flags & STAT_NO_TEXT)))
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
