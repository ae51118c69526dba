/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Owners: the users whose processes are traced, and their shares of the buffer and the tables.
 *
 * A process can cause any number of records, sessions and table entries. So that the processes of
 * one user cannot displace what is to be reported about those of another user, each user gets at
 * most OWNER_SHARE() of everything, and losses are counted for each user. The user is the kernel's
 * user ID, which an unprivileged process cannot choose. A secret factor maps it to one of OWNERS
 * elements, of two users of one element to the next one, so that no user can arrange to share it.
 */
#ifndef BPF_OWNER_H
#define BPF_OWNER_H

#include "bpf/bpf.h"
#include "bpf/event.h"

CONSTANT(secret);	/* both random and odd */
CONSTANT(other_secret);
CONSTANT(ring_share);	/* bytes of the ring buffer for one user; 0: no limit */
CONSTANT(session_share);	/* entries of OWNER_SESSIONS for one user .. */
CONSTANT(group_share);		/* .. of the table of OWNER_GROUPS */
CONSTANT(thread_share);		/* .. and of map "threads" */
CONSTANT(wait_share);		/* .. and of map "waits" */

MAP(owners);		/* array: struct owner, written by programs */
MAP(grants);		/* array: struct grant, written by user space */

INLINE struct owner *owner_get(__u32 number)
{
	number &= OWNERS - 1;
	return bpf_map_lookup_elem(owners, &number);
}

INLINE struct grant *owner_grant(__u32 number)
{
	number &= OWNERS - 1;
	return bpf_map_lookup_elem(grants, &number);
}

/* Return whether element @number is that of user @uid, for whom a free one is claimed. */
INLINE int owner_is(__u32 number, __u32 uid)
{
	struct owner *owner = owner_get(number);

	if (!owner)
		return 0;
	if (!owner->known) {
		owner->uid = uid;
		owner->known = OWNER_ONE;
	}
	return owner->uid == uid;
}

/* Return the number of the current process's owner: of two users of one element, the next one. */
static __attribute__((noinline)) __u32 owner_current(void)
{
	__u32 uid = (__u32)bpf_get_current_uid_gid(), number = uid * VALUE(secret) >> OWNER_SHIFT;
	struct owner *owner;

	if (owner_is(number, uid))
		return number;
	if (owner_is(number + 1, uid))
		return (number + 1) & (OWNERS - 1);
	if (owner_is(number + 2, uid))
		return (number + 2) & (OWNERS - 1);
	owner = owner_get(number);
	if (owner)
		owner->known = OWNER_SEVERAL;
	return number;
}

/* Return owner @number if it may have @size more bytes in the ring buffer, or NULL. */
INLINE struct owner *owner_may_send(__u32 number, __u64 size)
{
	struct owner *owner = owner_get(number);
	struct grant *grant = owner_grant(number);

	if (!owner || !grant)
		return 0;
	/* Negative: the record was received before the program that sent it counted it. */
	if (VALUE(ring_share) && (__s64)(READ_ONCE(owner->sent) - READ_ONCE(grant->received) +
					 OWNER_CHARGE(size)) > (__s64)VALUE(ring_share))
		return 0;
	return owner;
}

/* Return whether owner @number may have another session. */
INLINE int owner_may_add_session(__u32 number)
{
	struct owner *owner = owner_get(number);
	struct grant *grant = owner_grant(number);

	return owner && grant && (__s64)(READ_ONCE(owner->entries[OWNER_SESSIONS]) -
					 READ_ONCE(grant->removed)) < (__s64)VALUE(session_share);
}

/* Return whether owner @number may have another entry in the table of OWNER_GROUPS. */
INLINE int owner_may_add_group(__u32 number)
{
	struct owner *owner = owner_get(number);

	return owner && READ_ONCE(owner->entries[OWNER_GROUPS]) < VALUE(group_share);
}

/* Return whether owner @number may have another entry in map "threads". */
INLINE int owner_may_add_thread(__u32 number)
{
	struct owner *owner = owner_get(number);

	return owner &&
	       (__s64)READ_ONCE(owner->entries[OWNER_THREADS]) < (__s64)VALUE(thread_share);
}

/* Return whether owner @number may have another entry in map "waits". */
INLINE int owner_may_add_wait(__u32 number)
{
	struct owner *owner = owner_get(number);

	return owner &&
	       (__s64)READ_ONCE(owner->entries[OWNER_WAITS]) < (__s64)VALUE(wait_share);
}

/* Return whether owner @number may have another element of map "losses". */
INLINE int owner_may_add_losses(__u32 number)
{
	struct owner *owner = owner_get(number);

	return owner && READ_ONCE(owner->entries[OWNER_LOSSES]) < LOSSES_SHARE;
}

/* Add @n to the entries of owner @number in @table. */
INLINE void owner_entries(__u32 number, __u32 table, __s64 n)
{
	struct owner *owner = owner_get(number);

	if (owner)
		ATOMIC_ADD(&owner->entries[table], n);
}

#endif
