// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Turns probe hits into statements: small state machines, one a kind of server. Which probe runs
 * which program is a table of db/.
 */
#include "bpf/session.h"

#define COMMAND_TEXT	3	/* COM_QUERY of the MySQL protocol */
#define COMMAND_RESUMED	2	/* thd_async_state::RESUMED of MariaDB, from 10.6 */
#define STATE_OK	1	/* DA_OK of both, in enum_diagnostics_status */
#define TAG_BYTES	64	/* COMPLETION_TAG_BUFSIZE of PostgreSQL */

ARGUMENT(text);		/* pointer to the statement's text; 0: none */
ARGUMENT(length);	/* its length, where it does not end in a NUL */
ARGUMENT(rows);		/* what the server counted */
ARGUMENT(affected);	/* rows that the statement changed, as its client is told */
ARGUMENT(tag);		/* pointer to the completion's text: "SELECT 1" */
ARGUMENT(command);	/* number of the client's command */
ARGUMENT(error);	/* number of the server's error; 0: none */
ARGUMENT(status);	/* not 0: the statement failed */
ARGUMENT(state);	/* what the server has of the outcome, and what that is after a failure */
ARGUMENT(failed_state);
ARGUMENT(kind);		/* number of the kind of statement; 0: SELECT */
ARGUMENT(resumed);	/* state of an asynchronous command; 2: it goes on */
ARGUMENT(connection);	/* the server's number for the connection */
ARGUMENT(inner);	/* not 0: the probe may be inside another statement */

CONSTANT(rows_known);
CONSTANT(affected_known);
CONSTANT(status_known);
CONSTANT(commands);	/* bit (number & 63) set: the command runs statements */

/*
 * The server says what it is doing. A text starts a statement, or is the next
 * step (Parse, Bind, Execute) of one that has not completed; after a
 * completion it is the next part of a pipeline. No text: all has ended, the
 * commit included.
 */
PROGRAM(activity)
{
	const char *text = (const char *)arg_text(ctx);
	struct session *session = session_get(ctx, 0);
	struct event_statement *s;
	__u64 end_ns = 0;

	if (!session) {
		if (VALUE(want_breakdown) && text)
			breakdown_work(ctx);
		return 0;
	}
	s = &session->s;
	session_joined(session);
	if (s->flags & SESSION_OPEN) {
		if (text && s->flags & STATEMENT_COMPLETED && s->completed_ns)
			end_ns = s->completed_ns;
		/* Not completed and yet another one: only parsed, or its portal has more rows to give. */
		else if (!text || s->flags & STATEMENT_COMPLETED || !text_same(session, text))
			end_ns = bpf_ktime_get_ns();
	}
	/* In one place: it is much code. */
	if (end_ns)
		statement_end(ctx, session, end_ns);
	if (!text) {
		session_idle(ctx, session);
		return 0;
	}
	if (!(s->flags & SESSION_OPEN))
		statement_begin(ctx, session, bpf_ktime_get_ns(), 0);
	s->depth++;
	/* While it is certainly there: when the statement ends, the server has freed it. */
	text_read(session, text);
	return 0;
}

/* A part of the statement is done: one of "a; b", or a statement of a pipeline. */
INLINE struct event_statement *statement_complete(void *ctx)
{
	struct session *session = session_get(ctx, SESSION_JOINED);
	struct event_statement *s;

	if (!session || !(session->s.flags & SESSION_OPEN))
		return 0;
	s = &session->s;
	/* After a simple query the next thing is that all has ended: that reads the clock. */
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

/* As completion, for a server that says it in words: the last number, if it ends with one. */
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

/*
 * The server gives the transaction up: what is running has failed, unless it completes all
 * the same (a procedure that rolls back and goes on).
 */
PROGRAM(failure)
{
	struct session *session = session_get(ctx, SESSION_JOINED);

	if (session && session->s.flags & SESSION_OPEN)
		session->s.flags |= STATEMENT_ERROR;
	return 0;
}

/*
 * A client's command to MySQL or MariaDB. Those that run statements are timed; what there is to
 * know of a statement is still in the server when it decides whether to log it as slow.
 */
PROGRAM(command_start)
{
	struct session *session = session_get(ctx, 0);
	struct event_statement *s;
	__u64 command;

	if (!session)
		return 0;
	s = &session->s;
	session_joined(session);
	/* What goes on may be the last of "a; b". A prepared statement that has completed does not. */
	if (s->flags & SESSION_OPEN &&
	    (s->flags & (STATEMENT_COMPLETED | SESSION_TEXT)) != STATEMENT_COMPLETED &&
	    arg_resumed(ctx) == COMMAND_RESUMED)
		return 0;
	s->flags &= ~SESSION_OPEN;
	command = arg_command(ctx);
	if (VALUE(commands) >> (command & 63) & 1)
		statement_begin(ctx, session, bpf_ktime_get_ns(), SESSION_LATE |
				(command == COMMAND_TEXT ? SESSION_TEXT : 0));
	return 0;
}

/*
 * Rows that were sent; of a statement that sent none, the rows that it changed. These are 0 too
 * where the answer is a result set, of which not each is counted as sent (ANALYZE TABLE). What
 * kind a prepared statement is the server has forgotten by then; nearly all that answer so are
 * SELECTs.
 */
INLINE void statement_rows(void *ctx, struct event_statement *s)
{
	int none = s->flags & SESSION_TEXT ? !arg_kind(ctx) : !(s->flags & STATEMENT_ERROR);

	s->rows = arg_rows(ctx);
	if (VALUE(rows_known) && (s->rows || none))
		s->flags |= STATEMENT_HAS_ROWS;
	if (VALUE(affected_known) && !s->rows && !(s->flags & STATEMENT_ERROR)) {
		s->rows = arg_affected(ctx);
		if (s->rows || arg_state(ctx) == STATE_OK)
			s->flags |= STATEMENT_HAS_ROWS;
	}
}

INLINE void statement_outcome(void *ctx, struct event_statement *s)
{
	s->error_code = arg_error(ctx);
	if (s->error_code || arg_state(ctx) == arg_failed_state(ctx))
		s->flags |= STATEMENT_ERROR;
	if (!VALUE(status_known))
		s->flags |= STATEMENT_NO_STATUS;
	if (VALUE(want_rows))
		statement_rows(ctx, s);
	s->connection_id = arg_connection(ctx);
}

/*
 * The dispatcher of commands is through with a statement, or with one of "a; b". What that ran in
 * its turn (procedures' bodies, what EXECUTE runs) does not end there.
 */
PROGRAM(command_end)
{
	__u64 id = id_seen(bpf_get_current_pid_tgid()), now;
	struct session *session;
	struct event_statement *s;

	session = session_get(ctx, SESSION_JOINED);
	if (!session || !(session->s.flags & SESSION_OPEN))
		return 0;
	s = &session->s;
	/* No part of a packet: MariaDB's COM_MULTI, whose parts have ended. */
	if (s->flags & STATEMENT_COMPLETED && !arg_length(ctx))
		return 0;
	now = bpf_ktime_get_ns();
	if (now - s->start_ns >= VALUE(threshold_ns)) {
		s->tid = id;
		text_copy(session, (const char *)arg_text(ctx), arg_length(ctx));
		statement_outcome(ctx, s);
		/* What failed before the server looked the prepared statement up. */
		if (!s->text_len && !(s->flags & SESSION_TEXT))
			s->flags |= STATEMENT_NO_TEXT;
		stat_group(ctx, session);
		if (VALUE(want_sessions))
			send_identity(ctx, id);
	}
	statement_end(ctx, session, now);
	/* If there is another one in the packet, it begins here. */
	statement_begin(ctx, session, now,
			SESSION_LATE | STATEMENT_COMPLETED | (s->flags & SESSION_TEXT));
	return 0;
}

/*
 * A pair of probes around a statement. arg_inner says that this pair may stand inside another
 * one; then only the outer one counts.
 */
PROGRAM(pair_start)
{
	struct session *session = session_get(ctx, 0);
	struct event_statement *s;

	if (!session)
		return 0;
	s = &session->s;
	session_joined(session);
	if (s->flags & SESSION_OPEN && arg_inner(ctx)) {
		s->depth++;
		return 0;
	}
	if (s->flags & SESSION_OPEN)
		count(LOST_START_WITHOUT_END);
	statement_begin(ctx, session, bpf_ktime_get_ns(), 0);
	text_read(session, (const char *)arg_text(ctx));
	s->connection_id = arg_connection(ctx);
	stat_group(ctx, session);
	if (VALUE(want_sessions) && VALUE(tells_sessions))
		send_identity(ctx, (__u64)s->pid << 32 | s->tid);
	return 0;
}

PROGRAM(pair_done)
{
	struct session *session = session_get(ctx, SESSION_JOINED);
	struct event_statement *s;

	if (!session || !(session->s.flags & SESSION_OPEN))
		return 0;
	s = &session->s;
	if (arg_inner(ctx) && s->depth) {
		s->depth--;
		return 0;
	}
	if (arg_status(ctx))
		s->flags |= STATEMENT_ERROR;
	statement_end(ctx, session, bpf_ktime_get_ns());
	return 0;
}

/* What the thread leaves behind. */
INLINE void session_end(void *ctx, struct session *session)
{
	struct event_statement *s = &session->s;
	__u64 end_ns = s->completed_ns;

	if (!(s->flags & SESSION_OPEN))
		return;
	/*
	 * Completed, but for a Sync that never came; a simple query is not over before it is
	 * idle.
	 */
	if (!end_ns || s->depth <= 1) {
		s->flags |= STATEMENT_ERROR | STATEMENT_DIED;
		end_ns = bpf_ktime_get_ns();
	}
	statement_end(ctx, session, end_ns);
}

/* Raw tracepoint sched_process_exit: a thread that ends takes its session along. */
PROGRAM(thread_exit)
{
	__u64 id = bpf_get_current_pid_tgid(), key = (__u32)id;
	struct session *session = session_find(key);

	if (session)
		session_end(ctx, session);
	if (VALUE(want_breakdown))
		breakdown_exit(ctx, (__u32)id);
	if (session && VALUE(want_sessions))
		send_session(ctx, EVENT_EXIT, session->s.target_id, id_seen(id));
	session_drop(key);
	/* Even if it had one: user space may have dismissed it just now. */
	bpf_map_delete_elem(ignored, &key);
	return 0;
}

/* A connection is closed, where a session is an object of the server's. */
PROGRAM(session_closed)
{
	__u64 key = session_key(ctx, bpf_get_current_pid_tgid());

	if (!session_drop(key))
		bpf_map_delete_elem(ignored, &key);
	return 0;
}

/*
 * Raw tracepoint sched_process_exec: a server may have been started. Those of a server's name are
 * told each time; of any other, the first, as it may be a server under another name.
 */
PROGRAM(process_exec)
{
	struct event_exec event = {};
	const char *known;
	char told = EXEC_TOLD;
	__u64 id;

	if (bpf_get_current_comm(&event.name, sizeof(event.name)))
		return 0;
	known = bpf_map_lookup_elem(comms, &event.name);
	if (known ? *known == EXEC_TOLD : !VALUE(want_execs))
		return 0;
	id = id_seen(bpf_get_current_pid_tgid());
	if (!id)
		return 0;
	event.session = event_session(EVENT_EXEC, 0, id);
	/* With a table that is full, each is told. */
	if (!output(ctx, &event, sizeof(event)) && !known)
		bpf_map_update_elem(comms, &event.name, &told, BPF_ANY);
	wake(ctx);
	return 0;
}

/*
 * Raw tracepoint sched_switch(preempted, previous, next), or its record; the thread at hand is still
 * the previous one.
 */
PROGRAM(task_switch)
{
	const __u64 *args = ctx;
	const char *task = (const char *)args[1];
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), state;
	struct event_breakdown *t = tid ? breakdown_thread(tid) : 0;

	if (t) {
		breakdown_turn(ctx, t, bpf_ktime_get_ns(), BREAKDOWN_RUNQUEUE);
		state = breakdown_state(ctx);
		if (state && !VALUE(record_state))
			t->call = breakdown_call(task);
		if (state)
			t->doing = breakdown_waits(t, task, state);
	}
	tid = breakdown_tid(ctx, VALUE(record_next), 2);
	t = tid ? breakdown_thread(tid) : 0;
	if (t)
		breakdown_turn(ctx, t, bpf_ktime_get_ns(), BREAKDOWN_CPU);
	return 0;
}

/* Raw tracepoint sched_wakeup(task), or its record: from now on it waits for a CPU. */
PROGRAM(task_wakeup)
{
	struct event_breakdown *t = breakdown_thread(breakdown_tid(ctx, VALUE(record_pid), 0));

	/* It was still running, about to sleep. */
	if (t && breakdown_is_waiting(t))
		breakdown_turn(ctx, t, bpf_ktime_get_ns(), BREAKDOWN_RUNQUEUE);
	return 0;
}

/* Raw tracepoints sys_enter(registers, number) and sys_exit(registers, result). */
PROGRAM(call_enter)
{
	const __u64 *args = ctx;
	struct event_breakdown *t = breakdown_current();

	if (t)
		t->call = (__u32)args[1];
	return 0;
}

PROGRAM(call_exit)
{
	struct event_breakdown *t = breakdown_current();

	if (t)
		t->call = BREAKDOWN_NO_CALL;
	return 0;
}

/* Raw tracepoints sock_send_length(socket, bytes or an error, flags) and sock_recv_length(same). */
INLINE void task_bytes(void *ctx, __u32 which)
{
	const __u64 *args = ctx;
	struct event_breakdown *t = breakdown_current();
	int bytes = (int)args[1];

	if (t && bytes > 0)
		t->use[which] += (__u32)bytes;
}

PROGRAM(task_sent)
{
	task_bytes(ctx, USE_SENT);
	return 0;
}

PROGRAM(task_received)
{
	task_bytes(ctx, USE_RECEIVED);
	return 0;
}

/* thd_wait_begin(THD *, type) and thd_wait_end(THD *), which the server calls around its waits. */
PROGRAM(wait_begin)
{
	struct event_breakdown *t = breakdown_current();

	if (t)
		t->said = breakdown_mysql((__u32)arg_wait(ctx));
	return 0;
}

PROGRAM(wait_end)
{
	struct event_breakdown *t = breakdown_current();

	if (t)
		t->said = 0;
	return 0;
}

/* The server begins with a phase, and is done with it. */
PROGRAM(phase_start)
{
	struct event_breakdown *t = breakdown_current();

	if (t)
		phase_begin(t, (__u32)arg_phase(ctx));
	return 0;
}

PROGRAM(phase_done)
{
	struct event_breakdown *t = breakdown_current();
	struct breakdown_phase *phase;

	if (!t)
		return 0;
	phase = &t->phases[arg_phase(ctx) & (PHASES - 1)];
	if (phase->depth > 1)
		phase->depth--;
	else if (phase->depth)
		phase_end(phase, bpf_ktime_get_ns());
	return 0;
}

/* The server sorts, and frees what that took. */
PROGRAM(sort)
{
	struct event_breakdown *t = breakdown_current();
	__u32 sort = (__u32)arg_sort(ctx);

	if (t && sort == SORT_BEGINS)
		t->use[USE_SORTS]++;
	else if (t)
		use_sorted(t, sort != 0, arg_space(ctx));
	return 0;
}

char dual_license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
