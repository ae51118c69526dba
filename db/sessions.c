// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/backend.h"
#include "db/process.h"
#include "loader/sys.h"

/* Calls @each for every session there is; where it returns true, the session is deleted. */
static void sessions_each(struct sessions *s, void *arg,
			  bool (*each)(struct sessions *s, uint64_t key, struct session *session,
				       void *arg))
{
	struct session *session = malloc(s->bytes);
	uint64_t keys[2];
	bool kept = false;

	/* The key after one that was deleted is the first again. */
	while (session && !sys_map_next(s->map, kept ? &keys[0] : NULL, &keys[1])) {
		bool remove = !sys_map_lookup(s->map, &keys[1], session) &&
			      each(s, keys[1], session, arg);

		if (remove && !sys_map_delete(s->map, &keys[1]))
			continue;
		keys[0] = keys[1];
		kept = true;
	}
	free(session);
}

static bool session_gone(struct sessions *s, uint64_t key, struct session *session, void *arg)
{
	(void)s;
	(void)key;
	(void)arg;
	return !process_exists(session->s.pid);
}

void sessions_prune(struct sessions *s)
{
	sessions_each(s, NULL, session_gone);
}

/* Whether the session at @key still has this statement. */
static bool session_same(const struct sessions *s, uint64_t key,
			 const struct event_statement *statement)
{
	struct session *now = malloc(s->bytes);
	bool same = now && !sys_map_lookup(s->map, &key, now) && now->s.flags & SESSION_OPEN &&
		    now->s.start_ns == statement->start_ns;

	free(now);
	return same;
}

/*
 * Reads the text of a session that is to have one at its end only. Whether it ran the same
 * statement then.
 */
static bool session_query(const struct sessions *s, uint64_t key, struct session *session)
{
	struct event_statement *statement = &session->s;
	const struct target *target = &s->discover->targets[statement->source];
	uint64_t object = key ^ (uint64_t)statement->pid << SESSION_PID_SHIFT;
	size_t len = 0;
	/* The key is made of the kernel's own number of the process. */
	int n = s->no_memory ? -ENOENT : backend_query(statement->pid, object, &target->places,
						       session->text, s->text_bytes, &len);
	bool same = n >= 0 && session_same(s, key, statement);

	statement->text_len = n < 0 ? 0 : (uint32_t)n;
	statement->query_bytes = len;
	statement->flags &= ~(STATEMENT_CUT | STATEMENT_UNREADABLE);
	if (statement->query_bytes > statement->text_len)
		statement->flags |= STATEMENT_CUT;
	return same;
}

/*
 * Whether it runs a statement, and if so, whether it has a text. As session_end() in bpf/ has it,
 * one that only waits for its Sync does not. Whether one waits for a command or runs the next part
 * of a packet, its server's memory tells.
 */
static bool session_is_running(const struct sessions *s, uint64_t key, struct session *session,
			       bool *has_text)
{
	struct event_statement *statement = &session->s;
	bool between = statement->flags & SESSION_LATE && statement->flags & STATEMENT_COMPLETED;

	if (!(statement->flags & SESSION_OPEN) ||
	    (statement->completed_ns && statement->depth > 1) ||
	    statement->flags & SESSION_REPLICATION ||
	    statement->source >= s->discover->ntargets)
		return false;
	*has_text = statement->flags & SESSION_LATE ? session_query(s, key, session) :
						      statement->text_len <= s->text_bytes;
	return *has_text || !between;
}

/* Who hears of what runs. */
struct hearer {
	void *arg;
	void (*each)(void *arg, const struct event_statement *s, bool has_text);
};

static bool session_tell(struct sessions *s, uint64_t key, struct session *session, void *arg)
{
	struct hearer *hearer = arg;
	bool has_text;

	if (session_is_running(s, key, session, &has_text))
		hearer->each(hearer->arg, &session->s, has_text);
	return false;
}

void sessions_running(struct sessions *s, void *arg,
		      void (*each)(void *arg, const struct event_statement *s, bool has_text))
{
	sessions_each(s, &(struct hearer){ arg, each }, session_tell);
}

static bool session_keep(struct sessions *s, uint64_t key, struct session *session, void *arg)
{
	const uint64_t *time_ns = arg;
	struct sessions_kept *kept;
	bool has_text;

	if (session->s.start_ns >= *time_ns || !session_is_running(s, key, session, &has_text))
		return false;
	kept = malloc(sizeof(*kept) + s->text_bytes);
	if (!kept)
		return false;
	*kept = (struct sessions_kept){ .next = s->kept, .key = key, .has_text = has_text };
	memcpy(&kept->session, session, sizeof(*session) + (has_text ? session->s.text_len : 0));
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
		if (session_same(s, kept->key, &kept->session.s)) {
			place = &kept->next;
			continue;
		}
		*place = kept->next;
		free(kept);
	}
}

void sessions_close(struct sessions *s)
{
	while (s->kept) {
		struct sessions_kept *next = s->kept->next;

		free(s->kept);
		s->kept = next;
	}
}
