/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel keeps of each session, see bpf/session.h and bpf/slot.h: which of them run a
 * statement, and which did when detaching began.
 */
#ifndef DB_SESSIONS_H
#define DB_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "db/discover.h"

/* A session that was running a statement when sessions_keep() looked, with its text so far. */
struct sessions_kept {
	struct sessions_kept *next;
	uint64_t key;
	bool has_text;
	struct session session;
};

struct sessions {
	int map, slot_map, ignored_map;	/* "sessions", "slot_sessions", "ignored"; borrowed */
	struct slot *slots;		/* map "slots", shared; NULL: there are none */
	uint32_t slot_shift;		/* 64 - the binary logarithm of their number */
	uint32_t bytes;			/* of an element: struct session and its text */
	uint32_t text_bytes;		/* of that, at most */
	bool no_memory;			/* the servers' memory cannot be found: PIDs are not the kernel's */
	const struct discover *discover;	/* borrowed: the files that ->s.target_id counts */
	struct sessions_kept *kept;
};

/*
 * How many slots sessions of @bytes get, a power of two; the kernel sets their memory aside, which
 * the sessions in its hash take only when they are there.
 */
uint32_t sessions_slots(uint32_t bytes);

/* Map the @n slots of map "slots", a descriptor. Return 0 or -errno. */
int sessions_share(struct sessions *sessions, int slots_map, uint32_t n);

/* Adds a session of thread @tid, unless there is one: programs have seen more of it. 0 or -errno. */
int sessions_add(const struct sessions *sessions, uint32_t tid, struct session *session);

/* Have the programs ignore the session of thread @tid from now on, if it has one. */
void sessions_ignore(const struct sessions *sessions, uint32_t tid);

/* Deletes those of servers that are gone; a thread's goes with it. */
void sessions_prune(struct sessions *sessions);

/* Calls @each with each statement that runs; without @has_text its text is not known. */
void sessions_running(struct sessions *sessions, void *arg,
		      void (*each)(void *arg, const struct event_statement *s, bool has_text));

/* Keeps what runs and began before @time_ns of the kernel's clock. */
void sessions_keep(struct sessions *sessions, uint64_t time_ns);

/* Drops of what is kept that whose end was seen since. */
void sessions_settle(struct sessions *sessions);

/* Frees what it keeps and shares, not @sessions. */
void sessions_close(struct sessions *sessions);

#endif
