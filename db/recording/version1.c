// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/version1.h"

#include <errno.h>
#include <string.h>

/* Flags of a statement. */
#define RECORDED_TEXT		0x01
#define RECORDED_STATUS		0x02	/* success and failure are distinguished */
#define RECORDED_ROWS		0x04
#define RECORDED_WHOLE		0x08	/* the whole text has the length of the recorded one */
#define RECORDED_WHY		0x10
#define RECORDED_CHANGED	0x20	/* the rows were changed; none were sent */
#define RECORDED_QUERY		0x40	/* a query ID follows */
#define RECORDED_TRUNCATED	0x80
#define RECORDED_BYTES		0x100	/* the length of the whole text follows */
#define RECORDED_ERROR		0x200	/* error number and SQLSTATE follow */
#define RECORDED_EXAMINED	0x400
#define RECORDED_LOCK		0x800	/* lock time */
#define RECORDED_FETCHES	0x1000
#define RECORDED_PREPARE	0x2000
#define RECORDED_RUNNING	0x4000
#define RECORDED_NO_TEXT	0x8000
#define RECORDED_REDACTED	0x10000	/* the length before redaction follows */
#define RECORDED_PARENT		0x20000	/* the trace context follows */
#define RECORDED_FAILED		0x40000
#define RECORDED_SHARED		0x80000	/* not a transaction of its own, or that is unknown */
#define RECORDED_PLAN		0x100000	/* how it was executed */

/* Flags of a transaction. RECORDED_TEXT to RECORDED_REDACTED are as those of a statement. */
#define RECORDED_OPEN		0x02
#define RECORDED_DATED		0x04	/* its begin is known */
#define RECORDED_COUNTED	0x10	/* the number of statements, and the idle time, follow */

/* Flags of a lock wait. */
#define RECORDED_WAIT_RUNNING	0x01
#define RECORDED_WAIT_JOINED	0x02	/* began before the recording */
#define RECORDED_WAIT_INFO	0x04	/* the lock and its holders follow */
#define RECORDED_WAIT_KNOWN	0x08	/* all holders could be read */

/* Flags of a backend in a lock wait. */
#define RECORDED_QUEUED		0x01	/* does not hold the lock, but is ahead in its queue */
#define RECORDED_VALID		0x02	/* the next flag and the text could be read */
#define RECORDED_BUSY		0x04	/* the text is running; else it was the last statement */
#define RECORDED_IDLE_VALID	0x08
#define RECORDED_IDLE		0x10	/* in a transaction */
#define RECORDED_CUT		0x20	/* the text is incomplete */

#define LOSSES_OF_SUMMARY	7	/* the others follow only if there are any */

/* Read the members that @flags announce. */
static void read_members(struct decode *d, struct decoder *body, struct statement *s,
			   uint64_t flags)
{
	struct traceparent parent = { .flags = 0 };
	char text[TRACEPARENT];
	uint64_t plan;

	if (flags & RECORDED_ROWS) {
		s->rows = decode_number(body);
		s->has_counts = true;
		s->has_rows = !s->failed;
		s->sent = flags & RECORDED_CHANGED ? 0 : s->rows;
		s->affected = s->rows - s->sent;
		s->has_affected = s->affected;
	}
	if (flags & RECORDED_BYTES)
		s->query_bytes = decode_number(body);
	if (flags & RECORDED_ERROR) {
		s->error_code = (uint32_t)decode_number(body);
		decode_copy(body, s->sqlstate, sizeof(s->sqlstate));
		decode_sqlstate(s);
	}
	if (flags & RECORDED_EXAMINED)
		s->examined = decode_number(body);
	if (flags & RECORDED_LOCK)
		s->lock_ns = decode_number(body);
	if (flags & RECORDED_PLAN) {
		plan = decode_number(body);
		s->has_index = true;
		s->has_plan = plan & 1;
		s->plan = (uint16_t)decode_bits(d, LAYOUT_PLAN, plan >> 1);
	}
	if (flags & RECORDED_FETCHES)
		s->fetches = (uint32_t)decode_number(body);
	if (flags & RECORDED_REDACTED)
		s->original_len = decode_number(body);
	if (flags & RECORDED_PARENT) {
		decode_copy(body, parent.trace, sizeof(parent.trace));
		decode_copy(body, parent.span, sizeof(parent.span));
		parent.flags = (uint8_t)decode_number(body);
		traceparent_write(&parent, text);
		if (traceparent_parse(text, strlen(text), &d->parent))
			s->parent = &d->parent;
	}
	if (flags & RECORDED_QUERY)
		s->query_id = d->queries[decode_index(body, decode_number(body), d->nqueries,
							  RECORDING_QUERIES)];
}

/* Begin the statement or transaction of @event with its session. Return false if it has none. */
static bool read_begin(const struct decode *d, struct decoder *body, struct decode_event *event)
{
	const struct decode_session *session = decode_session_of(d, body);

	if (!session)
		return false;
	event->statement = (struct statement){ .server = session->server, .who = &session->who };
	return true;
}

/* Read the text that @flags announce. */
static void read_texts(struct decode *d, struct decoder *body, struct statement *s,
			 uint64_t flags)
{
	if (flags & RECORDED_TEXT)
		decode_text(d, body, s, false);
	s->has_query_bytes = flags & (RECORDED_BYTES | RECORDED_WHOLE);
	if (flags & RECORDED_WHOLE)
		s->query_bytes = s->text_len;
	s->span_text = s->text;
	s->span_text_len = s->text_len;
}

int version1_transaction(struct decode *d, struct decoder *body, struct decode_event *event)
{
	uint64_t flags = decode_number(body), state;
	struct statement *s = &event->statement;
	struct transaction *t = &d->transaction;

	if (!read_begin(d, body, event))
		return -EBADMSG;
	s->start_ns = decode_difference(body, d->start_ns);
	s->wall_ns = s->start_ns + d->wall_offset_ns;
	s->duration_ns = decode_number(body);
	s->truncated = flags & RECORDED_TRUNCATED;
	s->running = flags & RECORDED_OPEN;
	s->no_text = flags & RECORDED_NO_TEXT;
	state = decode_number(body);
	*t = (struct transaction){
		.open = s->running, .dated = flags & RECORDED_DATED,
		.counted = flags & RECORDED_COUNTED,
		.state = state < TRANSACTION_STATES ? (enum transaction_state)state :
						       TRANSACTION_IS_UNKNOWN,
	};
	if (t->counted) {
		t->statements = decode_number(body);
		t->idle_ns = decode_number(body);
	}
	read_members(d, body, s, flags & (RECORDED_BYTES | RECORDED_REDACTED));
	read_texts(d, body, s, flags);
	s->transaction = t;
	s->unended = true;
	event->type = RECORDING_STATEMENT;
	event->end_ns = s->start_ns + s->duration_ns;
	return body->failed || event->end_ns < s->start_ns ? -EBADMSG : 1;
}

int version1_statement(struct decode *d, struct decoder *body, struct decode_event *event)
{
	uint64_t flags = decode_number(body);
	struct statement *s = &event->statement;

	if (!read_begin(d, body, event))
		return -EBADMSG;
	s->start_ns = d->start_ns = decode_difference(body, d->start_ns);
	s->wall_ns = s->start_ns + d->wall_offset_ns;
	s->duration_ns = decode_number(body);
	s->has_status = flags & RECORDED_STATUS;
	s->failed = s->unended = flags & RECORDED_FAILED;
	s->truncated = flags & RECORDED_TRUNCATED;
	s->has_examined = flags & RECORDED_EXAMINED;
	s->has_lock = flags & RECORDED_LOCK;
	s->prepare = flags & RECORDED_PREPARE;
	s->alone = !(flags & RECORDED_SHARED);
	s->running = flags & RECORDED_RUNNING;
	s->no_text = flags & RECORDED_NO_TEXT;
	read_members(d, body, s, flags);
	read_texts(d, body, s, flags);
	if (flags & RECORDED_WHY) {
		decode_why(d, body);
		s->why = &d->why;
	}
	event->end_ns = s->start_ns + s->duration_ns;
	return body->failed || event->end_ns < s->start_ns ? -EBADMSG : 1;
}

/* Read a backend; its text is borrowed. */
static void read_backend(struct decoder *body, struct lock_backend *backend)
{
	uint64_t flags = decode_number(body), len;

	*backend = (struct lock_backend){
		.queued = flags & RECORDED_QUEUED, .valid = flags & RECORDED_VALID,
		.running = flags & RECORDED_BUSY, .idle_valid = flags & RECORDED_IDLE_VALID,
		.idle = flags & RECORDED_IDLE, .cut = flags & RECORDED_CUT,
	};
	backend->pid = (uint32_t)decode_number(body);
	backend->connection = decode_number(body);
	backend->blocked_ns = decode_number(body);
	backend->idle_ns = decode_number(body);
	len = decode_number(body);
	if (!len)
		return;
	/* Only the owner of a text writes to it. */
	backend->text = (char *)(uintptr_t)decode_bytes(body, len - 1);
	backend->len = backend->text ? len - 1 : 0;
}

static void read_info(struct decode *d, struct decoder *body, bool known)
{
	struct lock_info *info = &d->wait.info;
	uint64_t n;

	*info = (struct lock_info){ .known = known, .event = d->wait.lock };
	info->relation = (uint32_t)decode_number(body);
	decode_copy(body, info->name, sizeof(info->name));
	decode_copy(body, info->object, sizeof(info->object));
	decode_copy(body, info->index, sizeof(info->index));
	read_backend(body, &info->self);
	n = decode_number(body);
	if (n > LOCK_HOLDERS_KEPT)
		body->failed = true;
	for (; info->nholders < n && !body->failed; info->nholders++)
		read_backend(body, &info->holders[info->nholders]);
	info->more = (unsigned int)decode_number(body);
}

/* Read the session of the wait of @event. Earlier recordings have only its @server. */
static int read_waiter(struct decode *d, struct decoder *body, uint32_t server,
		       struct decode_event *event)
{
	struct lock_wait *wait = &event->wait;
	const struct decode_session *session = NULL;

	if (body->at < body->end) {
		session = decode_session_of(d, body);
		if (!session)
			return -EBADMSG;
	}
	d->who = (struct who){
		.pid = d->wait.lock.pid, .tid = d->wait.lock.tid,
		.connection = wait->info ? wait->info->self.connection : 0,
	};
	wait->who = session ? &session->who : &d->who;
	wait->server = session ? session->server : &d->file->servers[server].server;
	return 1;
}

int version1_wait(struct decode *d, struct decoder *body, struct decode_event *event)
{
	uint64_t flags = decode_number(body), n;
	struct lock_wait *wait = &event->wait;
	struct event_lock *lock = &d->wait.lock;
	uint32_t server;

	decode_server_at(d, body, &server);
	*lock = (struct event_lock){ .pid = (uint32_t)decode_number(body) };
	lock->tid = (uint32_t)decode_number(body);
	d->start_ns = lock->start_ns = decode_difference(body, d->start_ns);
	lock->duration_ns = decode_number(body);
	lock->flags = (uint32_t)decode_number(body);
	lock->kind = (uint32_t)decode_number(body);
	lock->mode = (uint32_t)decode_number(body);
	for (int i = 0; i < 4; i++)
		lock->field[i] = (uint32_t)decode_number(body);
	lock->block = (uint32_t)decode_number(body);
	lock->offset = (uint32_t)decode_number(body);
	decode_copy(body, d->wait.kind, sizeof(d->wait.kind));
	decode_copy(body, lock->name, sizeof(lock->name));
	*wait = (struct lock_wait){
		.event = lock, .kind = d->wait.kind, .start_ns = lock->start_ns,
		.wall_ns = lock->start_ns + d->wall_offset_ns, .duration_ns = lock->duration_ns,
		.running = flags & RECORDED_WAIT_RUNNING, .joined = flags & RECORDED_WAIT_JOINED,
	};
	n = decode_number(body);
	if (n > LOCK_CYCLE)
		body->failed = true;
	for (; wait->ncycle < n && !body->failed; wait->ncycle++)
		wait->cycle[wait->ncycle] = (uint32_t)decode_number(body);
	if (flags & RECORDED_WAIT_INFO) {
		read_info(d, body, flags & RECORDED_WAIT_KNOWN);
		wait->info = &d->wait.info;
	}
	event->end_ns = wait->start_ns + wait->duration_ns;
	if (body->failed || event->end_ns < wait->start_ns)
		return -EBADMSG;
	return read_waiter(d, body, server, event);
}

/* Read @n losses from number @first of the layout on. */
static void read_losses(const struct decode *d, struct decoder *body, struct summary *s,
			unsigned int first, unsigned int n)
{
	const struct layout_list *losses = &d->file->first.lists[LAYOUT_LOSSES];

	for (unsigned int i = first; i < first + n; i++) {
		uint64_t value = decode_number(body);

		if (losses->to[i] >= 0)
			s->lost[losses->to[i]] = value;
	}
}

static void read_summary(const struct decode *d, struct decoder *body, struct summary *s)
{
	*s = (struct summary){ .statements = decode_number(body) };
	read_losses(d, body, s, 0, LOSSES_OF_SUMMARY);
	s->boundary = decode_number(body);
}

void version1_summaries(struct decode *d, struct decoder *body, struct decode_event *event)
{
	unsigned int all = d->file->first.lists[LAYOUT_LOSSES].count;

	read_summary(d, body, &event->status.statements);
	read_summary(d, body, &event->status.waits);
	if (body->at == body->end)
		return;
	read_losses(d, body, &event->status.statements, LOSSES_OF_SUMMARY, all - LOSSES_OF_SUMMARY);
	event->status.statements.untraced_ns = decode_number(body);
}
