// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/session/seed.h"

#include <stdlib.h>

#include "host/clock.h"

/* Convert @wall_ns of CLOCK_REALTIME to the programs' clock; 0: before that. */
static uint64_t seed_time(const struct runtime *rt, uint64_t wall_ns)
{
	uint64_t offset = clock_wall_offset(rt->ahead_ns);

	return wall_ns > offset ? wall_ns - offset : 0;
}

/* Add the statement to @session, which has its text. Return whether its start is known. */
static bool seed_statement(const struct runtime *rt, const struct backend_statement *statement,
			   struct session *session)
{
	struct event_statement *s = &session->s;

	s->start_ns = seed_time(rt, statement->begun_ns);
	s->depth = 1;
	s->flags = SESSION_OPEN | SESSION_RESUMED | (statement->cut ? STATEMENT_CUT : 0);
	s->text_len = (uint32_t)statement->len;
	s->query_bytes = statement->cut ? 0 : statement->len;
	return s->start_ns;
}

static bool seed_aborted(const struct target *target, const struct process *process)
{
	char title[1024];
	ssize_t len;

	if (!target->engine->aborted)
		return false;
	len = process_title(process->pid, title, sizeof(title));
	return len > 0 && target->engine->aborted(title, (size_t)len);
}

/* Add the transaction since @begun_ns. The statement that runs is its first one if it is as old. */
static bool seed_transaction(const struct runtime *rt, uint64_t begun_ns, uint64_t statement_ns,
			     struct session *session, uint32_t at, bool aborted)
{
	struct event_transaction *t = (struct event_transaction *)((char *)session + at);

	t->target_id = t->s.target_id = session->s.target_id;
	t->s.pid = session->s.pid;
	t->s.tid = session->s.tid;
	t->flags = TRANSACTION_OPEN | (begun_ns == statement_ns ? 0 : TRANSACTION_PARTIAL) |
		   (aborted ? TRANSACTION_FAILED : 0);
	t->s.start_ns = seed_time(rt, begun_ns);
	t->s.flags = STATEMENT_NO_TEXT;
	return t->s.start_ns;
}

bool seed_session(const struct sessions *sessions, const struct runtime *rt,
		  const struct target *target, const struct process *process)
{
	struct session *session = calloc(1, sessions->bytes);
	struct backend_statement statement = { .begun_ns = 0 };
	bool seeded = false;
	uint64_t begun_ns;

	if (!session)
		return false;
	session->tgid = process->pid;
	session->of_stack = UINT64_MAX;	/* its EXECUTE or FETCH has begun: others are in it */
	session->s = (struct event_statement){
		.head.type = EVENT_STATEMENT, .target_id = target->id, .pid = process->pid,
		.tid = process->pid,
	};
	if (!backend_read(process, target->lowest_vaddr, &target->places, session->text,
			  sessions->text_bytes, &statement))
		seeded = seed_statement(rt, &statement, session);
	else
		statement.begun_ns = 0;
	if (sessions->transaction_at &&
	    !backend_transaction(process, target->lowest_vaddr, &target->places, &begun_ns))
		seeded |= seed_transaction(rt, begun_ns, statement.begun_ns, session,
					   sessions->transaction_at,
					   seed_aborted(target, process));
	seeded = seeded && !sessions_add(sessions, process->pid, session);
	free(session);
	return seeded;
}
