/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where sessions are kept. Most have a slot, that is a place in arrays, because a look into a hash
 * costs more than anything else that a hit does. The hash has those whose slot is another one's.
 */
#ifndef BPF_SLOT_H
#define BPF_SLOT_H

#include "bpf/bpf.h"
#include "bpf/event.h"

CONSTANT(slot_shift);	/* 64 - the binary logarithm of the number of slots; 0: there are none */

MAP(slots);		/* array: struct slot */
MAP(slot_sessions);	/* array: what is kept of the session that has the slot .. */
MAP(sessions);		/* .. and hash, by u64 key, see session_key(), of one that has none */
MAP(blank);		/* array of one: a session that is all zero */

INLINE __u32 slot_number(__u64 key)
{
	return SLOT_PRODUCT(key) >> VALUE(slot_shift);
}

/* The session of @key, if it has a slot. */
INLINE struct session *session_seated(__u64 key)
{
	__u32 number = slot_number(key);
	struct slot *slot = bpf_map_lookup_elem(slots, &number);

	return slot && slot->key == key ? bpf_map_lookup_elem(slot_sessions, &number) : 0;
}

/* The session of @key, if there is one. */
INLINE struct session *session_find(__u64 key)
{
	struct session *session = session_seated(key);

	return session ? session : bpf_map_lookup_elem(sessions, &key);
}

/* A new session of @key, all zero but for its text, in a slot. NULL: that is another one's. */
INLINE struct session *session_seat(__u64 key)
{
	__u32 number = slot_number(key);
	struct slot *slot = bpf_map_lookup_elem(slots, &number);
	struct session *session = bpf_map_lookup_elem(slot_sessions, &number);

	if (!VALUE(slot_shift) || !slot || !session || slot->claims)
		return 0;
	/* Not by an exchange, which kernels have from 5.12. Of two at once, none gets it. */
	__sync_fetch_and_add(&slot->claims, 1);
	if (*(volatile __u32 *)&slot->claims != 1) {
		__sync_fetch_and_add(&slot->claims, -1);
		return 0;
	}
	*session = (struct session){};
	*(volatile __u64 *)&slot->key = key;
	/*
	 * User space adds to the hash what it finds running, since a moment ago perhaps. It looks at
	 * ->key once it has added, and we the other way round: one of the two sees the other.
	 */
	bpf_map_delete_elem(sessions, &key);
	return session;
}

/* A new session of @key in the hash, or the one that is there. NULL: there is no room. */
INLINE struct session *session_hash(__u64 key)
{
	__u32 zero = 0;
	void *zeros = bpf_map_lookup_elem(blank, &zero);

	if (zeros)
		bpf_map_update_elem(sessions, &key, zeros, BPF_NOEXIST);
	return bpf_map_lookup_elem(sessions, &key);
}

/* Whether there was a session of @key, which is no more. */
INLINE int session_drop(__u64 key)
{
	__u32 number = slot_number(key);
	struct slot *slot = bpf_map_lookup_elem(slots, &number);
	int found = slot && slot->key == key;

	if (slot && (found || slot->unwanted == key)) {
		/* User space takes it away by setting ->unwanted first, so that goes last. */
		*(volatile __u64 *)&slot->key = 0;
		*(volatile __u64 *)&slot->unwanted = 0;
		__sync_fetch_and_add(&slot->claims, -1);
	}
	return !bpf_map_delete_elem(sessions, &key) || found;
}

#endif
