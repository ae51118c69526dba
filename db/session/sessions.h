/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/session/: the sessions in the maps of the programs, who they belong to, what a backend does
 * now, sessions that began before tracing did, and the time breakdown of a statement.
 * It attaches no probes to servers.
 */

/*
 * User-space access to the sessions in the BPF maps, see bpf/session.h and bpf/slot.h, and a
 * snapshot of the statements that were running when detaching began.
 */
#ifndef DB_SESSION_SESSIONS_H
#define DB_SESSION_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "db/discover/discover.h"

/* States of a session, a bit set. */
enum session_state {
	SESSION_HAS_TEXT = 1 << 0,	/* that of the statement is known */
	SESSION_HAS_STATEMENT = 1 << 1,	/* it is running or suspended .. */
	SESSION_HAS_TRANSACTION = 1 << 2,	/* .. and this one is open */
};

/* A session that had such a ->state at sessions_keep(); all of the map's element. */
struct sessions_kept {
	struct sessions_kept *next;
	uint64_t key;
	unsigned int state;
	struct session session;
};

struct sessions {
	int map, slot_map, ignored_map;	/* "sessions", "slot_sessions", "ignored"; borrowed .. */
	int objects_map;		/* .. and "objects" */
	struct slot *slots;		/* map "slots", mapped; NULL: there are none */
	uint32_t slot_shift;		/* 64 - log2(number of slots) */
	uint32_t bytes;			/* size of a map element: struct session and its text */
	uint32_t text_bytes;		/* maximum length of the text .. */
	uint32_t text_most;		/* .. and of both, if there are two */
	uint32_t transaction_at;	/* offset of the transaction in an element; 0: none */
	uint32_t nested_at;		/* the same of what runs in routines */
	bool both;			/* transactions and statements are wanted */
	uint32_t max;			/* sessions without a slot at once */
	bool no_memory;			/* PIDs are not the kernel's: do not read server memory */
	struct owners *owners;		/* borrowed */
	const struct discover *discover;	/* borrowed; has the targets */
	struct sessions_kept *kept;		/* owned */
};

/*
 * Return the number of slots for sessions of @bytes, a power of two. Their memory is allocated in
 * advance, unlike that of the overflow.
 */
uint32_t sessions_slots(uint32_t bytes);

/* Map the @n slots of map "slots", a descriptor. Return 0 or -errno. */
int sessions_share(struct sessions *sessions, int slots_map, uint32_t n);

/*
 * Add a session of thread @tid whose statement is running. Return -EEXIST if it already has one,
 * 0 or another -errno.
 */
int sessions_add(const struct sessions *sessions, uint32_t tid, struct session *session);

/* Ignore the session of thread @tid from now on, until the thread exits. */
void sessions_ignore(const struct sessions *sessions, uint32_t tid);

/* Tell the programs where the sessions of @target, if they are objects, have what. */
void sessions_places(const struct sessions *sessions, const struct target *target);

/*
 * Read the client of @session, if that is an object, from the server's memory to @who. Return false
 * if it is unknown.
 */
bool sessions_who(const struct sessions *sessions, const struct session *session, struct who *who);

/* Remove the sessions of processes that are gone; a statement that is open in one is lost. */
void sessions_prune(struct sessions *sessions);

/*
 * Remove the sessions of target @target_id, which has no probes any more, that are objects of the
 * server: no program learns of their end. Those of threads end with these.
 */
void sessions_forget(struct sessions *sessions, uint32_t target_id);

/* Return the transaction that @session has open, or NULL. */
const struct event_transaction *sessions_transaction(const struct sessions *sessions,
						     const struct session *session);

/*
 * Call @each for each session with a running or suspended statement or, with ->transaction_at, a
 * transaction instead; with ->both, either.
 */
void sessions_running(struct sessions *sessions, void *arg,
		      void (*each)(void *arg, const struct session *session, unsigned int state));

/* Keep those whose statement, or transaction, began before @time_ns of the programs' clock. */
void sessions_keep(struct sessions *sessions, uint64_t time_ns);

/* Drop those kept whose statement, or transaction, has ended since. */
void sessions_settle(struct sessions *sessions);

/* Return the number of those kept, with ->both of the ones with a statement. */
size_t sessions_number_kept(const struct sessions *sessions);

/* Free the kept sessions and unmap the slots; @sessions itself is the caller's. */
void sessions_close(struct sessions *sessions);

#endif
