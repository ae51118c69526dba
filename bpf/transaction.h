/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transactions: each statement is in one, which begins with it unless one is open, and ends with it
 * unless the server has one open afterwards. The engines' programs know when that is.
 */
#ifndef BPF_TRANSACTION_H
#define BPF_TRANSACTION_H

#include "bpf/session.h"

ARGUMENT(transaction);	/* PostgreSQL: 0: there is no transaction; MySQL: SERVER_STATUS_* */
ARGUMENT(mark);		/* flags of the transaction that the current statement ends */

CONSTANT(transaction_ns);	/* shorter ones are not sent */
CONSTANT(transactions_known);	/* arg_transaction can be read in this server */

/* Return whether transactions are wanted and known. */
INLINE int transactions_wanted(void)
{
	return VALUE(transaction_at) && VALUE(transactions_known);
}

/*
 * Return whether those of @session are: no others than clients' are followed. Programs for others
 * only are loaded without what follows them.
 */
INLINE int transactions_of(const struct session *session)
{
	return transactions_wanted() && !VALUE(backend) && !(session->s.flags & SESSION_INTERNAL);
}

INLINE int transaction_is_open(const struct event_transaction *t)
{
	return t->flags & TRANSACTION_OPEN;
}

/*
 * Mark @session's statement, which is about to end, if it is a transaction of its own. Its record
 * is that of the transaction, too. @open: the server has one open.
 */
INLINE void transaction_alone(struct session *session, int open)
{
	const struct event_transaction *t = session_transaction(session);
	struct event_statement *s = &session->s;

	if (open || s->duration_ns || s->flags & SESSION_INTERNAL)
		return;
	if (!transaction_is_open(t) || (t->flags == TRANSACTION_OPEN && !t->statements &&
					t->s.start_ns == s->start_ns))
		s->flags |= STATEMENT_ALONE;
}

/*
 * Return whether @session has no transaction, so that its statement begins one. With the records of
 * statements, most transactions are none but a statement, and begin only if they get more.
 */
INLINE int transaction_is_late(struct session *session)
{
	return VALUE(want_statements) && session_transaction(session)->flags == TRANSACTION_NONE;
}

/* Begin a transaction of @session at @now. */
INLINE void transaction_begin(struct session *session, __u64 now, __u32 more)
{
	struct event_transaction *t = session_transaction(session);

	t->target_id = session->s.target_id;
	t->flags = TRANSACTION_OPEN | more;
	t->before = 0;
	t->statements = 0;
	t->active_ns = 0;
	t->longest_ns = 0;
	t->who.session.head.type = 0;
	t->application[0] = 0;
	t->s.target_id = session->s.target_id;
	t->s.pid = session->s.pid;
	t->s.tid = session->s.tid;
	t->s.connection_id = 0;
	t->s.start_ns = now;
	t->s.flags = STATEMENT_NO_TEXT;
	t->s.text_len = 0;
}

/* Begin the transaction of @session's statement if that is late. */
INLINE void transaction_catch_up(struct session *session)
{
	if (transaction_is_late(session) && session->s.flags & SESSION_OPEN)
		transaction_begin(session, session->s.start_ns, 0);
}

/* Keep the text of @session's statement. */
static __attribute__((noinline)) void transaction_text(struct session *session)
{
	struct event_transaction *t = session_transaction(session);
	__u64 n = at_most(session->s.text_len, VALUE(text_bytes));

	t->longest_ns = session->s.duration_ns;
	t->s.connection_id = session->s.connection_id;
	t->s.flags = session->s.flags;
	t->s.query_bytes = session->s.query_bytes;
	t->s.text_len = n;
	if (bpf_probe_read_kernel(t + 1, n, session->text))
		t->s.text_len = 0;
}

/* Add @session's statement, which has ended, to its transaction; with @keep, also its text. */
static __attribute__((noinline)) void transaction_add(struct session *session, int keep)
{
	struct event_transaction *t = session_transaction(session);
	const struct event_statement *s = &session->s;

	if (!transaction_is_open(t))
		transaction_begin(session, s->start_ns, 0);
	t->active_ns += s->duration_ns;
	if (!statement_is_prepare(s))
		t->statements++;
	if (keep && s->duration_ns >= t->longest_ns)
		transaction_text(session);
}

/* End the open transaction of @session at @end_ns: count it, and send it if it is long enough. */
static __attribute__((noinline)) void transaction_end(void *ctx, struct session *session,
						      __u64 end_ns, __u32 outcome)
{
	struct event_transaction *t = session_transaction(session);
	__u32 flags = t->flags;

	t->flags = (flags & ~TRANSACTION_OUTCOMES) | outcome;
	t->head = event_head(EVENT_TRANSACTION);
	t->s.head = t->head;
	t->s.tid = session->s.tid;
	t->s.flags |= session->s.flags & SESSION_UNNAMED;
	t->s.connection_id = session->s.connection_id;
	t->s.duration_ns = elapsed(t->s.start_ns, end_ns);
	if (t->statements || flags & TRANSACTION_PARTIAL) {
		if (!VALUE(want_statements))
			count(COUNT_STATEMENTS);
		/* See statement_end(). */
		if (session->tgid != (__u32)(bpf_get_current_pid_tgid() >> 32))
			lost_in(t->target_id, LOST_START_WITHOUT_END);
		else if (t->s.duration_ns >= VALUE(transaction_ns))
			send(ctx, t, sizeof(*t) + at_most(t->s.text_len, VALUE(text_bytes)));
	}
	t->flags = 0;
}

/* The current session's transaction ends as arg_mark says, with the running statement. */
INLINE void transaction_marked(void *ctx)
{
	struct session *session = session_current(ctx);

	if (!session || session->s.flags & SESSION_INTERNAL)
		return;
	transaction_catch_up(session);
	if (transaction_is_open(session_transaction(session)))
		session_transaction(session)->flags |= (__u32)arg_mark(ctx);
}

#endif
