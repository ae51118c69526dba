/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PostgreSQL: the programs on its probes, wait events, parallel workers and sorts. */
#ifndef BPF_POSTGRES_H
#define BPF_POSTGRES_H

#include "bpf/session.h"

#define TAG_BYTES	64	/* COMPLETION_TAG_BUFSIZE */

ARGUMENT(text);		/* pointer to the statement's text; 0: idle */
ARGUMENT(rows);		/* rows that the command processed */
ARGUMENT(tag);		/* pointer to the command's completion tag: "SELECT 1" */
ARGUMENT(worker);	/* number of a parallel worker, from 0; negative: not a worker */
ARGUMENT(leader);	/* PID of its leader */
ARGUMENT(sqlstate);	/* of the first error in process: five characters of 6 bits .. */
ARGUMENT(error_index);	/* .. and the index of the current one; -1: none */
ARGUMENT(sort);		/* SORT_BEGINS; else not 0: the sort that ends went to disk */
ARGUMENT(space);	/* blocks on disk, or KiB of memory, that the sort used */

/* Return the part of wait event @event, or WAIT_IO, or 0: its system call decides. */
INLINE __u32 postgres_wait_part(__u32 event)
{
	/* The class, the same since 10. */
	switch (event >> 24) {
	case 0x00:		/* none */
		return 0;
	case 0x01:
		return BREAKDOWN_LWLOCK;
	case 0x03:		/* heavyweight lock */
	case 0x04:		/* buffer pin */
		return BREAKDOWN_LOCK;
	case 0x06:		/* client */
		return BREAKDOWN_NETWORK;
	case 0x08:
		return BREAKDOWN_IPC;
	case 0x09:		/* timeout */
		return BREAKDOWN_SLEEP;
	case 0x0a:
		return WAIT_IO;
	}
	return BREAKDOWN_OTHER;
}

/* Start the accounting of a process that serves no client, if it is a parallel worker. */
static __attribute__((noinline)) void postgres_worker(void *ctx)
{
	struct event_breakdown *t;

	if ((int)arg_worker(ctx) < 0 || !arg_leader(ctx))
		return;
	t = breakdown_start(ctx, bpf_ktime_get_ns());
	if (!t)
		return;
	t->worker = 1;
	t->session = 0;
	t->leader = workers_key(ctx, arg_leader(ctx));
}

/*
 * pgstat_report_activity(state, text). A text starts a statement, or is the next step (Parse, Bind,
 * Execute) of one that has not completed; after a completion it is the next statement of a
 * pipeline. Without a text the session is idle: everything has ended, the commit included.
 */
PROGRAM(activity)
{
	const char *text = (const char *)arg_text(ctx);
	struct session *session = session_get(ctx, 0);
	struct event_statement *s;
	__u64 end_ns = 0;

	if (!session) {
		if (VALUE(want_breakdown) && text)
			postgres_worker(ctx);
		return 0;
	}
	s = &session->s;
	session_joined(session);
	if (session_phase(s) != SESSION_IDLE) {
		if (text && session_phase(s) == SESSION_SYNCING)
			end_ns = s->completed_ns;
		/* Another text before its completion: only parsed, or its portal is suspended. */
		else if (!text || s->flags & STATEMENT_COMPLETED || !text_same(session, text))
			end_ns = bpf_ktime_get_ns();
	}
	/* One call for both: it is inlined. */
	if (end_ns)
		statement_end(ctx, session, end_ns);
	if (!text) {
		session_idle(ctx, session);
		return 0;
	}
	if (!(s->flags & SESSION_OPEN))
		statement_begin(ctx, session, bpf_ktime_get_ns(), 0);
	s->depth++;
	/* Copy the text now: the server frees it before the statement ends. */
	text_read(session, text);
	return 0;
}

/* A command of a simple query, or a statement of a pipeline, has completed. Return it, or NULL. */
INLINE struct event_statement *statement_complete(void *ctx)
{
	struct session *session = session_get(ctx, SESSION_JOINED);
	struct event_statement *s;

	if (!session || !(session->s.flags & SESSION_OPEN))
		return 0;
	s = &session->s;
	/* After a simple query the session becomes idle at once, which reads the clock. */
	if (s->depth > 1)
		s->completed_ns = bpf_ktime_get_ns();
	s->flags &= ~STATEMENT_ERROR;
	s->flags |= STATEMENT_COMPLETED;
	return s;
}

PROGRAM(completion)
{
	struct event_statement *s = statement_complete(ctx);

	if (!s || !VALUE(want_rows))
		return 0;
	s->rows += arg_rows(ctx);
	s->flags |= STATEMENT_HAS_ROWS;
	return 0;
}

/* As completion, with the number of rows in the last word of the completion tag. */
PROGRAM(completion_tag)
{
	struct event_statement *s = statement_complete(ctx);
	char tag[TAG_BYTES] = {};
	__u64 rows = 0;

	if (!s || !VALUE(want_rows) ||
	    bpf_probe_read_user_str(tag, sizeof(tag), (const void *)arg_tag(ctx)) < 0)
		return 0;
	for (int i = 0; i < TAG_BYTES && tag[i]; i++) {
		if (tag[i] >= '0' && tag[i] <= '9') {
			rows = rows * 10 + (__u64)(tag[i] - '0');
		} else {
			rows = 0;
		}
	}
	s->rows += rows;
	s->flags |= STATEMENT_HAS_ROWS;
	return 0;
}

/* Return the SQLSTATE of the error being handled, see event_statement; 0: unknown. */
INLINE __u64 postgres_sqlstate(void *ctx)
{
	__u64 packed = arg_sqlstate(ctx), state = 0;

	if (!packed || arg_error_index(ctx))
		return 0;
	for (int i = 0; i < SQLSTATE_LENGTH; i++)
		state |= ((packed >> 6 * i & 0x3f) + '0') << 8 * i;
	return state;
}

/*
 * The transaction is aborted: the current statement has failed, unless it completes after all (a
 * procedure that rolls back and continues).
 */
PROGRAM(failure)
{
	struct session *session = session_get(ctx, SESSION_JOINED);

	if (session && session->s.flags & SESSION_OPEN) {
		session->s.flags |= STATEMENT_ERROR;
		session->s.sqlstate = postgres_sqlstate(ctx);
	}
	return 0;
}

/*
 * A sort is freed. A sort that an earlier statement began, such as that of a cursor, is not counted
 * for the current statement.
 */
INLINE void postgres_sorted(struct event_breakdown *t, int external, __u64 space)
{
	if (!t->use[USE_SORTS])
		return;
	t->sorted++;
	if (!external) {
		use_largest(&t->use[USE_SORT_BYTES], space * 1024);
		return;
	}
	t->use[USE_SORTS_EXTERNAL]++;
	t->use[USE_SORT_BLOCKS] += space;
}

/* A sort begins, or is freed. */
PROGRAM(sort)
{
	struct event_breakdown *t = breakdown_current();
	__u32 sort = (__u32)arg_sort(ctx);

	if (t && sort == SORT_BEGINS)
		t->use[USE_SORTS]++;
	else if (t)
		postgres_sorted(t, sort != 0, arg_space(ctx));
	return 0;
}

#endif
