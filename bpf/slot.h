/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Storage of sessions. Most have a slot, an element of an array, because a hash look-up costs more
 * than anything else that a hit does. A session whose slot is taken by another one goes to the
 * overflow, which is a hash (map "sessions").
 *
 * The slot protocol
 *
 * Programs run on all CPUs at once while user space changes the maps; there is no lock. The unit
 * test tests/unit/slots.c runs the functions below and those of db/session/sessions.c in every
 * order.
 *
 * A session has a key: the ID of its thread, or a hash of the PID and the address of the server's
 * session object. No two programs run for the same key at the same time. The key determines the
 * slot, whose states are:
 *
 *	claims	owner	key
 *	0	0	0	free; the session in it is all zero
 *	1	K	K	has the session of K
 *	1	K	0	K's session is dismissed: not wanted, but K keeps the slot
 *
 * During a transition claims also counts attempts, and owner and key change one after the other.
 *
 * Writers:
 *	claims	A program that claims the slot adds 1 and then reads the sum. If that is not 1 it
 *		subtracts 1 and uses the overflow: of two concurrent attempts, both may fail. (An
 *		atomic exchange would decide, but kernels before 5.12, 5ffa25502b5a, lack it.) The
 *		program that drops the session subtracts 1 as its last step.
 *	owner	Only the owner, and user space once the owner's process is gone.
 *	key	As owner; and user space exchanges K for 0 to dismiss K's session.
 *
 * Interleavings, and why they are safe:
 *
 * - L claims the slot while K drops its session. L owns the slot only if its own increment makes
 *   claims 1, that is after K's decrement, the last step of the drop.
 *
 * - User space dismisses K's session while a program uses it. claims and owner stay, so the memory
 *   remains K's until K drops it. K's next hit finds another key in the slot and nothing in the
 *   overflow, but K in map "ignored".
 *
 * - User space dismisses K's session while K exits. User space (1) marks K as ignored, (2)
 *   exchanges key, (3) if there was no session to dismiss, in the slot or the overflow, deletes the
 *   mark. The drop (a) clears key, (b) deletes the mark. If (2) succeeds, (b) comes after (1) and
 *   deletes the mark; otherwise (3) does. No mark outlives the thread to hide the next one with its
 *   ID. Nor does a claim: user space does not write owner while K lives, and the drop clears it, so
 *   that the next thread with K's ID cannot drop the slot of another one. A thread loses its ID
 *   also by execve(2), of which thread_exec() learns.
 *
 * - User space adds to the overflow a session that runs since before tracing began, while K's first
 *   hit claims a slot. The claim sets key, then deletes K from the overflow. User space adds K,
 *   then reads key, and deletes K again if it is there. Whichever comes second sees the first: K
 *   is not in both places.
 *
 * - A server was killed, and no program will drop the sessions that are its objects. User space
 *   frees their slots (sessions_prune()), in the order of a drop. A session that has just been
 *   claimed is not mistaken for one of those: it is all zero, and PID 0 means not filled in yet.
 *
 * - A hostile process passes the address of one session object in two threads, so that one drops
 *   the session while the other writes to it. What was written stays in the free slot; the next
 *   claim clears it, so that it never becomes a statement of the next owner. What is written after
 *   that claim does change the next owner's session. A program sends a session only if it is its
 *   own process's, so that no process causes a record of another one.
 *
 * - User space deletes a session from the overflow while a program uses it. The kernel may reuse
 *   the element for another key before the program ends. BPF offers no protection; slots need none.
 *
 * Memory ordering. On x86-64, stores are not reordered and XADD is a full barrier. On aarch64, XADD
 * without BPF_FETCH (5ca419f2864a, 5.12) is a relaxed STADD or a pair of LDXR and STXR, which may
 * take effect before earlier stores to other addresses. The protocol relies on:
 *
 * - Claim: the stores to the slot depend on the value read from claims and do not precede it.
 *
 * - Drop: between the stores and the decrement are two hash deletions. Each takes and releases the
 *   lock of a bucket, even if it finds nothing. The stores precede the first release, which
 *   precedes the second acquisition, which precedes the decrement.
 *
 * - Marks and additions: programs store to key before they lock the hash bucket, user space reads
 *   key after it. If the program locks first, user space sees its store; otherwise the program
 *   finds the mark or the addition, and deletes it.
 *
 * - A free slot's session is all zero, so there is no order to keep between clearing it and key.
 */
#ifndef BPF_SLOT_H
#define BPF_SLOT_H

#include "bpf/owner.h"

CONSTANT(slot_shift);	/* 64 - log2(number of slots); 0: there are none */

MAP(slots);		/* array: struct slot */
MAP(slot_sessions);	/* array: the session that has the slot */
MAP(sessions);		/* hash: u64 key, see session_key() → the session that has no slot */
MAP(ignored);		/* hash: u64 key of a session that is not wanted → anything */
MAP(blank);		/* array of one: a session that is all zero */

INLINE __u32 slot_number(__u64 key)
{
	return SLOT_PRODUCT(key) >> VALUE(slot_shift);
}

/* Return the session of @key if it is in a slot, or NULL. */
INLINE struct session *session_in_slot(__u64 key)
{
	__u32 number = slot_number(key);
	struct slot *slot = bpf_map_lookup_elem(slots, &number);

	if (!slot || READ_ONCE(slot->key) != key)
		return 0;
	return bpf_map_lookup_elem(slot_sessions, &number);
}

/* Return the session of @key, or NULL. */
INLINE struct session *session_find(__u64 key)
{
	struct session *session = session_in_slot(key);

	return session ? session : bpf_map_lookup_elem(sessions, &key);
}

/* Claim a slot for a new session of @key. Return it, all zero but for its text, or NULL: taken. */
INLINE struct session *session_claim_slot(__u64 key)
{
	__u32 number = slot_number(key);
	struct slot *slot = bpf_map_lookup_elem(slots, &number);
	struct session *session = bpf_map_lookup_elem(slot_sessions, &number);

	if (!VALUE(slot_shift) || !slot || !session || READ_ONCE(slot->claims))
		return 0;
	ATOMIC_ADD(&slot->claims, 1);
	if (READ_ONCE(slot->claims) != 1) {
		ATOMIC_ADD(&slot->claims, -1);
		return 0;
	}
	/* It is zero, unless a hostile process has used one key in two threads. */
	CLEAR(session);
	WRITE_ONCE(slot->owner, key);
	WRITE_ONCE(slot->key, key);
	/* After the key: user space may add the same session at this time. */
	bpf_map_delete_elem(sessions, &key);
	return session;
}

/* Return a new session of @key in the overflow, or the one that is there. NULL: no room. */
INLINE struct session *session_add_overflow(__u64 key)
{
	__u32 zero = 0;
	void *zeros = bpf_map_lookup_elem(blank, &zero);

	if (zeros)
		bpf_map_update_elem(sessions, &key, zeros, BPF_NOEXIST);
	return bpf_map_lookup_elem(sessions, &key);
}

/* Drop the session of @key, if there is one, and the mark that it is ignored. */
INLINE void session_drop(__u64 key)
{
	__u32 number = slot_number(key);
	struct slot *slot = bpf_map_lookup_elem(slots, &number);
	int owned = slot && READ_ONCE(slot->owner) == key;
	struct session *session = bpf_map_lookup_elem(sessions, &key);
	__u32 counted = session ? session->counted : 0;

	if (owned) {
		session = bpf_map_lookup_elem(slot_sessions, &number);
		if (session)
			CLEAR(session);
		WRITE_ONCE(slot->key, 0);
		WRITE_ONCE(slot->owner, 0);
	}
	/* Unconditional: both deletions order the stores before the decrement. */
	if (!bpf_map_delete_elem(sessions, &key) && counted)
		owner_entries(counted - 1, OWNER_SESSIONS, -1);
	bpf_map_delete_elem(ignored, &key);
	if (owned)
		ATOMIC_ADD(&slot->claims, -1);
}

#endif
