/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sessions: the state of each client's session, and the statements in it.
 *
 * A session's state is the record that is sent when its statement ends, text included, so that
 * nothing is copied twice. It is created at the first hit, changed in place from then on, and
 * dropped when the thread exits or the connection is closed: a hit costs one look-up.
 */
#ifndef BPF_SESSION_H
#define BPF_SESSION_H

#include "bpf/pid_filter.h"
#include "bpf/breakdown.h"

/* Flags that a session keeps between statements. */
#define SESSION_FLAGS \
	(SESSION_INTERNAL | SESSION_ADDED | SESSION_UNPARSED | SESSION_SETTLED | SESSION_UNNAMED)
#define TEXT_SCAN_STEPS	8	/* the length of a text beyond 1 MiB is not determined */

ARGUMENT(session);	/* address of the server's session object; 0: each thread is a session */
ARGUMENT(client);	/* 0: the process serves no client */
ARGUMENT(worker);	/* number of a parallel worker, from 0; negative: not a worker */
ARGUMENT(worker_entry);	/* not 0: a background worker */
ARGUMENT(worker_type);	/* address of its type */
ARGUMENT(database_id);	/* 0: unknown */
ARGUMENT(entry_database);	/* the same, of the session's entry in shared memory, and .. */
ARGUMENT(entry_user);		/* .. its user there; 0: unknown */
ARGUMENT(replication);	/* not 0: a walsender */
ARGUMENT(user);		/* pointers to user, database, host name, address and port; 0: none */
ARGUMENT(database);
ARGUMENT(host);
ARGUMENT(address);	/* instead of the host name */
ARGUMENT(port);
ARGUMENT(query_id_at);	/* address of the statement's query ID; 0: none .. */
ARGUMENT(query_id_enabled);	/* .. computed if one of these is not 0 */
ARGUMENT(query_id_on);
ARGUMENT(application);	/* pointer to its name; 0: unknown */
ARGUMENT(stack);	/* the stack pointer */
/* Instead: addresses of a pointer and the length of what it points to, in this order; 0: none. */
ARGUMENT(user_pair);
ARGUMENT(host_pair);
ARGUMENT(address_pair);

CONSTANT(engine_number);
CONSTANT(backend);	/* enum event_backend of the probe's sessions; 0: the process decides it */
CONSTANT(text_bytes);	/* bytes of a text that are sent */
CONSTANT(text_size);	/* text_bytes + 2: for a NUL, and to detect a longer text */
CONSTANT(text_share);	/* the same of each, if there are two; see tracer_text_share() .. */
CONSTANT(text_most);	/* .. and of both, with OF_GAP */
CONSTANT(head_bytes);	/* bytes of a text that are compared: text_size, HEAD_WORDS at most */
CONSTANT(want_sessions);
CONSTANT(identity_known);	/* the client can be read from this server's memory */
CONSTANT(want_prepares);	/* send what statement_is_prepare() */
CONSTANT(want_execs);	/* executions under any name */
CONSTANT(want_query_id);	/* query IDs are shown */
CONSTANT(want_rows);	/* rows are shown; reading them takes a tenth of a hit's budget */
CONSTANT(transaction_at);	/* offset of a session's event_transaction; 0: not wanted */
CONSTANT(want_statements);	/* .. and statements are wanted as well */
CONSTANT(nested_at);	/* offset of a session's struct nested; 0: not wanted */

MAP(scratch);		/* array of one: TEXT_SCAN_BYTES, written only */
MAP(comms);		/* hash: struct exec_name → enum exec_value, a byte */

INLINE struct event_session event_session(__u32 type, __u32 target_id, __u64 id)
{
	return (struct event_session){
		.head = event_head(type),
		.target_id = target_id,
		.pid = id >> 32,
		.tid = id,
		.time_ns = bpf_ktime_get_ns(),
	};
}

INLINE void send_session(void *ctx, __u32 type, __u32 target_id, __u64 id)
{
	struct event_session event = event_session(type, target_id, id);

	send(ctx, &event, sizeof(event));
}

/*
 * Read the NUL-terminated string at @from or, unless that is 0, the one that @pair refers to: its
 * address and its length. The server has changed both together, so they are read together. The
 * string of length 0 is another's. MySQL itself uses no other length: while X Protocol looks for a
 * user, "mysql.session" has the length of that one's name.
 */
INLINE void read_name(char *to, __u32 size, __u64 from, __u64 pair)
{
	__u64 counted[2] = { from, 1 };

	to[0] = 0;
	if (pair && bpf_probe_read_user(counted, sizeof(counted), (const void *)pair))
		return;
	if (counted[0] && counted[1])
		bpf_probe_read_user_str(to, size, (const void *)counted[0]);
}

/* The identity of a process that serves no client. */
INLINE void identity_internal(void *ctx, struct event_identity *event)
{
	event->user[0] = 0;
	event->database[0] = 0;
	event->port[0] = 0;
	event->backend = arg_worker_entry(ctx) ? BACKEND_WORKER : BACKEND_AUTOVACUUM;
	event->internal = 1;
	event->database_id = (__u32)arg_database_id(ctx);
	/* The offsets in the entry are those of this release if its database is. */
	event->user_id = (__u32)arg_entry_database(ctx) == event->database_id ?
			 (__u32)arg_entry_user(ctx) : 0;
	event->type[0] = 0;
	if (arg_worker_entry(ctx))
		read_name(event->type, sizeof(event->type), arg_worker_type(ctx), 0);
}

/* Fill in @event, whose memory has whatever was there before. */
INLINE void identity_read(void *ctx, __u64 id, struct event_identity *event)
{
	event->session = event_session(EVENT_SESSION, VALUE(target_id), id);
	if (!arg_client(ctx)) {
		identity_internal(ctx, event);
		return;
	}
	event->backend = arg_replication(ctx) ? BACKEND_WALSENDER : (__u8)VALUE(backend);
	event->internal = 0;
	read_name(event->user, sizeof(event->user), arg_user(ctx), arg_user_pair(ctx));
	read_name(event->database, sizeof(event->database), arg_database(ctx), 0);
	read_name(event->host, sizeof(event->host), arg_host(ctx), arg_host_pair(ctx));
	if (!event->host[0])
		read_name(event->host, sizeof(event->host), arg_address(ctx),
			  arg_address_pair(ctx));
	read_name(event->port, sizeof(event->port), arg_port(ctx), 0);
}

/*
 * A perf buffer has no space to reserve: the record is on the stack. Return not 0 if it does not
 * fit. The caller counts that: the stacks of nested functions may have 512 bytes together.
 */
static __attribute__((noinline)) long send_identity_copied(void *ctx, __u64 id)
{
	struct event_identity event = {};

	identity_read(ctx, id, &event);
	return output(ctx, &event, sizeof(event));
}

/* Return 0, or not 0 if the identity is lost. */
static __attribute__((noinline)) long send_identity(void *ctx, __u64 id)
{
	struct event_identity *event = 0;
	long err = -1;

	if (VALUE(perf_buffers))
		err = send_identity_copied(ctx, id);
	else
		event = output_reserve(event_head(EVENT_SESSION), sizeof(*event));
	if (event) {
		identity_read(ctx, id, event);
		bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
		err = 0;
	}
	if (!err)
		wake(ctx);
	return err;
}

/* Send the identity of the session that begins. */
INLINE void send_first_identity(void *ctx, __u64 id)
{
	if (VALUE(want_sessions) && VALUE(identity_known) && send_identity(ctx, id))
		lost_in(VALUE(target_id), LOST_WHO);
}

/* Send @name of @session's application. */
static __attribute__((noinline)) void send_application(void *ctx, struct session *session,
						       const char *name)
{
	struct event_statement *s = &session->s;
	__u64 id = (__u64)s->pid << 32 | s->tid;
	struct event_application event = {
		.session = event_session(EVENT_APPLICATION, s->target_id, id),
	};

	if (s->flags & SESSION_OPEN && (s->completed_ns || s->flags & STATEMENT_ERROR)) {
		event.start_ns = s->start_ns;
		event.failed = !s->completed_ns;
	}
	bpf_probe_read_user_str(event.name, sizeof(event.name), name);
	s->flags &= ~SESSION_UNNAMED;
	if (output(ctx, &event, sizeof(event))) {
		s->flags |= SESSION_UNNAMED;
		lost_in(s->target_id, LOST_WHO);
	} else {
		wake(ctx);
	}
}

/* Send the present name of @session's application. */
INLINE void send_present_application(void *ctx, struct session *session)
{
	if (VALUE(want_sessions) && arg_application(ctx))
		send_application(ctx, session, (const char *)arg_application(ctx));
}

/* Set the group in which the session's statements are counted. */
INLINE void stat_group(void *ctx, struct session *session)
{
	if (VALUE(stat_by) == STAT_BY_DATABASE)
		read_name(session->group, sizeof(session->group), arg_database(ctx), 0);
	else if (VALUE(stat_by) == STAT_BY_USER)
		read_name(session->group, sizeof(session->group), arg_user(ctx),
			  arg_user_pair(ctx));
}

/* Return a new session of @key for owner @number, or NULL: no room. */
INLINE struct session *session_allocate(__u64 key, __u32 number)
{
	struct session *session = session_claim_slot(key);

	if (session)
		return session;
	session = owner_may_add_session(number) ? session_add_overflow(key) : 0;
	if (!session) {
		lost_at(VALUE(target_id), number, LOST_TABLE_FULL);
		return 0;
	}
	session->counted = (__u16)(number + 1);
	owner_entries(number, OWNER_SESSIONS, 1);
	return session;
}

/* Return the transaction of @session; valid only if VALUE(transaction_at) is not 0. */
INLINE struct event_transaction *session_transaction(struct session *session)
{
	return (struct event_transaction *)((char *)session + VALUE(transaction_at));
}

/* Return what is running in routines of @session; valid only if VALUE(nested_at) is not 0. */
INLINE struct nested *session_nested(struct session *session)
{
	return (struct nested *)((char *)session + VALUE(nested_at));
}

/* Create a session at its first hit. Return NULL if it is not wanted or there is no room. */
INLINE struct session *session_create(void *ctx, __u64 kernel_id, __u64 key)
{
	__u64 id = id_seen(kernel_id);
	struct event_head head;
	struct session *session;
	char yes = 1;

	/* A parallel worker's time is its leader's. A mark takes less memory than a session. */
	if (!id || (!arg_client(ctx) && (int)arg_worker(ctx) >= 0) || !pid_wanted(ctx, id >> 32)) {
		bpf_map_update_elem(ignored, &key, &yes, BPF_ANY);
		return 0;
	}
	head = event_head(EVENT_STATEMENT);
	session = session_allocate(key, head.owner);
	if (!session)
		return 0;
	/* A slot has that of an earlier session. */
	if (VALUE(transaction_at))
		session_transaction(session)->flags = 0;
	session->object = arg_session(ctx);
	session->tgid = kernel_id >> 32;
	session->engine_number = VALUE(engine_number);
	/* A read of the ID costs a tenth of a statement, and most servers compute none. */
	session->query_id_at = 0;
	if (VALUE(want_query_id) && (arg_query_id_enabled(ctx) || arg_query_id_on(ctx) == 1))
		session->query_id_at = arg_query_id_at(ctx);
	session->s.head = head;
	session->s.target_id = VALUE(target_id);
	session->s.pid = id >> 32;
	session->s.tid = id;
	stat_group(ctx, session);
	session->backend = (__u16)VALUE(backend);
	session->thread = !arg_client(ctx);
	if (session->thread || arg_replication(ctx) || VALUE(backend))
		session->s.flags |= SESSION_INTERNAL;
	/* No client prepares its statements, and it has no portals. */
	if (session->thread)
		session->s.flags |= SESSION_UNPARSED | SESSION_SETTLED;
	send_first_identity(ctx, id);
	send_present_application(ctx, session);
	return session;
}

/*
 * Return the current session's key: the thread, or the session object that it works for, as a
 * statement can change threads in a thread pool. The object's address is a value of the traced
 * process: the secret factors keep it from choosing one that yields the key of another process.
 */
INLINE __u64 session_key(void *ctx, __u64 id)
{
	__u64 object = arg_session(ctx);

	if (!object)
		return (__u32)id;
	return (object * VALUE(secret) + (id >> 32) * VALUE(other_secret)) | SESSION_OBJECT;
}

/* Return whether @session belongs to the process @id and to the file that this program is for. */
INLINE int session_is_own(const struct session *session, __u64 id)
{
	return session->tgid == (__u32)(id >> 32) && session->s.target_id == VALUE(target_id);
}

/*
 * Make room for a session of @key, whose entry is of another process or file. Return 0 if the entry
 * is not the caller's to drop: the keys of two processes are equal by chance.
 */
static __attribute__((noinline)) int session_replace(const struct session *session, __u64 key,
						     __u64 id)
{
	if (key & SESSION_OBJECT && session->tgid != (__u32)(id >> 32)) {
		lost_in(VALUE(target_id), LOST_TABLE_FULL);
		return 0;
	}
	/* The process has executed another file, or has probes in several, or the TID is reused. */
	if (session->s.flags & SESSION_OPEN)
		lost_in(VALUE(target_id), LOST_START_WITHOUT_END);
	session_drop(key);
	return 1;
}

/* Return the session of @key, which has no slot, or a new one with @flags; NULL if ignored. */
static __attribute__((noinline)) struct session *session_overflow(void *ctx, __u64 key, __u32 flags)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct session *session = session_find(key);

	if (session && session_is_own(session, id))
		return session;
	if (session ? !session_replace(session, key, id) : bpf_map_lookup_elem(ignored, &key) != 0)
		return 0;
	session = session_create(ctx, id, key);
	if (session)
		session->s.flags |= flags;
	return session;
}

/* Return the current session, a new one with @first_flags, or NULL: not wanted, or no room. */
INLINE struct session *session_get(void *ctx, __u32 first_flags)
{
	__u64 id = bpf_get_current_pid_tgid(), key = session_key(ctx, id);
	struct session *session = session_in_slot(key);

	if (session && session_is_own(session, id))
		return session;
	return session_overflow(ctx, key, first_flags);
}

/* Return the current session if it is known, or NULL. */
INLINE struct session *session_current(void *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct session *session = session_find(session_key(ctx, id));

	return session && session_is_own(session, id) ? session : 0;
}

/* Return the time from @start_ns to @end_ns; 0 if a hostile process has mixed two threads up. */
INLINE __u64 elapsed(__u64 start_ns, __u64 end_ns)
{
	return end_ns > start_ns ? end_ns - start_ns : 0;
}

/*
 * End the statement at @end_ns: count it, and send it if it is slow enough. Return 0, or not 0 if
 * its record is lost.
 */
INLINE long statement_end(void *ctx, struct session *session, __u64 end_ns)
{
	struct event_statement *s = &session->s;
	int wanted = 1;

	if (statement_is_prepare(s))
		wanted = VALUE(want_prepares) != 0;
	else if (VALUE(want_statements))
		count(COUNT_STATEMENTS);
	if (s->flags & SESSION_ADDED)
		s->head.owner = (__u16)owner_current();
	s->duration_ns = elapsed(s->start_ns + s->duration_ns, end_ns);
	if (s->duration_ns < VALUE(threshold_ns))
		wanted = 0;
	if (VALUE(want_breakdown) && s->flags & SESSION_PAUSED)
		breakdown_resume(s, end_ns);
	if (VALUE(want_breakdown))
		breakdown_end(ctx, s, end_ns, wanted);
	s->flags &= ~SESSION_OPEN;
	if (!wanted)
		return 0;
	/* Closed in another thread meanwhile, it may be another process's: see bpf/slot.h. */
	if (session->tgid != (__u32)(bpf_get_current_pid_tgid() >> 32)) {
		lost_in(s->target_id, LOST_START_WITHOUT_END);
		return -1;
	}
	if (VALUE(stat_unit_ns)) {
		/* With a breakdown, its waits are counted instead. */
		if (!VALUE(want_breakdown))
			stat_count(session, s->duration_ns,
				   s->flags & STATEMENT_ERROR ? STAT_FAILED : 0);
		return 0;
	}
	if (VALUE(limited) && s->flags & STATEMENT_DROPPED)
		s->text_len = 0;
	return send(ctx, s, sizeof(*s) + at_most(statement_length(s), VALUE(text_most)));
}

/* Return the length of a text longer than text_bytes, or 0: longer than is determined. */
static __attribute__((noinline)) __u64 text_measure(const char *text)
{
	__u64 length = VALUE(text_bytes);
	__u32 zero = 0;
	void *bytes = bpf_map_lookup_elem(scratch, &zero);
	long n;

	for (int i = 0; bytes && i < TEXT_SCAN_STEPS; i++) {
		n = bpf_probe_read_user_str(bytes, TEXT_SCAN_BYTES, text + length);
		if (n <= 0)
			return 0;
		length += n - 1;
		if (n < TEXT_SCAN_BYTES)
			return length;
	}
	return 0;
}

/* Copy only the head of a text of @length, which distinguishes statements. */
INLINE void text_drop(struct event_statement *s, char *to, const char *text, __u64 length)
{
	long n = bpf_probe_read_user_str(to, at_most(length, VALUE(head_bytes) - 1) + 1, text);

	s->flags |= n > 0 ? STATEMENT_DROPPED : STATEMENT_UNREADABLE;
	s->text_len = n > 0 ? n - 1 : 0;
	s->query_bytes = 0;
}

/* Copy a NUL-terminated text to the session. */
INLINE void text_read(struct session *session, const char *text)
{
	struct event_statement *s = &session->s;
	long n;

	s->flags &= ~(STATEMENT_CUT | STATEMENT_UNREADABLE | STATEMENT_DROPPED);
	if (limit_drops_text(s->target_id)) {
		text_drop(s, session->text, text, VALUE(head_bytes));
		return;
	}
	n = bpf_probe_read_user_str(session->text, VALUE(text_size), text);
	if (n <= 0) {
		s->flags |= STATEMENT_UNREADABLE;
		s->text_len = 0;
		s->query_bytes = 0;
	} else if ((__u64)n < VALUE(text_size)) {
		s->text_len = n - 1;
		s->query_bytes = n - 1;
	} else {
		s->flags |= STATEMENT_CUT;
		s->text_len = VALUE(text_bytes);
		s->query_bytes = text_measure(text);
	}
}

/* Set the text, a literal of @size bytes with its NUL, of what has none. */
INLINE void text_set(struct session *session, const char *text, __u64 size)
{
	struct event_statement *s = &session->s;
	__u64 limit = VALUE(text_bytes), len = size - 1;

	s->flags &= ~(STATEMENT_CUT | STATEMENT_UNREADABLE | STATEMENT_DROPPED);
	__builtin_memcpy(session->text, text, size);
	s->query_bytes = len;
	s->text_len = len < limit ? len : limit;
	if (len > limit)
		s->flags |= STATEMENT_CUT;
}

/* Copy a text of known length behind @s, which has room for it. */
static __attribute__((noinline)) void text_copy(struct event_statement *s, const char *text,
						__u64 length)
{
	__u64 n = at_most(length, VALUE(text_bytes));

	s->flags &= ~(STATEMENT_CUT | STATEMENT_UNREADABLE | STATEMENT_DROPPED);
	if (length && limit_drops_text(s->target_id)) {
		text_drop(s, (char *)(s + 1), text, length);
		return;
	}
	s->query_bytes = length;
	s->text_len = n;
	if (length > VALUE(text_bytes))
		s->flags |= STATEMENT_CUT;
	if (bpf_probe_read_user(s + 1, n, text)) {
		s->flags |= STATEMENT_UNREADABLE;
		s->text_len = 0;
	}
}

/*
 * Return whether @text and the session's text begin alike, in head_bytes. That is enough to
 * distinguish the statements of a pipeline.
 */
static __attribute__((noinline)) int text_same(struct session *session, const char *text)
{
	const __u64 *kept = (const __u64 *)session->text;
	__u64 head[HEAD_WORDS] = {};

	if (bpf_probe_read_user_str(head, VALUE(head_bytes), text) < 0)
		return 0;
	for (int i = 0; i < HEAD_WORDS; i++) {
		/* The last byte of a cut head is a NUL that the text does not have. */
		__u64 mask = i == HEAD_WORDS - 1 ? 0x00ffffffffffffff : ~0ULL;
		__u64 differ = (head[i] ^ kept[i]) & mask;
		/* The lowest set bit marks the first NUL, if there is one. */
		__u64 nul = (head[i] - 0x0101010101010101) & ~head[i] & 0x8080808080808080;

		if (nul)
			return !(differ & ((nul & -nul) * 2 - 1));
		if (differ)
			return 0;
	}
	return 1;
}

/*
 * Count the missed start of the statement that the session's first hit was in: it began before the
 * probes were attached, unless there was no room for its session then.
 */
static __attribute__((noinline)) void session_join(struct session *session)
{
	struct owner *owner = owner_get(session->s.head.owner);

	session->s.flags &= ~SESSION_JOINED;
	if (owner && !READ_ONCE(owner->lost[LOST_TABLE_FULL]))
		count(COUNT_BOUNDARY);
	else
		lost_in(session->s.target_id, LOST_END_WITHOUT_START);
}

INLINE void session_joined(struct session *session)
{
	if (session->s.flags & SESSION_JOINED)
		session_join(session);
}

/* Count the missed end of @s, which may have ended while the probes were being detached. */
static __attribute__((noinline)) void statement_missed(const struct event_statement *s)
{
	__u32 zero = 0;
	const struct control *ctl = bpf_map_lookup_elem(control, &zero);

	if (!ctl || !READ_ONCE(ctl->detach_ns))
		lost_in(s->target_id, LOST_START_WITHOUT_END);
	else if (s->start_ns < ctl->detach_ns)
		count(COUNT_BOUNDARY);
}

/*
 * The session becomes idle: if user space added it to the overflow, replace it by one in a slot.
 * This must not happen later: a session whose first hit is an end would count a missed start.
 * A transaction stays where it is.
 */
INLINE void session_idle(void *ctx, struct session *session)
{
	__u64 key = session->s.tid;

	if (!VALUE(transaction_at) && session->s.flags & SESSION_ADDED &&
	    !bpf_map_delete_elem(sessions, &key))
		session_overflow(ctx, key, 0);
}

/* Begin a statement at @now. Flags that describe the session remain. */
INLINE void statement_begin(void *ctx, struct session *session, __u64 now, __u32 more)
{
	struct event_statement *s = &session->s;

	s->flags = SESSION_OPEN | more | (s->flags & SESSION_FLAGS);
	s->start_ns = now;
	s->duration_ns = 0;
	s->completed_ns = 0;
	s->rows = 0;
	s->lock_us = 0;		/* ->of_len, too */
	session->of_stack = 0;
	s->depth = 0;
	if (VALUE(want_breakdown)) {
		if (limit_permits_why(s->target_id, now))
			breakdown_begin(ctx, s, session_key(ctx, bpf_get_current_pid_tgid()));
		else
			s->flags |= STATEMENT_NO_WHY;
	}
}

#endif
