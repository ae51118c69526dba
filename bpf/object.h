/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sessions that are objects of the server, when their process is killed. Text and client are read
 * at the end of a statement, which does not come, and when a thread exits its memory is gone. But
 * each thread of a process that is killed is delivered a signal before: SIGKILL, unless it caused
 * the end itself (98af37d624ed, 5.2).
 */
#ifndef BPF_OBJECT_H
#define BPF_OBJECT_H

#include "bpf/transaction.h"

#define SIGNAL_KILL	9

MAP(objects);			/* LRU hash: u32 target ID → struct object_places */
MAP(last_clients);		/* LRU hash: u64 key of a session → struct event_identity */
MAP(threads_of_objects);	/* array: u64 key of the session that a thread works for */

INLINE const struct object_places *object_places_of(const struct session *session)
{
	__u32 target_id = session->s.target_id;

	return bpf_map_lookup_elem(objects, &target_id);
}

INLINE __u64 *object_of_thread(__u32 tid)
{
	__u32 slot = tid & (THREADS_OF_OBJECTS - 1);

	return bpf_map_lookup_elem(threads_of_objects, &slot);
}

/* The current thread begins a command of @session, of @key, or goes on with it. */
INLINE void object_begin(struct session *session, __u64 key)
{
	__u64 *of_thread;

	session->thread = (__u32)bpf_get_current_pid_tgid();
	/* The text is read when the statement ends: this is an earlier one's. */
	session->s.text_len = 0;
	of_thread = object_of_thread(session->thread);
	if (of_thread)
		WRITE_ONCE(*of_thread, key);
}

/* Return the session of *@key, for which the current thread works, or NULL. */
INLINE struct session *object_current(__u64 *key)
{
	__u64 id = bpf_get_current_pid_tgid(), *of_thread = object_of_thread((__u32)id);
	struct session *session;

	*key = of_thread ? READ_ONCE(*of_thread) : 0;
	session = *key ? session_find(*key) : 0;
	return session && session->object && session->tgid == id >> 32 &&
	       session->thread == (__u32)id ? session : 0;
}

/* Return the present security context of session object @object, or 0: unknown. */
INLINE __u64 object_context_now(__u64 object, const struct object_places *places)
{
	__u64 context = 0;

	if (places->context >= 0)
		bpf_probe_read_user(&context, sizeof(context),
				    (const void *)(object + places->context));
	return context;
}

/* Return the security context of session object @object, or 0: unknown, or a definer's. */
INLINE __u64 object_context(__u64 object, const struct object_places *places)
{
	__u64 context = object_context_now(object, places);

	return context - object < (__u64)places->context ? context : 0;
}

INLINE void object_name(char *to, __u32 size, __u64 context, const struct object_name *name)
{
	__u64 at = context && name->at >= 0 ? context + name->at : 0, string = 0;

	if (at && !name->counted)
		bpf_probe_read_user(&string, sizeof(string), (const void *)at);
	read_name(to, size, string, name->counted ? at : 0);
}

/* Return the server's ID of the connection of session object @object, or 0. */
INLINE __u64 object_connection(__u64 object, const struct object_places *places)
{
	const void *at = (const void *)(object + places->connection);
	__u64 id = 0;

	if (places->connection >= 0 && places->connection_bytes == 4)
		bpf_probe_read_user(&id, 4, at);
	else if (places->connection >= 0)
		bpf_probe_read_user(&id, sizeof(id), at);
	return id;
}

/* Fill in @event, with the user of security context @context. */
static __attribute__((noinline)) void object_identity_of(const struct session *session,
							 const struct object_places *places,
							 __u64 context,
							 struct event_identity *event)
{
	const struct event_statement *s = &session->s;
	__u64 object = session->object, database = 0;

	event->session = event_session(EVENT_SESSION, s->target_id, (__u64)s->pid << 32 | s->tid);
	event->backend = (__u8)session->backend;
	object_name(event->user, sizeof(event->user), context, &places->user);
	object_name(event->host, sizeof(event->host), context, &places->host);
	if (!event->host[0])
		object_name(event->host, sizeof(event->host), context, &places->address);
	if (places->database >= 0)
		bpf_probe_read_user(&database, sizeof(database),
				    (const void *)(object + places->database));
	read_name(event->database, sizeof(event->database), database, 0);
}

INLINE void object_identity(const struct session *session, const struct object_places *places,
			    struct event_identity *event)
{
	object_identity_of(session, places, object_context(session->object, places), event);
}

/*
 * Keep the client of @session, of @key, until its end: sent now, it would stay with user space if
 * the signal does not end the process, as often as that likes to get one.
 */
static __attribute__((noinline)) void object_save_client(const struct session *session, __u64 key)
{
	const struct object_places *places = object_places_of(session);
	struct event_identity event = {};

	if (!places)
		return;
	object_identity(session, places, &event);
	bpf_map_update_elem(last_clients, &key, &event, BPF_ANY);
}

/* Send the client that was kept for the session of @key, which ends, before its statement. */
INLINE void object_send_client(void *ctx, __u64 key)
{
	struct event_identity *event = bpf_map_lookup_elem(last_clients, &key);

	if (!event)
		return;
	if (output(ctx, event, sizeof(*event)))
		lost_in(event->session.target_id, LOST_WHO);
	bpf_map_delete_elem(last_clients, &key);
}

/* Read what is running in @session while its memory is there, in case that this is its end. */
static __attribute__((noinline)) void object_save(struct session *session)
{
	const struct object_places *places = object_places_of(session);
	struct event_statement *s = &session->s;
	__u64 text[2] = {};

	s->tid = id_seen(bpf_get_current_pid_tgid());
	if (!places)
		return;
	if (places->text >= 0 &&
	    !bpf_probe_read_user(text, sizeof(text),
				 (const void *)(session->object + places->text))) {
		text_copy(s, (const char *)text[0], text[1]);
		stat_command(session, 0);
	}
	s->connection_id = object_connection(session->object, places);
}

/* Fill in who the open transaction of @session is of. */
static __attribute__((noinline)) void object_save_transaction(struct session *session)
{
	const struct object_places *places = object_places_of(session);

	if (places)
		object_identity(session, places, &session_transaction(session)->who);
}

#endif
