/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PostgreSQL: the programs on its probes, wait events, parallel workers and sorts. */
#ifndef BPF_POSTGRES_H
#define BPF_POSTGRES_H

#include "bpf/transaction.h"

#define TAG_BYTES	64	/* COMPLETION_TAG_BUFSIZE */
#define NAME_BYTES	64	/* NAMEDATALEN: of a prepared statement's name, with the NUL */
#define NO_STATEMENT	0x3030303632	/* SQLSTATE 26000: no such prepared statement */
#define NO_PORTAL	0x3030303433	/* 34000 */
#define BAD_TEXT	0x3132303232	/* 22021: invalid in the client's encoding */
#define BAD_MESSAGE	0x3130503830	/* 08P01: violates the protocol */
#define EXIT_FATAL	1	/* the status after an error that ends the session */
#define INIT_PROCESSING	1	/* of ProcessingMode: the session has not begun */
#define OF_FRAME	512	/* bytes of the frame of ExecuteQuery(), at most */
#define DEST_EXECUTE	3	/* DestRemoteExecute: the result of an Execute message */

ARGUMENT(text);		/* pointer to the statement's text; 0: idle */
ARGUMENT(name);		/* pointer to the application's */
ARGUMENT(caller);	/* return address of the function; 0: unknown */
ARGUMENT(destination);	/* enum CommandDest of the command's result */
ARGUMENT(rows);		/* rows that the command processed */
ARGUMENT(tag);		/* pointer to the command's completion tag: "SELECT 1" */
ARGUMENT(leader);	/* PID of its leader */
ARGUMENT(sqlstate);	/* of the first error in process: five characters of 6 bits .. */
ARGUMENT(error_index);	/* .. and the index of the current one; -1: none */
ARGUMENT(status);	/* exit status of the process */
ARGUMENT(mode);		/* enum ProcessingMode */
ARGUMENT(activity);	/* enum BackendState that is reported .. */
ARGUMENT(running);	/* .. and STATE_RUNNING, which is 3 from 18 on */
ARGUMENT(applies);	/* not 0: it applies a transaction of a logical replication .. */
ARGUMENT(parallel_apply);	/* .. or parts of one */
ARGUMENT(sort);		/* SORT_BEGINS; else not 0: the sort that ends went to disk */
ARGUMENT(space);	/* blocks on disk, or KiB of memory, that the sort used */

/* Return the part of wait event @t->event, or WAIT_IO, or 0: its system call decides. */
INLINE __u32 postgres_wait_part(const struct event_breakdown *t)
{
	/* The class, the same since 10. */
	switch (t->event >> 24) {
	case 0x00:		/* none */
		return 0;
	case 0x01:
		return BREAKDOWN_LWLOCK;
	case 0x03:		/* heavyweight lock */
	case 0x04:		/* buffer pin */
		return BREAKDOWN_LOCK;
	case 0x06:		/* client */
		return BREAKDOWN_NETWORK;
	case 0x07:
		return BREAKDOWN_EXTENSION;
	case 0x08:
		return t->event == t->replication ? BREAKDOWN_REPLICATION : BREAKDOWN_IPC;
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
	if (!limit_permits_why(VALUE(target_id), bpf_ktime_get_ns()))
		return;
	t = breakdown_start(ctx, bpf_ktime_get_ns());
	if (!t)
		return;
	t->target_id = VALUE(target_id);
	t->worker = 1;
	t->session = 0;
	t->leader = workers_key(ctx, arg_leader(ctx));
}

/* A call of pgstat_report_activity(). */
struct step {
	const char *text;	/* NULL: the session is idle */
	__u64 caller;		/* 0: unknown */
	int parse;		/* it is that of a Parse message */
	int applies;		/* .text is NULL, but a transaction is applied */
};

/*
 * Return whether @text is that of a Parse message, in which it follows the NUL-terminated name of
 * the prepared statement. All other texts begin where the server allocated memory: at a multiple of
 * 8, behind a number whose upper bytes are not a character and a NUL. A read costs 3 % of a
 * statement: without @certain, the rare name is not checked whose NUL ends at a multiple of 8.
 */
INLINE int text_is_parsed(const char *text, int certain)
{
	unsigned char before[2];

	if ((__u64)text & 7)
		return 1;
	return certain && !bpf_probe_read_user(before, sizeof(before), text - sizeof(before)) &&
	       before[0] && !before[1];
}

/*
 * Complete a step of @session, which serves no client. Extensions report a text once more when they
 * become idle. A logical replication worker has no texts.
 */
INLINE void step_of_background(void *ctx, struct step *step)
{
	if ((__u32)arg_activity(ctx) != (__u32)arg_running(ctx))
		step->text = 0;
	else if (!step->text)
		step->applies = arg_applies(ctx) || arg_parallel_apply(ctx);
}

/*
 * The session has become idle while its statement has neither completed nor failed. Return whether
 * its portal is suspended, or bound only, and can be executed in another round trip: not outside of
 * a transaction.
 */
static __attribute__((noinline)) int portal_suspend(void *ctx, struct session *session)
{
	struct event_statement *s = &session->s;
	const char *text = (const char *)session->text_at;
	char first;

	if (!(s->flags & (SESSION_BOUND | SESSION_RESUMED)) && s->depth == 1 &&
	    text_is_parsed(text, 1))
		s->flags |= STATEMENT_PARSED;
	if (s->flags & (STATEMENT_PARSED | SESSION_INTERNAL) || !s->text_len ||
	    !arg_transaction(ctx))
		return 0;
	/* An empty simple query: at the start of the memory for messages, which is reused. */
	if (!(s->flags & (SESSION_BOUND | SESSION_RESUMED)) &&
	    (bpf_probe_read_user(&first, sizeof(first), text) || first != session->text[0]))
		return 0;
	s->flags &= ~SESSION_SETTLED;
	s->flags |= SESSION_PAUSED | (s->flags & SESSION_BOUND ? STATEMENT_FETCHED : 0);
	s->completed_ns = bpf_ktime_get_ns();
	if (VALUE(want_breakdown))
		breakdown_pause(ctx, s, s->completed_ns);
	return 1;
}

/* The client continues with the portal of a suspended statement: do not count the pause. */
static __attribute__((noinline)) void portal_resume(struct event_statement *s)
{
	__u64 now = bpf_ktime_get_ns();

	s->duration_ns += elapsed(s->completed_ns, now);
	s->completed_ns = 0;
	s->flags &= ~SESSION_PAUSED;
	s->flags |= SESSION_RESUMED;
	if (VALUE(want_breakdown))
		breakdown_resume(s, now);
}

/*
 * Return whether @step is a Parse behind the first step of @session's statement, which is one, too:
 * they are in the memory for messages, which no other step's text shares.
 */
INLINE int step_parses_next(struct session *session, const struct step *step)
{
	__u64 distance = (__u64)step->text - session->text_at + NAME_BYTES;

	if (distance > 2 * NAME_BYTES)
		return 0;
	if (!session->caller && session->s.depth == 1 && text_is_parsed(step->text, 1))
		session->s.flags |= STATEMENT_PARSED;
	return session->s.flags & STATEMENT_PARSED;
}

/*
 * Return whether @step may belong to @session's statement: a Parse does not, nor a Bind behind an
 * Execute, nor a step with another text. Read the step's caller.
 */
INLINE int step_continues(void *ctx, struct session *session, struct step *step)
{
	__u32 *flags = &session->s.flags;

	step->parse |= step_parses_next(session, step);
	if (step->parse || !text_same(session, step->text))
		return 0;
	step->caller = arg_caller(ctx);
	if (!(*flags & SESSION_BOUND) || !step->caller || step->caller == session->caller)
		return 1;
	/* A third kind: the first step was not a Bind, but a Parse that was not checked. */
	if (!(*flags & SESSION_UNPARSED) || (__u64)step->text == session->first_at)
		return 0;
	*flags &= ~SESSION_UNPARSED;
	return 1;
}

/*
 * Return whether @session's only step was an empty simple query, and not the Bind of a portal that
 * @step, with the same text, executes: its text is in the portal's memory. If a portal might have
 * been open before, the first step's caller was read, and it may have been an Execute, too.
 */
INLINE int portal_is_none(struct session *session, const struct step *step)
{
	if (session->s.flags & (SESSION_BOUND | SESSION_RESUMED) || session->caller ||
	    session->text_at != (__u64)step->text)
		return 0;
	session->s.flags |= SESSION_SETTLED;
	return 1;
}

/*
 * Return when the open statement of @session has ended, if @step or, without a text, becoming idle
 * ends it; or 0 if it goes on.
 */
INLINE __u64 activity_end(void *ctx, struct session *session, struct step *step)
{
	struct event_statement *s = &session->s;
	enum session_phase phase = session_phase(s);

	if (session->thread)
		return bpf_ktime_get_ns();
	if (phase == SESSION_SUSPENDED && !step->text)
		return 0;
	if (s->completed_ns && step->text) {
		if (phase != SESSION_SUSPENDED || portal_is_none(session, step) ||
		    !step_continues(ctx, session, step))
			return s->completed_ns;
		portal_resume(s);
		return 0;
	}
	if (s->flags & (STATEMENT_COMPLETED | STATEMENT_ERROR))
		return bpf_ktime_get_ns();
	if (step->text ? step_continues(ctx, session, step) : portal_suspend(ctx, session))
		return 0;
	/* Its portal was suspended, and is left, if another text ends it. */
	if (step->text)
		s->flags &= ~SESSION_SETTLED;
	if (s->flags & SESSION_BOUND)
		s->flags |= STATEMENT_FETCHED;
	return bpf_ktime_get_ns();
}

/*
 * Begin a statement with @step. Its caller matters only where it may be an Execute: if a portal may
 * be open, that is in a transaction in which one was left, or that began before the session was
 * traced.
 */
INLINE void step_first(void *ctx, struct session *session, struct step *step)
{
	const __u32 expected = SESSION_UNPARSED | SESSION_SETTLED;
	struct event_statement *s = &session->s;

	statement_begin(ctx, session, bpf_ktime_get_ns(), 0);
	s->depth = 1;
	/* A session that did not begin its last statement with a Parse mostly does not now. */
	if ((s->flags & expected) != expected)
		step->parse = text_is_parsed(step->text, 1);
	s->flags &= ~SESSION_UNPARSED;
	s->flags |= step->parse ? STATEMENT_PARSED : SESSION_UNPARSED;
	if (step->parse)
		return;
	if (!(s->flags & SESSION_SETTLED) && !arg_transaction(ctx))
		s->flags |= SESSION_SETTLED;
	else if (!(s->flags & SESSION_SETTLED))
		step->caller = arg_caller(ctx);
}

/*
 * Add @step to @session's statement. The server calls from one place at each Bind and from another
 * at each Execute: equal steps at the end are Executes of one portal. Where a caller is not known,
 * the address of the text is compared: Binds of one statement have the same.
 */
INLINE void step_next(struct session *session, const struct step *step)
{
	struct event_statement *s = &session->s;
	int same = session->caller ? session->caller == step->caller :
				     session->text_at == (__u64)step->text;

	if (s->flags & STATEMENT_PARSED) {
		s->flags &= ~STATEMENT_PARSED;
		s->depth = 1;
	} else if (same) {
		s->depth++;
		s->flags |= STATEMENT_FETCHED;
	} else {
		s->depth = 1;
		s->flags &= ~STATEMENT_FETCHED;
		s->flags |= SESSION_BOUND;
	}
}

/* Return the outcome of transaction @t, which the last statement has ended; 0: unknown. */
INLINE __u32 postgres_outcome(const struct event_transaction *t)
{
	/* A text has ended several. */
	if (t->flags & TRANSACTION_ROLLED_BACK && t->flags & TRANSACTION_COMMITTED)
		return 0;
	if (t->flags & TRANSACTION_ROLLED_BACK || (t->before | t->flags) & TRANSACTION_FAILED)
		return TRANSACTION_ROLLED_BACK;
	if (t->flags & TRANSACTION_PREPARED)
		return TRANSACTION_PREPARED;
	/* Statements that were not seen may have failed; COMMIT rolls back then. */
	if (t->flags & TRANSACTION_PARTIAL && !(t->before & TRANSACTION_SOUND))
		return 0;
	return TRANSACTION_COMMITTED;
}

/*
 * Add @session's statement to its transaction. After a failure, only a statement that ends the
 * transaction, or the part that failed (ROLLBACK TO), completes. Not inline: the verifier would
 * follow what the caller does once for each combination of flags.
 */
static __attribute__((noinline)) void postgres_transaction_add(struct session *session, int open)
{
	struct event_transaction *t = session_transaction(session);
	const struct event_statement *s = &session->s;

	transaction_add(session, open || t->s.start_ns != s->start_ns ||
			s->duration_ns >= VALUE(transaction_ns));
	t->before = t->flags;
	/* Of several in a text, one completed and another one failed: see postgres_outcome(). */
	if (s->flags & STATEMENT_ERROR && s->flags & STATEMENT_COMPLETED &&
	    t->flags & TRANSACTION_COMMITTED)
		t->flags |= TRANSACTION_ROLLED_BACK;
	if (s->flags & STATEMENT_ERROR)
		t->flags |= TRANSACTION_FAILED;
	else if (s->flags & STATEMENT_COMPLETED)
		t->flags = (t->flags & ~TRANSACTION_FAILED) | TRANSACTION_SOUND;
	if (t->flags & TRANSACTION_FAILS)
		t->flags |= TRANSACTION_FAILED;
	t->flags &= ~TRANSACTION_FAILS;
}

/*
 * Follow the transaction of @session between two statements, of which the first one has ended at
 * @end_ns; 0: there was none.
 */
static __attribute__((noinline)) void postgres_transaction(void *ctx, struct session *session,
							   __u64 end_ns)
{
	struct event_transaction *t = session_transaction(session);
	int open, chained;

	/* A statement goes on, or its portal is suspended. */
	if (session->s.flags & (SESSION_OPEN | SESSION_INTERNAL))
		return;
	if (end_ns && session->s.flags & STATEMENT_ALONE) {
		t->flags = TRANSACTION_NONE;
		return;
	}
	open = arg_transaction(ctx) != 0;
	if (end_ns)
		postgres_transaction_add(session, open);
	else
		end_ns = bpf_ktime_get_ns();
	chained = t->flags & TRANSACTION_ENDING;
	if (transaction_is_open(t) && (!open || chained))
		transaction_end(ctx, session, end_ns, postgres_outcome(t));
	if (open && !transaction_is_open(t))
		transaction_begin(session, end_ns,
				  chained ? 0 : TRANSACTION_UNDATED | TRANSACTION_PARTIAL);
	if (!open)
		t->flags = TRANSACTION_NONE;
}

/*
 * COMMIT, ROLLBACK or PREPARE TRANSACTION ends the transaction, if it does not fail. With AND
 * CHAIN, or in a text of several statements, another one begins.
 */
PROGRAM(transaction_mark)
{
	transaction_marked(ctx);
	return 0;
}

/*
 * Read the query ID of a slow statement that ends at @end_ns. The server resets its own at each
 * text, after the probe.
 */
INLINE void postgres_query_id(struct session *session, __u64 end_ns)
{
	struct event_statement *s = &session->s;

	if (!VALUE(want_query_id) || !session->query_id_at ||
	    elapsed(s->start_ns + s->duration_ns, end_ns) < VALUE(threshold_ns))
		return;
	if (!bpf_probe_read_user(&s->query_id, sizeof(s->query_id),
				 (const void *)session->query_id_at))
		s->flags |= STATEMENT_HAS_QUERY_ID;
}

/*
 * pgstat_report_activity(state, text). A text starts a statement, or is the next step (Bind,
 * Execute) of one that has not completed; after a completion it is the next statement of a
 * pipeline. Without a text the session is idle: everything has ended, the commit included, but a
 * portal may be suspended.
 */
PROGRAM(activity)
{
	struct step step = { .text = (const char *)arg_text(ctx) };
	struct session *session = session_get(ctx, 0);
	__u64 end_ns = 0;
	int first;

	if (!session) {
		if (VALUE(want_breakdown) && step.text)
			postgres_worker(ctx);
		return 0;
	}
	session_joined(session);
	if (session->thread)
		step_of_background(ctx, &step);
	else if (step.text)
		step.parse = text_is_parsed(step.text, 0);
	if (session_phase(&session->s) != SESSION_IDLE)
		end_ns = activity_end(ctx, session, &step);
	/* One call for all: it is inlined. */
	if (end_ns) {
		postgres_query_id(session, end_ns);
		if (VALUE(want_statements) && transactions_wanted())
			transaction_alone(session, arg_transaction(ctx) != 0);
		statement_end(ctx, session, end_ns);
	}
	if (transactions_wanted() && (end_ns || !transaction_is_late(session)))
		postgres_transaction(ctx, session, end_ns);
	first = !(session->s.flags & SESSION_OPEN);
	if (!step.text && !step.applies) {
		if (first)
			session_idle(ctx, session);
		return 0;
	}
	if (first)
		step_first(ctx, session, &step);
	else
		step_next(session, &step);
	if (first)
		session->first_at = (__u64)step.text;
	if (first && transactions_wanted() && !(session->s.flags & SESSION_INTERNAL) &&
	    !transaction_is_open(session_transaction(session)) && !transaction_is_late(session))
		transaction_begin(session, session->s.start_ns, 0);
	session->caller = step.caller;
	session->text_at = (__u64)step.text;
	/*
	 * Copy the text now: the server frees it before the statement ends. It is known if it was
	 * compared as a whole.
	 */
	if (step.applies)
		text_set(session, EVENT_APPLY, sizeof(EVENT_APPLY));
	else if (first || !session->s.text_len || session->s.text_len >= VALUE(head_bytes) - 1)
		text_read(session, step.text);
	else
		return 0;
	session->s.of_len = 0;
	stat_command(session, STAT_SKIPPED);
	return 0;
}

/* Return whether @text begins as EXECUTE, FETCH or MOVE do: others are not cut. */
INLINE int text_may_run(const char *text)
{
	char first = text[0] | 0x20, third = text[2] | 0x20;

	return (first == 'e' && third == 'e') || (first == 'f' && third == 't') ||
	       (first == 'm' && third == 'v');
}

/*
 * An EXECUTE or a FETCH runs what has another text: that of the prepared statement or the cursor.
 * Keep that of the first one, behind the statement's own and two bytes that text_same() compares.
 * Parameters of the EXECUTE can be functions which execute others, further down the stack. So can
 * those of other statements: user space knows these by their texts.
 */
PROGRAM(text_behind)
{
	__u64 text = arg_text(ctx), stack = arg_stack(ctx), own, share = VALUE(text_share);
	struct session *session = session_current(ctx);
	struct event_statement *s;
	long n;

	if (!VALUE(want_statements) || VALUE(stat_unit_ns) || !session ||
	    session_phase(&session->s) != SESSION_RUNNING)
		return 0;
	s = &session->s;
	if (!session->of_stack)
		session->of_stack = stack;
	if (!text || s->of_len || session->of_stack - stack > OF_FRAME || !s->text_len ||
	    s->flags & STATEMENT_DROPPED)
		return 0;
	/* Before the read, which writes zeros if it fails. */
	if (s->text_len > share) {
		if (!text_may_run(session->text))
			return 0;
		s->text_len = share;
		s->flags |= STATEMENT_CUT;
	}
	own = at_most(s->text_len, share);
	n = bpf_probe_read_user_str(session->text + own + OF_GAP, share + 2, (const void *)text);
	if (n <= 1)
		return 0;
	s->of_cut = n > (long)share + 1;
	s->of_len = s->of_cut ? share : n - 1;
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
	if ((__u32)arg_destination(ctx) == DEST_EXECUTE)
		s->completed_ns = bpf_ktime_get_ns();
	s->flags &= ~STATEMENT_ERROR;
	s->flags |= STATEMENT_COMPLETED;
	return s;
}

/*
 * Return whether the number of rows that a command of @s reports is right: that of an Execute is
 * only if it is the first one of its portal.
 */
INLINE int statement_counts_rows(void *ctx, const struct event_statement *s)
{
	if ((__u32)arg_destination(ctx) != DEST_EXECUTE)
		return !(s->flags & SESSION_BOUND);
	return (s->flags & (SESSION_BOUND | SESSION_RESUMED)) == SESSION_BOUND && s->depth == 1;
}

PROGRAM(completion)
{
	struct event_statement *s = statement_complete(ctx);

	if (!s || !VALUE(want_rows) || !statement_counts_rows(ctx, s))
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

	if (!s || !VALUE(want_rows) || !statement_counts_rows(ctx, s) ||
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

/* Return the SQLSTATE of the first error, see event_statement; 0: unknown. */
INLINE __u64 postgres_first_sqlstate(void *ctx)
{
	__u64 packed = arg_sqlstate(ctx), state = 0;

	if (!packed)
		return 0;
	for (int i = 0; i < SQLSTATE_LENGTH; i++)
		state |= ((packed >> 6 * i & 0x3f) + '0') << 8 * i;
	return state;
}

/* The same of the error being handled. */
INLINE __u64 postgres_sqlstate(void *ctx)
{
	return arg_error_index(ctx) ? 0 : postgres_first_sqlstate(ctx);
}

/*
 * Send a statement without a text that has failed: a message of @session of which none had begun.
 * The session's statement may still be open.
 */
static __attribute__((noinline)) void message_failed(void *ctx, struct session *session,
						     __u64 state)
{
	struct event_statement s = session->s;

	s.head = event_head(EVENT_STATEMENT);	/* user space does not know that of one it added */
	s.flags = STATEMENT_ERROR | STATEMENT_NO_TEXT | (s.flags & SESSION_UNNAMED);
	s.start_ns = bpf_ktime_get_ns();
	s.duration_ns = 0;
	s.completed_ns = 0;
	s.query_bytes = 0;
	s.text_len = 0;
	s.of_len = 0;
	s.sqlstate = state;
	count(COUNT_STATEMENTS);
	if (VALUE(threshold_ns))
		return;
	if (!VALUE(stat_unit_ns))
		send(ctx, &s, sizeof(s));
	else if (!VALUE(want_breakdown))
		stat_count(session, 0, STAT_NO_TEXT | STAT_FAILED);
}

/*
 * An error of @session, or NULL, is not that of its statement, but of a message that begins none: a
 * Bind of an unknown name, or bytes that are no text. It aborts the transaction.
 */
INLINE int postgres_message_fails(void *ctx, struct session *session, __u64 state)
{
	/* Logical decoding aborts without an error. */
	if (!session || (__s64)arg_error_index(ctx) < 0)
		return 0;
	/* A statement may have been running when tracing began. */
	if (VALUE(want_statements) &&
	    !(session->s.flags & (SESSION_INTERNAL | SESSION_JOINED)))
		message_failed(ctx, session, state);
	if (!transactions_wanted())
		return 0;
	transaction_catch_up(session);
	session_transaction(session)->flags |= session->s.flags & SESSION_OPEN ?
					       TRANSACTION_FAILS : TRANSACTION_FAILED;
	return 0;
}

/*
 * The transaction is aborted: the current statement has failed, unless it completes after all (a
 * procedure that rolls back and continues).
 */
PROGRAM(failure)
{
	struct session *session = session_get(ctx, SESSION_JOINED);
	__u64 state = postgres_sqlstate(ctx);
	struct event_statement *s;

	/* Logical decoding aborts without an error. */
	if (session && session->s.flags & SESSION_INTERNAL && (__s64)arg_error_index(ctx) < 0)
		return 0;
	/* While a portal is suspended, the error is that of another message. */
	if (!session || !(session->s.flags & SESSION_OPEN) || session->s.flags & SESSION_PAUSED)
		return postgres_message_fails(ctx, session, state);
	s = &session->s;
	/* Nor is a message that cannot be read or names nothing the fault of what is before it. */
	if ((s->completed_ns || s->flags & STATEMENT_PARSED) &&
	    (state == NO_STATEMENT || state == NO_PORTAL || state == BAD_TEXT ||
	     state == BAD_MESSAGE))
		return postgres_message_fails(ctx, session, state);
	/* The last failure was none: the name that the application has got since is current. */
	if (s->flags & STATEMENT_ERROR) {
		s->flags &= ~STATEMENT_ERROR;
		send_present_application(ctx, session);
	}
	s->flags |= STATEMENT_ERROR;
	s->sqlstate = state;
	return 0;
}

/* The statement of @session, which serves no client, has failed. */
INLINE void background_failed(struct session *session, __u64 state)
{
	session->s.flags |= STATEMENT_ERROR;
	session->s.sqlstate = state;
}

/*
 * A process that serves no client catches an error and goes on, as autovacuum with other tables.
 * Each process aborts when it ends.
 */
PROGRAM(background_failure)
{
	struct session *session = session_current(ctx);

	if (session && session->thread && session_phase(&session->s) == SESSION_RUNNING)
		background_failed(session, postgres_sqlstate(ctx));
	return 0;
}

/*
 * proc_exit(status). A connection that is refused has no statement: it counts as one that fails,
 * without a text. Its error has been reported, and taken off the stack of errors. Other processes
 * mostly end with their last statement, which is sent when the thread exits.
 */
PROGRAM(process_ends)
{
	struct session *session = session_current(ctx);

	if (session && session->s.flags & SESSION_INTERNAL) {
		if (session_phase(&session->s) != SESSION_RUNNING)
			return 0;
		if ((__u32)arg_status(ctx))
			background_failed(session, postgres_first_sqlstate(ctx));
		session->s.completed_ns = bpf_ktime_get_ns();
		return 0;
	}
	if (!VALUE(want_statements) || (__u32)arg_status(ctx) != EXIT_FATAL ||
	    (__u32)arg_mode(ctx) != INIT_PROCESSING || !arg_client(ctx))
		return 0;
	session = session_get(ctx, 0);
	if (session)
		message_failed(ctx, session, postgres_first_sqlstate(ctx));
	return 0;
}

/* The session's application gets another name, also when a transaction restores it. */
PROGRAM(application)
{
	struct session *session = session_current(ctx);

	if (session)
		send_application(ctx, session, (const char *)arg_name(ctx));
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
