// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs that convert probe hits to statements, and those on the kernel's tracepoints. The tables
 * of probes in db/ define which probe runs which program.
 */
#include "bpf/mysql.h"
#include "bpf/postgres.h"

ARGUMENT(status);	/* not 0: the statement failed */
ARGUMENT(inner);	/* not 0: the probe may be inside another statement */

/*
 * With an overhead limit, attached in place of the program of each probe, which it runs. Reading
 * the clock twice takes long, so only each COST_SAMPLE-th hit is measured.
 */
PROGRAM(limited)
{
	struct cost *cost = cost_current(VALUE(target_id));
	__u64 begin_ns, ns;

	if (!cost)
		return 0;
	cost->hits++;
	cost->begin_ns = 0;
	if (!cost->skip--) {
		cost->skip = COST_SAMPLE - 1;
		cost->begin_ns = bpf_ktime_get_ns();
	}
	arg_program(ctx);
	/* Read once: another hit on this CPU, or user space, can set it to 0 at any time. */
	begin_ns = READ_ONCE(cost->begin_ns);
	ns = begin_ns ? bpf_ktime_get_ns() - begin_ns : COST_MOST_NS;
	if (ns < COST_MOST_NS)
		cost->ns += ns * COST_SAMPLE;
	return 0;
}

/* A pair of probes around a statement. Of nested pairs with arg_inner, the outer one counts. */
PROGRAM(pair_start)
{
	struct session *session = session_get(ctx, 0);
	struct event_statement *s;
	const char *text;

	if (!session)
		return 0;
	s = &session->s;
	session_joined(session);
	if (s->flags & SESSION_OPEN && arg_inner(ctx)) {
		s->depth++;
		return 0;
	}
	if (s->flags & SESSION_OPEN)
		statement_missed(s);
	statement_begin(ctx, session, bpf_ktime_get_ns(), 0);
	text = (const char *)arg_text(ctx);
	text_read(session, text);
	stat_command(session, 0);
	if (!text)
		s->flags ^= STATEMENT_UNREADABLE | STATEMENT_NO_TEXT;
	s->connection_id = arg_connection(ctx);
	stat_group(ctx, session);
	send_first_identity(ctx, (__u64)s->pid << 32 | s->tid);
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
	if (!VALUE(status_known))
		s->flags |= STATEMENT_NO_STATUS;
	statement_end(ctx, session, bpf_ktime_get_ns());
	return 0;
}

/* End the statement of a thread that exits. */
INLINE void session_end(void *ctx, struct session *session)
{
	struct event_statement *s = &session->s;
	__u64 end_ns = s->completed_ns;

	switch (session_phase(s)) {
	case SESSION_IDLE:
		return;
	case SESSION_SYNCING:
	case SESSION_SUSPENDED:
		break;
	case SESSION_RUNNING:
	case SESSION_BETWEEN:
		s->flags |= STATEMENT_ERROR | STATEMENT_DIED;
		end_ns = bpf_ktime_get_ns();
		if (VALUE(want_statements) && VALUE(transaction_at))
			transaction_alone(session, 0);
	}
	statement_end(ctx, session, end_ns);
}

/* As session_end(), and the transaction: the server rolls it back. */
INLINE void session_end_all(void *ctx, struct session *session)
{
	int ends = session->s.flags & SESSION_OPEN && !(session->s.flags & SESSION_INTERNAL);
	const struct event_transaction *t = session_transaction(session);

	session_end(ctx, session);
	if (!VALUE(transaction_at) || session->s.flags & STATEMENT_ALONE)
		return;
	if (ends && transaction_is_open(t))
		transaction_add(session, 1);
	/* After XA PREPARE it is still the session's; in PostgreSQL it is not. */
	if (transaction_is_open(t))
		transaction_end(ctx, session, bpf_ktime_get_ns(),
				session->object && t->flags & TRANSACTION_PREPARED ?
				TRANSACTION_PREPARED : TRANSACTION_ROLLED_BACK);
}

/* End what is open in @session, whose thread is gone. */
static __attribute__((noinline)) void session_leave(void *ctx, struct session *session)
{
	struct event_statement *s = &session->s;

	/* How the statement has ended is unknown. */
	if (!limit_detached(s->target_id))
		session_end_all(ctx, session);
	else if (s->flags & SESSION_OPEN)
		lost_in(s->target_id, LOST_START_WITHOUT_END);
	if (VALUE(want_sessions))
		send_session(ctx, EVENT_EXIT, s->target_id, (__u64)s->pid << 32 | s->tid);
}

/* Drop what is kept for thread @tid, whose ID another thread may get. @session: its own, or NULL */
INLINE void thread_end(void *ctx, __u32 tid, struct session *session)
{
	if (session)
		session_leave(ctx, session);
	if (VALUE(want_breakdown))
		breakdown_exit(ctx, tid);
	session_drop(tid);
}

/*
 * Raw tracepoint signal_deliver(signal, information, action), in the thread that gets it. If it
 * does not end the process, nothing but a copy is lost.
 */
PROGRAM(thread_signal)
{
	const __u64 *args = ctx;
	__u64 key;
	struct session *session = object_current(&key);
	__u32 late;

	if (!session)
		return 0;
	if ((__u32)args[0] == SIGNAL_KILL)
		session->s.flags |= SESSION_KILLED;
	/* The text that is not late was read at the begin, and so was the client of an event. */
	late = session->s.flags & SESSION_LATE;
	if (session->s.flags & SESSION_OPEN && !late && session->backend == BACKEND_EVENT)
		return 0;
	/* One after the other: nested functions may have 512 bytes of stack together. */
	if (session->s.flags & SESSION_OPEN && late)
		object_save(session);
	if (VALUE(want_sessions) && session->s.flags & SESSION_OPEN && session->s.text_len)
		object_save_client(session, key);
	else
		bpf_map_delete_elem(last_clients, &key);
	if (VALUE(want_sessions) && VALUE(transaction_at) &&
	    transaction_is_open(session_transaction(session)))
		object_save_transaction(session);
	return 0;
}

/*
 * End the session that is an object and for which the current thread works, if the thread exits
 * because its process does. A thread of a pool may exit while a session that it has served goes on.
 */
INLINE void object_end(void *ctx)
{
	__u64 key;
	struct session *session = object_current(&key);
	struct event_statement *s = &session->s;
	enum session_phase phase;

	if (!session)
		return;
	phase = session_phase(s);
	if (!(s->flags & SESSION_KILLED) && phase != SESSION_RUNNING)
		return;
	/* Without a text, the packet has no other statement. */
	if (phase == SESSION_BETWEEN && !s->text_len)
		s->flags &= ~SESSION_OPEN;
	if (!s->text_len)
		s->flags |= STATEMENT_UNREADABLE;
	if (VALUE(want_sessions))
		object_send_client(ctx, key);
	session_leave(ctx, session);
	session_drop(key);
}

/* Raw tracepoint sched_process_exit: a thread's session ends with it. */
PROGRAM(thread_exit)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();

	object_end(ctx);
	thread_end(ctx, tid, session_find(tid));
	return 0;
}

/*
 * Raw tracepoint sched_process_exec(task, former TID): a thread that is not the first one of its
 * process gets the first one's ID. Its own becomes free, and no exit is reported for that.
 */
PROGRAM(thread_exec)
{
	const __u64 *args = ctx;
	__u32 tid = (__u32)args[1], tgid = bpf_get_current_pid_tgid() >> 32;
	struct session *session = session_find(tid);

	/* Unless another process has the ID already. */
	if (!session || session->tgid == tgid)
		thread_end(ctx, tid, session);
	return 0;
}

/* A connection is closed, where a session is an object of the server. */
PROGRAM(session_closed)
{
	__u64 id = bpf_get_current_pid_tgid(), key = session_key(ctx, id);
	const struct session *session = session_find(key);

	if (!session || session_is_own(session, id))
		session_drop(key);
	return 0;
}

/*
 * Raw tracepoint sched_process_exec: a server may have been started. Report every execution under
 * the name of a server; of any other name each user's first one, as a server may run under it.
 */
PROGRAM(process_exec)
{
	struct event_exec event = {};
	const char *known;
	char reported = EXEC_REPORTED;
	__u64 id;

	if (bpf_get_current_comm(&event.name.comm, sizeof(event.name.comm)))
		return 0;
	event.name.uid = EXEC_ANY_USER;
	known = bpf_map_lookup_elem(comms, &event.name);
	if (!known) {
		event.name.uid = (__u32)bpf_get_current_uid_gid();
		if (!VALUE(want_execs) || bpf_map_lookup_elem(comms, &event.name))
			return 0;
	}
	id = id_seen(bpf_get_current_pid_tgid());
	if (!id)
		return 0;
	event.session = event_session(EVENT_EXEC, 0, id);
	/* If the table is full, each execution is reported. */
	if (!output(ctx, &event, sizeof(event)) && !known)
		bpf_map_update_elem(comms, &event.name, &reported, BPF_ANY);
	wake(ctx);
	return 0;
}

/*
 * Read what thread @t waits for, as the server reports it. Return the part, or WAIT_IO; 0: it
 * reports nothing.
 */
INLINE __u32 server_wait_part(struct event_breakdown *t)
{
	__u64 stage;

	t->event = 0;
	if (t->wait_event)
		bpf_probe_read_user(&t->event, sizeof(t->event), (const void *)t->wait_event);
	else if (t->stage &&
		 !bpf_probe_read_user(&stage, sizeof(stage), (const void *)t->stage) &&
		 (__s64)(stage - t->stage_from) == (__s32)(stage - t->stage_from))
		t->event = (__u32)(stage - t->stage_from);
	if (t->announced)
		return t->announced;
	return t->wait_event ? postgres_wait_part(t) : 0;
}

/*
 * Raw tracepoint sched_switch(preempted, previous, next), or its record. The current thread is
 * still the previous one.
 */
PROGRAM(task_switch)
{
	const __u64 *args = ctx;
	__u64 task = args[1];
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), state, part;
	struct event_breakdown *t = tid ? breakdown_thread(tid) : 0;
	__u64 argument, now;

	if (t) {
		argument = t->argument;
		now = bpf_ktime_get_ns();
		breakdown_change(ctx, t, now, BREAKDOWN_RUNQUEUE);
		state = wait_task_state(ctx);
		if (state && !VALUE(record_state))
			wait_system_call(t, task);
		if (!state) {
			t->part = wait_queue_part(task);
		} else if (wait_is_stopped(task, state)) {
			t->part = BREAKDOWN_STOPPED;
		} else {
			part = server_wait_part(t);
			t->part = part && part != WAIT_IO ? part :
				  wait_call_part(t, task, state, part == WAIT_IO);
			/* Of PostgreSQL's asynchronous foreign scans, IPC:AppendReady. */
			if ((t->part == BREAKDOWN_NETWORK || t->part == BREAKDOWN_EXTENSION ||
			     t->part == BREAKDOWN_IPC) && wait_is_remote(t, task))
				t->part = BREAKDOWN_REMOTE;
			if (t->part != BREAKDOWN_FUTEX || t->argument != argument)
				t->interrupted_ns = 0;
		}
		breakdown_spend(t, now);
	}
	tid = wait_task_id(ctx, VALUE(record_next), 2);
	t = tid ? breakdown_thread(tid) : 0;
	if (t) {
		now = bpf_ktime_get_ns();
		breakdown_change(ctx, t, now, BREAKDOWN_CPU);
		breakdown_spend(t, now);
	}
	return 0;
}

/* Raw tracepoint sched_wakeup(task), or its record: the thread waits for a CPU from now on. */
PROGRAM(task_wakeup)
{
	struct event_breakdown *t = breakdown_thread(wait_task_id(ctx, VALUE(record_pid), 0));
	const __u64 *args = ctx;
	__u64 now;

	/* Ignore the wake-up of a thread that is still running, about to sleep. */
	if (t && breakdown_is_waiting(t)) {
		now = bpf_ktime_get_ns();
		breakdown_change(ctx, t, now, VALUE(record_pid) ? BREAKDOWN_RUNQUEUE :
				 wait_queue_part(args[0]));
		breakdown_spend(t, now);
	}
	return 0;
}

/*
 * Raw tracepoint sched_waking(task) (fbd705a0c618, 4.3), or its record, in the thread that wakes
 * the task, which shows what it has waited for.
 */
PROGRAM(task_waking)
{
	struct event_breakdown *t = breakdown_thread(wait_task_id(ctx, VALUE(record_pid), 0));
	const __u64 *args = ctx;

	if (t && t->part == BREAKDOWN_FUTEX)
		wait_futex_ends(t, VALUE(record_state) ? 0 : args[0],
				mysql_completes_io(t));
	return 0;
}

/*
 * The current thread runs, even if the switch back to it was missed: the kernel runs no program on
 * a record while its CPU is in bpf(2) (bpf_prog_active), and a caller may be preempted there.
 */
INLINE void call_runs(void *ctx, struct event_breakdown *t)
{
	if (t->part != BREAKDOWN_CPU)
		breakdown_change(ctx, t, bpf_ktime_get_ns(), BREAKDOWN_CPU);
}

/* Raw tracepoints sys_enter(registers, number) and sys_exit(registers, result). */
PROGRAM(call_enter)
{
	const __u64 *args = ctx;
	struct event_breakdown *t = breakdown_current();
	__u64 begin_ns;

	if (!t)
		return 0;
	begin_ns = breakdown_begin_ns();
	call_runs(ctx, t);
	t->call = (__u32)args[1];
	t->argument = kernel_word(args[0] + VALUE(regs_argument));
	breakdown_spend(t, begin_ns);
	return 0;
}

PROGRAM(call_exit)
{
	struct event_breakdown *t = breakdown_current();
	__u64 begin_ns;

	if (!t)
		return 0;
	begin_ns = breakdown_begin_ns();
	call_runs(ctx, t);
	t->call = BREAKDOWN_NO_CALL;
	breakdown_spend(t, begin_ns);
	return 0;
}

/* Raw tracepoints sock_send_length(socket, bytes or error, flags) and sock_recv_length (6.3). */
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

/* The start and the end of a phase of the statement. */
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

char dual_license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
