/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MySQL and MariaDB: the programs on dispatch_command() and on the server's reports of waits. */
#ifndef BPF_MYSQL_H
#define BPF_MYSQL_H

#include "bpf/attribute.h"
#include "bpf/object.h"
#include "bpf/plan.h"

#define COMMAND_TEXT	3	/* COM_QUERY */
#define COMMAND_RESUMED	2	/* thd_async_state::RESUMED of MariaDB, from 10.6 */
#define IN_TRANSACTION	1	/* SERVER_STATUS_IN_TRANS, which belongs to the protocol */
#define STATE_NONE	0	/* DA_EMPTY, in enum_diagnostics_status, and .. */
#define STATE_OK	1	/* .. DA_OK */
#define NO_INDEX_USED	0x20	/* SERVER_QUERY_NO_INDEX_USED, which belongs to the protocol */
#define ATTRIBUTED	2	/* STATE_FLAG_THREAD of MariaDB's Performance Schema */
#define TMP_TABLE_USED	0x200	/* QPLAN_TMP_TABLE of MariaDB, as in log_slow_filter from 10.3 on */

ARGUMENT(text);		/* pointer to the statement's text, not terminated .. */
ARGUMENT(length);	/* .. and its length; 0: none */
ARGUMENT(rows);		/* rows sent to the client */
ARGUMENT(affected);	/* rows changed, as reported to the client */
ARGUMENT(examined);	/* rows read */
ARGUMENT(sums);		/* not 0: both include those of the routine's earlier statements */
ARGUMENT(locked);	/* address of the time at which it had its locks, or .. */
ARGUMENT(lock_time);	/* .. how long it waited for them, us */
ARGUMENT(server_status);	/* SERVER_QUERY_NO_INDEX_USED and others .. */
ARGUMENT(no_index);	/* .. and the bit that the server sets if it uses no index */
ARGUMENT(plan);		/* THD::query_plan_flags .. */
ARGUMENT(tmp_table);	/* .. and the bit that the server sets for a temporary table */
ARGUMENT(tables);	/* those that are to be opened; 0: none */
ARGUMENT(command);	/* enum enum_server_command */
ARGUMENT(error);	/* error number; 0: none */
ARGUMENT(sqlstate);	/* of the error: characters, with a NUL after them .. */
ARGUMENT(code);		/* .. and, where that is valid, instead of arg_error its number */
ARGUMENT(state);	/* enum_diagnostics_status, and its value after a failure */
ARGUMENT(failed_state);
ARGUMENT(kind);		/* enum enum_sql_command; 0: SELECT */
ARGUMENT(resumed);	/* state of an asynchronous command */
ARGUMENT(connection);	/* connection ID */
ARGUMENT(commit_failed);	/* what the function that commits returns */
ARGUMENT(attributes);	/* addresses of the client's attributes and their length; 0: none */
ARGUMENT(attributed);	/* flags of these; ATTRIBUTED: they are the session's */
ARGUMENT(wait);		/* enum _thd_wait_type_e */
ARGUMENT(task);		/* address of a tpool::task */

CONSTANT(rows_known);
CONSTANT(affected_known);
CONSTANT(examined_known);
CONSTANT(lock_time_known);
CONSTANT(status_known);
CONSTANT(commands);	/* bit (number & 63) set: the command runs statements */

/*
 * Array: thread ID % IO_THREADS → u64, kernel ID of a thread that completes I/O. If another thread
 * displaces it, those that it wakes have waited for a futex.
 */
MAP(io_threads);

/* tpool::task, a task for a thread of InnoDB's pool in MariaDB from 10.5 on */
struct mysql_task {
	__u64 methods, function, argument, group;
};

/* start_utime and utime_after_lock of MariaDB's THD: microseconds of CLOCK_MONOTONIC */
struct mysql_times {
	__u64 began, locked;
};

#define AIOCB_BYTES	1024	/* of a tpool::aiocb, at most */

/* Return the part of wait @type: enum breakdown_part, or 0: its system call decides. */
INLINE __u32 mysql_wait_part(__u32 type)
{
	/* enum _thd_wait_type_e, which belongs to the plugin API. */
	switch (type) {
	case 1:			/* THD_WAIT_SLEEP */
		return BREAKDOWN_SLEEP;
	case 2:			/* DISKIO */
		return BREAKDOWN_DISK;
	case 3:			/* ROW_LOCK */
	case 4:			/* GLOBAL_LOCK */
	case 5:			/* META_DATA_LOCK */
	case 6:			/* TABLE_LOCK */
	case 7:			/* USER_LOCK */
		return BREAKDOWN_LOCK;
	case 9:			/* GROUP_COMMIT */
	case 10:		/* SYNC */
		return BREAKDOWN_FSYNC;
	case 11:		/* NET */
		return BREAKDOWN_NETWORK;
	}
	return 0;
}

INLINE long mysql_read_attribute(const void *arg, void *to, __u64 from)
{
	(void)arg;
	return bpf_probe_read_user(to, ATTRIBUTE_HEAD, (const void *)from);
}

/* Read the name of the client's program, which its attributes at @pair have, to @name; or "". */
static __attribute__((noinline)) void mysql_program(__u64 pair, char name[64])
{
	struct attribute list, value;

	name[0] = 0;
	if (bpf_probe_read_user(&list, sizeof(list), (const void *)pair))
		return;
	/* The number of their character set follows. */
	list.length = (__u32)list.length;
	if (!attribute_program(mysql_read_attribute, 0, list, &value))
		bpf_probe_read_user_str(name, at_most(value.length, 63) + 1,
					(const void *)value.at);
}

/*
 * Send the name of the client's program, if it is in those at @pair: none, if its identity is all
 * that has been sent. Return not 0 if it is lost.
 */
static __attribute__((noinline)) long mysql_send_program(void *ctx, const struct session *session,
							 __u64 pair)
{
	const struct event_statement *s = &session->s;
	struct event_application event = {
		.session = event_session(EVENT_APPLICATION, s->target_id,
					 (__u64)s->pid << 32 | s->tid),
	};

	mysql_program(pair, event.name);
	if (!event.name[0])
		return 0;
	if (output(ctx, &event, sizeof(event)))
		return -1;
	wake(ctx);
	return 0;
}

/*
 * Return arg_attributes if they are those of the current session, else 0. Without a branch: the
 * verifier would follow both ways to the end of the list.
 */
INLINE __u64 mysql_attributes(void *ctx)
{
	__u64 pair = arg_attributes(ctx), own = (__u32)arg_attributed(ctx) / ATTRIBUTED & 1;

	__asm__ volatile("" : "+r"(own));
	return pair & -own;
}

/* Send who @session is. Return not 0 if that is lost. */
INLINE long mysql_send_who(void *ctx, struct session *session, __u64 id)
{
	__u64 pair = mysql_attributes(ctx);

	return send_identity(ctx, id) || (pair && mysql_send_program(ctx, session, pair));
}

/* A statement begins in @session, which has been seen before or not. */
INLINE void mysql_transaction_begin(void *ctx, struct session *session)
{
	if (transaction_is_open(session_transaction(session)) || transaction_is_late(session))
		return;
	transaction_begin(session, session->s.start_ns,
			  arg_transaction(ctx) & IN_TRANSACTION ?
			  TRANSACTION_UNDATED | TRANSACTION_PARTIAL : 0);
}

/* A statement has begun in @session. Keep its user: routines are executed as another one. */
static __attribute__((noinline)) void nested_begin(struct session *session)
{
	const struct object_places *places = object_places_of(session);
	struct nested *n = session_nested(session);

	n->outer_ns = session->s.start_ns;
	n->depth = 0;
	n->context = places ? object_context_now(session->object, places) : 0;
}

/*
 * A command of a client, or what a replica applies. Those that run statements are timed; text and
 * outcome are read when the statement ends, while the server decides whether to log it as slow.
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
	object_begin(session, session_key(ctx, bpf_get_current_pid_tgid()));
	/*
	 * A resumed command continues its statement, or the last one of "a; b". A completed
	 * prepared statement is not continued.
	 */
	if (s->flags & SESSION_OPEN &&
	    (s->flags & (STATEMENT_COMPLETED | SESSION_TEXT)) != STATEMENT_COMPLETED &&
	    arg_resumed(ctx) == COMMAND_RESUMED)
		return 0;
	s->flags &= ~SESSION_OPEN;
	command = arg_command(ctx);
	if (!(VALUE(commands) >> (command & 63) & 1))
		return 0;
	statement_begin(ctx, session, bpf_ktime_get_ns(), SESSION_LATE |
			(command == COMMAND_TEXT ? SESSION_TEXT : 0));
	if (VALUE(nested_at))
		nested_begin(session);
	if (transactions_of(session))
		mysql_transaction_begin(ctx, session);
	return 0;
}

/*
 * Set the rows @sent; if there are none, the rows changed, which are 0, too, if the answer is a
 * result set whose rows are not all counted as sent (ANALYZE TABLE). The kind of a prepared
 * statement is no longer known at this point; nearly all with such an answer are SELECTs.
 */
static __attribute__((noinline)) void mysql_rows(void *ctx, struct event_statement *s, __u64 sent)
{
	int none = s->flags & SESSION_TEXT ? !arg_kind(ctx) : !(s->flags & STATEMENT_ERROR);

	s->rows = sent;
	if (VALUE(rows_known) && (s->rows || none || s->flags & STATEMENT_ERROR))
		s->flags |= STATEMENT_HAS_ROWS;
	if (VALUE(affected_known) && !s->rows && !(s->flags & STATEMENT_ERROR)) {
		s->rows = arg_affected(ctx);
		if (s->rows || arg_state(ctx) == STATE_OK)
			s->flags |= STATEMENT_HAS_ROWS | STATEMENT_CHANGED;
	}
}

INLINE void mysql_examined(void *ctx, struct event_statement *s, __u64 before)
{
	s->examined = elapsed(before, arg_examined(ctx));
	if (VALUE(examined_known))
		s->flags |= STATEMENT_HAS_EXAMINED;
}

/*
 * Read how long the statement waited for locks. The offset of start_utime is derived from that of
 * utime_after_lock, so both are trusted only if they are in order within the statement.
 */
INLINE void mysql_locked(void *ctx, struct event_statement *s, __u64 now)
{
	struct mysql_times times = { 0 };

	if (VALUE(lock_time_known)) {
		s->lock_us = arg_lock_time(ctx);
		s->flags |= STATEMENT_HAS_LOCK;
		return;
	}
	bpf_probe_read_user(&times, sizeof(times),
			    (const void *)(arg_locked(ctx) - sizeof(times.began)));
	s->lock_us = times.locked - times.began;
	if (times.began >= s->start_ns / 1000 && times.locked >= times.began &&
	    times.locked <= now / 1000)
		s->flags |= STATEMENT_HAS_LOCK;
}

/*
 * Read how the statement was executed. The bits are trusted only if the server sets the ones that
 * are read off its code; those of query_plan_flags are in the order of log_slow_filter.
 */
INLINE void mysql_plan(void *ctx, struct event_statement *s)
{
	__u32 plan;

	if (arg_no_index(ctx) != NO_INDEX_USED)
		return;
	s->flags |= STATEMENT_HAS_INDEX;
	s->plan = (__u32)arg_server_status(ctx) >> 4 & PLAN_INDEX;
	if (arg_tmp_table(ctx) != TMP_TABLE_USED)
		return;
	plan = (__u32)arg_plan(ctx);
	s->flags |= STATEMENT_HAS_PLAN;
	s->plan |= (plan >> 1 & 0x1f) << PLAN_FILESORT | (plan >> 9 & 3) << PLAN_TMP_TABLE;
}

/*
 * Return the SQLSTATE, see event_statement. Its place follows from that of other members, so it is
 * 0, unknown, unless the characters are those of an SQLSTATE.
 */
INLINE __u64 mysql_sqlstate(void *ctx)
{
	__u64 state = arg_sqlstate(ctx);

	for (int i = 0; i < SQLSTATE_LENGTH; i++) {
		char c = (char)(state >> 8 * i);

		if ((c < '0' || c > '9') && (c < 'A' || c > 'Z'))
			return 0;
	}
	return state >> 8 * SQLSTATE_LENGTH & 0xff ? 0 : state & 0xffffffffff;
}

INLINE void mysql_failure(void *ctx, struct event_statement *s)
{
	s->flags |= STATEMENT_ERROR;
	s->sqlstate = mysql_sqlstate(ctx);
	if (s->sqlstate && !s->error_code)
		s->error_code = (__u32)arg_code(ctx);
}

static __attribute__((noinline)) void mysql_status(void *ctx, struct event_statement *s)
{
	s->error_code = arg_error(ctx);
	if (s->error_code || arg_state(ctx) == arg_failed_state(ctx))
		mysql_failure(ctx, s);
	if (!VALUE(status_known))
		s->flags |= STATEMENT_NO_STATUS;
}

INLINE void mysql_outcome(void *ctx, struct event_statement *s, __u64 now)
{
	mysql_status(ctx, s);
	if (VALUE(want_rows)) {
		mysql_rows(ctx, s, arg_rows(ctx));
		mysql_examined(ctx, s, 0);
		mysql_locked(ctx, s, now);
		mysql_plan(ctx, s);
	}
	s->connection_id = arg_connection(ctx);
}

/*
 * Return the outcome of transaction @t, which the last statement has ended; 0: unknown. It is as
 * marked, but a failure makes a commit uncertain unless its own result is known; or that of a
 * statement outside of a transaction.
 */
INLINE __u32 mysql_transaction_outcome(void *ctx, const struct event_transaction *t)
{
	__u32 outcome = t->flags & TRANSACTION_OUTCOMES;
	int failed = arg_error(ctx) || arg_state(ctx) == arg_failed_state(ctx);

	/* What the statement does after that, it rolls back itself. */
	if (failed && t->flags & TRANSACTION_SETTLED)
		return TRANSACTION_COMMITTED;
	if (outcome & TRANSACTION_ROLLED_BACK)
		return outcome & TRANSACTION_COMMITTED ? 0 : TRANSACTION_ROLLED_BACK;
	if (outcome & TRANSACTION_COMMITTED)
		return failed ? 0 : TRANSACTION_COMMITTED;
	if (outcome || t->statements > 1 || t->flags & TRANSACTION_PARTIAL || !VALUE(status_known))
		return outcome;
	return failed ? TRANSACTION_ROLLED_BACK : TRANSACTION_COMMITTED;
}

/* Return whether the text of @session's statement, which ends at @now, is to be read. */
INLINE int mysql_wants_text(void *ctx, const struct session *session, __u64 now)
{
	const struct event_transaction *t;
	__u64 ns = elapsed(session->s.start_ns, now);

	if (VALUE(want_statements) && ns >= VALUE(threshold_ns))
		return 1;
	if (!transactions_of(session))
		return 0;
	t = session_transaction((struct session *)session);
	if (transaction_is_open(t) && ns < t->longest_ns)
		return 0;
	return ns >= VALUE(transaction_ns) || arg_transaction(ctx) & IN_TRANSACTION ||
	       (transaction_is_open(t) && t->s.start_ns != session->s.start_ns);
}

/* Follow the transaction of @session, whose statement has ended at @now. */
static __attribute__((noinline)) void mysql_transaction(void *ctx, struct session *session,
							__u64 now, int keep)
{
	struct event_transaction *t = session_transaction(session);
	int open, chained;
	__u64 pair;

	if (session->s.flags & STATEMENT_ALONE) {
		t->flags = TRANSACTION_NONE;
		return;
	}
	open = arg_transaction(ctx) & IN_TRANSACTION;
	transaction_add(session, keep);
	chained = t->flags & TRANSACTION_ENDING;
	/* Once while it is open, as it may remain so, and at the end. */
	if (VALUE(want_sessions) &&
	    (open && !chained ? !t->who.session.head.type :
				elapsed(t->s.start_ns, now) >= VALUE(transaction_ns))) {
		identity_read(ctx, (__u64)session->s.pid << 32 | session->s.tid, &t->who);
		pair = mysql_attributes(ctx);
		if (pair)
			mysql_program(pair, t->application);
	}
	if (!open || chained)
		transaction_end(ctx, session, now, mysql_transaction_outcome(ctx, t));
	if (open && chained)
		transaction_begin(session, now, 0);
	if (!open)
		t->flags = TRANSACTION_NONE;
}

/*
 * The server commits or rolls back the session's transaction, if it has one: it does the same
 * before statements that commit implicitly. A ROLLBACK without one is one, and may be of what
 * another session has prepared.
 */
PROGRAM(command_mark)
{
	if (VALUE(transactions_known) && (arg_transaction(ctx) & IN_TRANSACTION ||
					  (__u32)arg_mark(ctx) & TRANSACTION_ASKED))
		transaction_marked(ctx);
	return 0;
}

/* Return of trans_commit_implicit(): the statement that it was for, a DDL, may yet fail. */
PROGRAM(command_committed)
{
	struct session *session;
	struct event_transaction *t;
	__u64 key;

	session = object_current(&key);
	if (!session || !VALUE(transaction_at) || arg_commit_failed(ctx))
		return 0;
	t = session_transaction(session);
	/* A procedure may have rolled back before. */
	if ((t->flags & TRANSACTION_OUTCOMES) == TRANSACTION_COMMITTED)
		t->flags |= TRANSACTION_SETTLED;
	return 0;
}

/* THD::cleanup(): the client has left, or asked for a new session. */
PROGRAM(command_cleanup)
{
	struct session *session = session_current(ctx);
	struct event_transaction *t;

	if (!session || !transactions_wanted())
		return 0;
	t = session_transaction(session);
	if (transaction_is_open(t))
		transaction_end(ctx, session, bpf_ktime_get_ns(),
				t->flags & TRANSACTION_PREPARED ? TRANSACTION_PREPARED :
								  TRANSACTION_ROLLED_BACK);
	return 0;
}

/*
 * dispatch_command() has finished a statement, or one of "a; b". Statements that it ran in turn
 * (bodies of procedures, the statement of an EXECUTE) do not end here.
 */
PROGRAM(command_end)
{
	__u64 id = id_seen(bpf_get_current_pid_tgid()), now;
	struct session *session;
	struct event_statement *s;
	long who_lost = 0;
	int wants_text;

	session = session_get(ctx, SESSION_JOINED);
	if (!session || !(session->s.flags & SESSION_OPEN) ||
	    (VALUE(backend) && session->backend != VALUE(backend)))
		return 0;
	s = &session->s;
	/* No statement of the packet is left: MariaDB's COM_MULTI, whose parts have ended. */
	if (s->flags & STATEMENT_COMPLETED && !arg_length(ctx))
		return 0;
	now = bpf_ktime_get_ns();
	wants_text = mysql_wants_text(ctx, session, now);
	if (wants_text) {
		s->tid = id;
		text_copy(s, (const char *)arg_text(ctx), arg_length(ctx));
		stat_command(session, 0);
		mysql_outcome(ctx, s, now);
		/* The command failed before the server found the prepared statement. */
		if (!s->text_len && !(s->flags & SESSION_TEXT))
			s->flags |= STATEMENT_NO_TEXT;
		stat_group(ctx, session);
		/* Of a transaction, it is in its own record. */
		if (VALUE(want_sessions) && elapsed(s->start_ns, now) >= VALUE(threshold_ns))
			who_lost = mysql_send_who(ctx, session, id);
	}
	if (VALUE(want_statements) && transactions_of(session))
		transaction_alone(session, arg_transaction(ctx) & IN_TRANSACTION);
	/* A lost statement is one loss. */
	if (!statement_end(ctx, session, now) && who_lost)
		lost_in(VALUE(target_id), LOST_WHO);
	if (transactions_of(session))
		mysql_transaction(ctx, session, now, wants_text);
	/* The next statement of the packet, if there is one, begins here. */
	s->text_len = 0;
	statement_begin(ctx, session, now,
			SESSION_LATE | STATEMENT_COMPLETED | (s->flags & SESSION_TEXT));
	if (VALUE(nested_at))
		nested_begin(session);
	return 0;
}

/* Return whether the current session has a client, which has a host or an address. */
INLINE int session_has_client(void *ctx)
{
	char name[8];

	read_name(name, sizeof(name), arg_host(ctx), arg_host_pair(ctx));
	if (!name[0])
		read_name(name, sizeof(name), arg_address(ctx), arg_address_pair(ctx));
	return name[0];
}

/*
 * A replica begins to apply the changes of rows by one statement, whose text it has if the source
 * wrote that to its binary log. It opens no tables if it ignores those that are changed. A BINLOG
 * statement of a client, or of an event, does the same.
 */
PROGRAM(rows_start)
{
	struct session *session = session_current(ctx);

	if (!arg_tables(ctx))
		return 0;
	if (!session && !session_has_client(ctx))
		session = session_get(ctx, 0);
	if (!session || session->backend != BACKEND_APPLIER)
		return 0;
	session_joined(session);
	object_begin(session, session_key(ctx, bpf_get_current_pid_tgid()));
	statement_begin(ctx, session, bpf_ktime_get_ns(), 0);
	if (VALUE(nested_at))
		nested_begin(session);
	if (arg_length(ctx))
		text_copy(&session->s, (const char *)arg_text(ctx), arg_length(ctx));
	else
		text_set(session, EVENT_APPLY_ROWS, sizeof(EVENT_APPLY_ROWS));
	stat_command(session, 0);
	stat_group(ctx, session);
	session->s.tid = id_seen(bpf_get_current_pid_tgid());
	session->s.connection_id = arg_connection(ctx);
	return 0;
}

/* Event_job_data::execute() begins to execute an event. */
PROGRAM(event_start)
{
	struct session *session = session_get(ctx, 0);

	if (!session)
		return 0;
	object_begin(session, session_key(ctx, bpf_get_current_pid_tgid()));
	statement_begin(ctx, session, bpf_ktime_get_ns(), STATEMENT_NO_TEXT);
	session->text_at = 0;
	return 0;
}

/* Keep the definer of the event of @key until its end: only then it is known whether it is slow. */
static __attribute__((noinline)) void event_save_client(void *ctx, __u64 key, __u64 id)
{
	struct event_identity event = {};

	identity_read(ctx, id, &event);
	bpf_map_update_elem(last_clients, &key, &event, BPF_ANY);
}

/*
 * It parses the event. At the end neither its definer nor, if the event is dropped then, its text
 * is there.
 */
PROGRAM(event_text)
{
	__u64 id = id_seen(bpf_get_current_pid_tgid());
	struct session *session = session_current(ctx);
	struct event_statement *s;

	if (!session || !(session->s.flags & SESSION_OPEN))
		return 0;
	s = &session->s;
	s->tid = id;
	s->flags &= ~STATEMENT_NO_TEXT;
	text_copy(s, (const char *)arg_text(ctx), arg_length(ctx));
	stat_command(session, 0);
	session->text_at = arg_text(ctx);
	s->connection_id = arg_connection(ctx);
	stat_group(ctx, session);
	if (VALUE(nested_at))
		nested_begin(session);
	if (VALUE(want_sessions))
		event_save_client(ctx, session_key(ctx, bpf_get_current_pid_tgid()), id);
	return 0;
}

/*
 * The event has ended; or the replica has applied the changes, and closes the tables. So it does
 * behind other statements, which have ended, too.
 */
PROGRAM(event_end)
{
	__u64 id = bpf_get_current_pid_tgid(), key = session_key(ctx, id), now = bpf_ktime_get_ns();
	int is_event = VALUE(backend) == BACKEND_EVENT;
	struct session *session = session_current(ctx);
	long who_lost = 0;

	if (!session || session_phase(&session->s) != SESSION_RUNNING ||
	    session->s.flags & SESSION_LATE || session->backend != VALUE(backend))
		return 0;
	session->s.error_code = 0;
	/* If the event has been dropped, this is the outcome of that. */
	if (is_event && session->text_at != arg_text(ctx))
		session->s.flags |= STATEMENT_NO_STATUS;
	else
		mysql_status(ctx, &session->s);
	if (VALUE(want_sessions) && elapsed(session->s.start_ns, now) >= VALUE(threshold_ns)) {
		if (is_event)
			object_send_client(ctx, key);
		else
			who_lost = send_identity(ctx, id_seen(id));
	} else if (VALUE(want_sessions) && is_event) {
		bpf_map_delete_elem(last_clients, &key);
	}
	if (!statement_end(ctx, session, now) && who_lost)
		lost_in(VALUE(target_id), LOST_WHO);
	return 0;
}

/*
 * Return on how many levels of @n statements run that have called the function with @stack, while
 * the session has @text. Others have ended unseen, as what the query cache answers does: the stack
 * grows downwards, and a statement's caller has its text again.
 */
INLINE __u64 nested_around(const struct nested *n, __u64 stack, __u64 text)
{
	__u64 depth = 0;

	for (__u64 i = 0; i < NESTED_LEVELS; i++)
		if (i < n->depth && depth == i && n->levels[i].stack > stack &&
		    n->levels[i].caller != text)
			depth = i + 1;
	return depth;
}

/*
 * Return what runs on the level after @depth others. The pointer is kept, not the index, whose
 * bound the verifier would not know any more: see at_most().
 */
INLINE struct nested_level *nested_level(struct nested *n, __u64 depth)
{
	struct nested_level *level = &n->levels[depth & (NESTED_LEVELS - 1)];

	__asm__ volatile("" : "+r"(level));
	return level;
}

/* Return the current session if its statement has begun, so that routines can, or NULL. */
INLINE struct session *nested_session(void *ctx)
{
	struct session *session = session_current(ctx);

	return VALUE(nested_at) && session && session->s.flags & SESSION_OPEN &&
	       session_nested(session)->outer_ns == session->s.start_ns ? session : 0;
}

/* A routine executes a statement, whose text is about to replace that of its caller. */
PROGRAM(nested_start)
{
	struct session *session = nested_session(ctx);
	__u64 stack = arg_stack(ctx), text = arg_text(ctx), depth;
	struct nested *n;

	if (!session)
		return 0;
	n = session_nested(session);
	depth = nested_around(n, stack, text);
	if (depth == NESTED_LEVELS)
		return 0;
	*nested_level(n, depth) = (struct nested_level){
		.start_ns = bpf_ktime_get_ns(), .stack = stack,
		.caller = text, .caller_len = arg_length(ctx),
		.rows = arg_sums(ctx) ? arg_rows(ctx) : 0,
		.examined = arg_sums(ctx) ? arg_examined(ctx) : 0,
	};
	n->depth = depth + 1;
	return 0;
}

/* Send who @session is of, before the record of a statement in a routine. */
static __attribute__((noinline)) void nested_send_client(void *ctx, struct session *session)
{
	const struct object_places *places = object_places_of(session);
	struct event_identity event = {};

	if (!places)
		return;
	object_identity_of(session, places, session_nested(session)->context, &event);
	if (output(ctx, &event, sizeof(event)))
		lost_in(VALUE(target_id), LOST_WHO);
}

/* Fill in the record of the statement on @level, which ends at @now, and send it. */
INLINE void nested_send(void *ctx, struct session *session, const struct nested_level *level,
			__u64 now)
{
	struct event_nested *event = &session_nested(session)->event;
	struct event_statement *s = &event->s;

	__builtin_memset(s, 0, sizeof(*s));
	s->head = session->s.head;
	s->target_id = session->s.target_id;
	s->pid = session->s.pid;
	s->tid = session->s.tid;
	s->start_ns = level->start_ns;
	s->duration_ns = elapsed(level->start_ns, now);
	s->flags = SESSION_LATE;
	s->connection_id = arg_connection(ctx);
	text_copy(s, (const char *)arg_text(ctx), arg_length(ctx));
	mysql_status(ctx, s);
	if (VALUE(want_rows)) {
		mysql_rows(ctx, s, elapsed(level->rows, arg_rows(ctx)));
		mysql_examined(ctx, s, level->examined);
	}
	/* In a function or a trigger it has no outcome, and no number of rows changed. */
	if (!s->rows && arg_state(ctx) == STATE_NONE)
		s->flags &= ~STATEMENT_HAS_ROWS;
	event->head = (struct event_head){ .type = EVENT_NESTED, .owner = s->head.owner };
	event->target_id = s->target_id;
	event->caller_len = level->caller_len;
	if (VALUE(limited) && s->flags & STATEMENT_DROPPED)
		s->text_len = event->caller_len = 0;
	else if (bpf_probe_read_user(event->caller, at_most(level->caller_len, CALLER_TEXT),
				     (const void *)level->caller))
		event->caller_len = 0;
	send(ctx, event, sizeof(*event) + at_most(s->text_len, VALUE(text_bytes)));
}

/*
 * The statement of a routine has ended; its text is about to be replaced by its caller's. How long
 * it waited for locks, and how it was executed, is not known: the server counts that for all
 * statements of a client's together.
 */
PROGRAM(nested_end)
{
	__u64 id = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns(), depth;
	struct session *session = nested_session(ctx);
	const struct nested_level *level;
	struct nested *n;

	if (!session)
		return 0;
	n = session_nested(session);
	depth = nested_around(n, arg_stack(ctx), ~0ull);
	level = nested_level(n, depth);
	if (depth >= n->depth || level->stack != arg_stack(ctx))
		return 0;
	n->depth = depth;
	n->event.level = depth + 1;
	if (!VALUE(want_statements))
		return 0;
	count(COUNT_STATEMENTS);
	if (elapsed(level->start_ns, now) < VALUE(threshold_ns))
		return 0;
	/* As in statement_end() */
	if (session->tgid != (__u32)(id >> 32)) {
		lost_in(VALUE(target_id), LOST_START_WITHOUT_END);
		return 0;
	}
	session->s.tid = id_seen(id);
	if (VALUE(want_sessions))
		nested_send_client(ctx, session);
	nested_send(ctx, session, level, now);
	return 0;
}

/* thd_wait_begin(THD *, type) and thd_wait_end(THD *), which the server calls around its waits. */
PROGRAM(wait_begin)
{
	struct event_breakdown *t = breakdown_current();

	if (t)
		t->announced = mysql_wait_part((__u32)arg_wait(ctx));
	return 0;
}

PROGRAM(wait_end)
{
	struct event_breakdown *t = breakdown_current();

	if (t)
		t->announced = 0;
	return 0;
}

/*
 * tpool::task::execute(), which calls function(argument). Those of asynchronous I/O are members of
 * their argument, the tpool::aiocb, and in a group; no other task is both. The function of such a
 * group's further tasks is called without execute(), by the same thread.
 */
PROGRAM(pool_task)
{
	struct mysql_task task;
	__u64 id = bpf_get_current_pid_tgid(), address = arg_task(ctx), *thread;
	__u32 slot = (__u32)id & (IO_THREADS - 1);

	thread = bpf_map_lookup_elem(io_threads, &slot);
	if (!thread || bpf_probe_read_user(&task, sizeof(task), (const void *)address))
		return 0;
	*thread = task.group && address - task.argument < AIOCB_BYTES ? id : 0;
	return 0;
}

/*
 * Return whether the current thread, which wakes thread @t, has completed I/O: @t has waited for a
 * page that another thread reads or writes. A process can claim this of its own threads only.
 */
INLINE int mysql_completes_io(const struct event_breakdown *t)
{
	__u64 id = bpf_get_current_pid_tgid(), *thread;
	__u32 slot = (__u32)id & (IO_THREADS - 1);

	thread = bpf_map_lookup_elem(io_threads, &slot);
	return thread && *thread == id && id_seen(id) >> 32 == t->pid;
}

#endif
