// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/session/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "db/session/backend_state.h"
#include "host/process.h"
#include "loader/owners.h"
#include "loader/sys.h"

#define SLOTS_BYTES	(2u << 20)	/* memory of all slots */
#define SLOTS_MAX	1024

typedef bool sessions_each_fn(struct sessions *s, uint64_t key, struct session *session, void *arg);

uint32_t sessions_slots(uint32_t bytes)
{
	uint32_t n = 2;

	while (n < SLOTS_MAX && 2 * n * (uint64_t)bytes <= SLOTS_BYTES)
		n *= 2;
	return n;
}

int sessions_share(struct sessions *s, int slots_map, uint32_t n)
{
	void *p = mmap(NULL, n * sizeof(*s->slots), PROT_READ | PROT_WRITE, MAP_SHARED, slots_map,
		       0);

	if (p == MAP_FAILED)
		return -errno;
	s->slots = p;
	s->slot_shift = 64 - (uint32_t)__builtin_ctz(n);
	return 0;
}

/* Return the number of the only slot that the session of @key may claim. */
static uint32_t session_slot(const struct sessions *s, uint64_t key)
{
	return (uint32_t)(SLOT_PRODUCT(key) >> s->slot_shift);
}

/* Return whether the session of @key is in @slot. */
static bool slot_is_of(const struct sessions *s, uint32_t slot, uint64_t key)
{
	return s->slots && __atomic_load_n(&s->slots[slot].key, __ATOMIC_ACQUIRE) == key;
}

/* Read the session of @key. Return 0 or -errno. */
static int session_read(const struct sessions *s, uint64_t key, struct session *session)
{
	uint32_t slot = session_slot(s, key);

	return slot_is_of(s, slot, key) ? sys_map_lookup(s->slot_map, &slot, session) :
					  sys_map_lookup(s->map, &key, session);
}

int sessions_add(const struct sessions *s, uint32_t tid, struct session *session)
{
	uint64_t key = tid;
	int err;

	session->s.flags |= SESSION_ADDED;
	err = sys_map_add(s->map, &key, session);
	/* A program that claims a slot sets its key and then deletes from the overflow. */
	if (!err && slot_is_of(s, session_slot(s, key), key)) {
		sys_map_delete(s->map, &key);
		err = -EEXIST;
	}
	return err;
}

/* Delete the session of @key, which is @session, from the overflow. Return whether it was there. */
static bool session_delete(const struct sessions *s, uint64_t key, const struct session *session)
{
	if (sys_map_delete(s->map, &key))
		return false;
	if (session->counted)
		owners_removed(s->owners, (uint16_t)(session->counted - 1));
	return true;
}

/* Detach the session from thread @key. Return whether it had one. */
static bool session_dismiss(const struct sessions *s, uint64_t key)
{
	uint32_t number = session_slot(s, key);
	struct session *session;
	__u64 found = key;
	bool deleted;

	/* The slot remains the thread's, which may be using it, until the thread exits. */
	if (slot_is_of(s, number, key) &&
	    __atomic_compare_exchange_n(&s->slots[number].key, &found, 0, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		return true;
	session = calloc(1, s->bytes);
	if (!session)
		return !sys_map_delete(s->map, &key);
	sys_map_lookup(s->map, &key, session);
	deleted = session_delete(s, key, session);
	free(session);
	return deleted;
}

void sessions_ignore(const struct sessions *s, uint32_t tid)
{
	uint64_t key = tid;
	char yes = 1;

	if (sys_map_update(s->ignored_map, &key, &yes))
		return;
	/* If the thread has exited meanwhile, a new thread with its ID must not be ignored. */
	if (!session_dismiss(s, key))
		sys_map_delete(s->ignored_map, &key);
}

/* Free the slot of session @key, whose process is gone; @zeros is a session. */
static void slot_free(const struct sessions *s, uint32_t number, __u64 key,
		      const struct session *zeros)
{
	struct slot *slot = &s->slots[number];

	if (!__atomic_compare_exchange_n(&slot->key, &key, 0, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		return;
	sys_map_update(s->slot_map, &number, zeros);
	__atomic_store_n(&slot->owner, 0, __ATOMIC_SEQ_CST);
	__atomic_sub_fetch(&slot->claims, 1, __ATOMIC_SEQ_CST);
}

/* As sessions_each(), for the sessions in slots. */
static void sessions_each_slot(struct sessions *s, struct session *session, void *arg,
			       sessions_each_fn *each)
{
	uint32_t n = s->slots ? 1u << (64 - s->slot_shift) : 0;

	for (uint32_t slot = 0; slot < n; slot++) {
		uint64_t key = __atomic_load_n(&s->slots[slot].key, __ATOMIC_ACQUIRE);

		if (!key || sys_map_lookup(s->slot_map, &slot, session) ||
		    !each(s, key, session, arg))
			continue;
		memset(session, 0, s->bytes);
		slot_free(s, slot, key, session);
	}
}

/* Call @each for every session, and delete those for which it returns true. */
static void sessions_each(struct sessions *s, void *arg, sessions_each_fn *each)
{
	struct session *session = malloc(s->bytes);
	uint64_t keys[2], left = 2ull * s->max;
	bool kept = false;

	if (session)
		sessions_each_slot(s, session, arg, each);
	/*
	 * After a deletion, continue with the key after the last one that was kept. If a program
	 * has deleted that, the kernel begins again with the first, for which there is a limit.
	 */
	while (session && left-- && !sys_map_next(s->map, kept ? &keys[0] : NULL, &keys[1])) {
		bool remove = !sys_map_lookup(s->map, &keys[1], session) &&
			      each(s, keys[1], session, arg);

		if (remove && session_delete(s, keys[1], session))
			continue;
		keys[0] = keys[1];
		kept = true;
	}
	free(session);
}

const struct event_transaction *sessions_transaction(const struct sessions *s,
						     const struct session *session)
{
	const char *at = (const char *)session + s->transaction_at;
	const struct event_transaction *t = (const struct event_transaction *)at;

	/* PID 0: just claimed, with an earlier session's transaction. */
	return s->transaction_at && session->s.pid && t->flags & TRANSACTION_OPEN ? t : NULL;
}

/*
 * Return whether the process of @session is gone. If it is an object of the server, no program may
 * have learned of that.
 */
static bool session_gone(struct sessions *s, uint64_t key, struct session *session, void *arg)
{
	(void)key;
	(void)arg;
	/* PID 0: just claimed, and not filled in yet. */
	if (!session->s.pid || process_exists(session->s.pid))
		return false;
	if (session_phase(&session->s) == SESSION_RUNNING || sessions_transaction(s, session))
		owners_lost(s->owners, session->s.head.owner, LOST_START_WITHOUT_END, 1);
	return true;
}

/* Return the target of @session, or NULL: it was removed, or has no probes at present. */
static const struct target *session_target(const struct sessions *s, const struct session *session)
{
	const struct target *target = target_by_id(s->discover->targets, s->discover->ntargets,
						   session->s.target_id);

	return target && !target->paused_ns ? target : NULL;
}

void sessions_places(const struct sessions *s, const struct target *target)
{
	const struct object_places *places = &target->places.object;

	if (places->text >= 0)
		sys_map_update(s->objects_map, &target->id, places);
}

bool sessions_who(const struct sessions *s, const struct session *session, struct who *who)
{
	const struct target *target = session_target(s, session);
	const struct object_owner owner = { session->s.pid, target ? &target->file : NULL,
					    engine_is_executable };

	return target && session->object && !s->no_memory &&
	       !object_who(&owner, session->object, &target->places.object,
			   session->backend != BACKEND_CLIENT, who);
}

void sessions_prune(struct sessions *s)
{
	sessions_each(s, NULL, session_gone);
}

static bool session_forgotten(struct sessions *s, uint64_t key, struct session *session, void *arg)
{
	const uint32_t *target_id = arg;

	(void)s;
	return key & SESSION_OBJECT && session->s.pid && session->s.target_id == *target_id;
}

void sessions_forget(struct sessions *s, uint32_t target_id)
{
	sessions_each(s, &target_id, session_forgotten);
}

/* Begin the transaction of @session's statement unless the programs have: see bpf/transaction.h. */
static void session_catch_up(const struct sessions *s, struct session *session)
{
	struct event_transaction *t = (struct event_transaction *)((char *)session +
								   s->transaction_at);

	if (!s->both || !session->s.pid || t->flags != TRANSACTION_NONE ||
	    !(session->s.flags & SESSION_OPEN) || session->s.flags & SESSION_INTERNAL)
		return;
	*t = (struct event_transaction){
		.target_id = session->s.target_id, .flags = TRANSACTION_OPEN,
		.s = { .target_id = session->s.target_id, .pid = session->s.pid,
		       .tid = session->s.tid, .start_ns = session->s.start_ns,
		       .flags = STATEMENT_NO_TEXT },
	};
}

/* Return the start of @session's statement or, with @transaction, of its transaction; 0: none. */
static uint64_t session_since(const struct sessions *s, const struct session *session,
			      bool transaction)
{
	const struct event_transaction *t = sessions_transaction(s, session);

	if (transaction)
		return t ? t->s.start_ns : 0;
	return session->s.flags & SESSION_OPEN ? session->s.start_ns : 0;
}

/* Return whether the session of @key still has the same statement, or transaction, as @session. */
static bool session_same(const struct sessions *s, uint64_t key, const struct session *session,
			 bool transaction)
{
	struct session *now = malloc(s->bytes);
	bool same = now && !session_read(s, key, now);

	if (same) {
		session_catch_up(s, now);
		same = session_since(s, now, transaction) == session_since(s, session, transaction);
	}
	free(now);
	return same;
}

/*
 * Read the text of a SESSION_LATE session's statement from the server's memory. Return whether that
 * succeeded and the statement was still running afterwards.
 */
static bool session_query(const struct sessions *s, uint64_t key, struct session *session)
{
	struct event_statement *statement = &session->s;
	const struct target *target = session_target(s, session);
	const struct object_owner owner = { statement->pid, &target->file, engine_is_executable };
	size_t len = 0;
	int n = s->no_memory ? -ENOENT :
			       object_query(&owner, session->object, &target->places.object,
					    session->text, s->text_bytes, &len);
	bool same = n >= 0 && session_same(s, key, session, false);

	statement->text_len = n < 0 ? 0 : (uint32_t)n;
	statement->query_bytes = len;
	statement->flags &= ~(STATEMENT_CUT | STATEMENT_UNREADABLE);
	if (statement->query_bytes > statement->text_len)
		statement->flags |= STATEMENT_CUT;
	return same;
}

/*
 * Return whether the session runs a statement, which may be suspended, and in *@has_text whether
 * its text is known. In SESSION_BETWEEN, the packet has another statement if the server's memory
 * has its text.
 */
static bool session_is_running(const struct sessions *s, uint64_t key, struct session *session,
			       bool *has_text)
{
	struct event_statement *statement = &session->s;
	enum session_phase phase = session_phase(statement);

	if (phase == SESSION_IDLE || phase == SESSION_SYNCING || !session_target(s, session))
		return false;
	*has_text = statement->flags & SESSION_LATE ? session_query(s, key, session) :
						      statement_length(statement) <= s->text_most;
	return *has_text || phase != SESSION_BETWEEN;
}

/* Return what is wanted of @session, SESSION_HAS_*; 0: nothing. */
static unsigned int session_state(const struct sessions *s, uint64_t key, struct session *session)
{
	bool has_text = false;
	bool open = session_target(s, session) && sessions_transaction(s, session);
	bool running = (open || !s->transaction_at || s->both) &&
		       session_is_running(s, key, session, &has_text);
	unsigned int state = open ? SESSION_HAS_TRANSACTION : 0;

	if (running && (!s->transaction_at || s->both))
		state |= SESSION_HAS_STATEMENT;
	return state && has_text ? state | SESSION_HAS_TEXT : state;
}

/* A callback for sessions. */
struct listener {
	void *arg;
	void (*each)(void *arg, const struct session *session, unsigned int state);
};

static bool session_report(struct sessions *s, uint64_t key, struct session *session, void *arg)
{
	struct listener *listener = arg;
	unsigned int state;

	session_catch_up(s, session);
	state = session_state(s, key, session);
	if (state && key & SESSION_OBJECT && session_gone(s, key, session, NULL))
		return true;
	if (state)
		listener->each(listener->arg, session, state);
	return false;
}

void sessions_running(struct sessions *s, void *arg,
		      void (*each)(void *arg, const struct session *session, unsigned int state))
{
	sessions_each(s, &(struct listener){ arg, each }, session_report);
}

static bool session_keep(struct sessions *s, uint64_t key, struct session *session, void *arg)
{
	const uint64_t *time_ns = arg;
	struct sessions_kept *kept;
	unsigned int state = 0;

	session_catch_up(s, session);
	if (session_since(s, session, false) < *time_ns ||
	    session_since(s, session, true) < *time_ns)
		state = session_state(s, key, session);
	if (session_since(s, session, false) >= *time_ns)
		state &= ~SESSION_HAS_STATEMENT;
	if (session_since(s, session, true) >= *time_ns)
		state &= ~SESSION_HAS_TRANSACTION;
	if (!(state & ~SESSION_HAS_TEXT))
		return false;
	if (key & SESSION_OBJECT && session_gone(s, key, session, NULL))
		return true;
	kept = malloc(sizeof(*kept) + s->bytes);
	if (!kept)
		return false;
	kept->next = s->kept;
	kept->key = key;
	kept->state = state;
	memcpy(&kept->session, session, s->bytes);
	s->kept = kept;
	return false;
}

void sessions_keep(struct sessions *s, uint64_t time_ns)
{
	sessions_each(s, &time_ns, session_keep);
}

void sessions_settle(struct sessions *s)
{
	struct sessions_kept **place = &s->kept, *kept;

	while ((kept = *place)) {
		if (!session_same(s, kept->key, &kept->session, false))
			kept->state &= ~SESSION_HAS_STATEMENT;
		if (!session_same(s, kept->key, &kept->session, true))
			kept->state &= ~SESSION_HAS_TRANSACTION;
		if (kept->state & ~SESSION_HAS_TEXT) {
			place = &kept->next;
			continue;
		}
		*place = kept->next;
		free(kept);
	}
}

size_t sessions_number_kept(const struct sessions *s)
{
	size_t n = 0;

	for (const struct sessions_kept *one = s->kept; one; one = one->next)
		n += !s->both || one->state & SESSION_HAS_STATEMENT;
	return n;
}

void sessions_close(struct sessions *s)
{
	while (s->kept) {
		struct sessions_kept *next = s->kept->next;

		free(s->kept);
		s->kept = next;
	}
	if (s->slots)
		munmap(s->slots, sizeof(*s->slots) << (64 - s->slot_shift));
	s->slots = NULL;
}
