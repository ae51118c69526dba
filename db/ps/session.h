/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A session of a server, as ps lists it. All strings are foreign bytes. */
#ifndef DB_PS_SESSION_H
#define DB_PS_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/event.h"

/* Maximum number, of all users and of the servers of one; the others are counted. */
#define PS_SESSIONS	65536
#define PS_USER_SESSIONS	49152
#define PS_TEXT_BYTES	(32u << 20)	/* of a user's texts; further ones are cut at .. */
#define PS_TEXT_LEAST	256		/* .. this length */
#define PS_BLOCKERS	8	/* of one session; the others are not kept */
#define PS_STAGE	72	/* bytes of the name of a stage, with the NUL */

enum ps_state {
	PS_UNKNOWN,
	PS_ACTIVE,		/* runs a statement */
	PS_IDLE,
	PS_IN_TRANSACTION,	/* idle in a transaction */
	PS_ABORTED,		/* idle in a transaction that failed */
};

/* Times are of CLOCK_REALTIME in ns; 0: unknown, or there is none. */
struct ps_session {
	const struct server *server;	/* never NULL; valid until the next ps_read() */
	struct who who;
	uint32_t ns_pid;		/* of a process: its PID as the server sees it; 0 */
	bool background;		/* it serves no client */
	/* ps_session_id() of the session for which a parallel worker works; 0: it is none */
	uint64_t leader;
	enum ps_state state;
	uint64_t statement_ns;		/* begin of the statement, if ->state is PS_ACTIVE */
	uint64_t state_ns;		/* since when it has been in this state */
	uint64_t transaction_ns;	/* begin of the transaction */
	char wait[WAIT_EVENT];		/* "Lock:relation"; "": does not wait, or unknown */
	char stage[PS_STAGE];		/* MySQL's, "Sending data"; "": unknown, or there is none */
	/*
	 * ps_session_id() of those that hold the awaited lock or are ahead in its queue; 0: a
	 * prepared transaction
	 */
	uint64_t blockers[PS_BLOCKERS];
	unsigned int nblockers;		/* 0 also if they are unknown */
	char *text;			/* of the statement, or the last one; owned; or NULL */
	size_t len;
	bool cut;			/* the text is incomplete */
	/* What it executes, see db/plan/plan.h; owned; NULL: it was not asked for, or unknown. */
	char *plan;
	size_t plan_len;
};

/* Return what a server calls the session: the ID of its connection or process. */
static inline uint64_t ps_session_id(const struct ps_session *session)
{
	return session->who.connection ? session->who.connection : session->who.pid;
}

#endif
