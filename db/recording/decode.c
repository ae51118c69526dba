// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bpf/plan.h"
#include "db/engines.h"
#include "db/recording/shape.h"
#include "db/session/breakdown.h"

#define TEXT_MAX	(1u << 20)	/* bytes of a statement's text */
#define SERVER_MAX	8192		/* bytes of a server, which are kept */

int decode_open(struct decode *d)
{
	*d = (struct decode){ .servers = calloc(DECODE_SERVERS, sizeof(*d->servers)) };
	d->sessions = calloc(RECORDING_SESSIONS, sizeof(*d->sessions));
	d->text = malloc(TEXT_MAX);
	return d->servers && d->sessions && d->text ? 0 : -ENOMEM;
}

void decode_close(struct decode *d)
{
	for (size_t i = 0; i < d->nservers; i++)
		free(d->bytes[i].data);
	for (size_t i = 0; i < RECORDING_TEXTS; i++)
		free(d->texts[i].text);
	free(d->servers);
	free(d->sessions);
	free(d->text);
	*d = (struct decode){ .servers = NULL };
}

void decode_block(struct decode *d, const uint8_t *events, size_t len)
{
	d->block = (struct decoder){ .at = events, .end = events + len };
	d->nserver = d->nsessions = d->ncalls = d->nqueries = d->ntexts = 0;
	d->start_ns = d->wall_offset_ns = 0;
}

/* Return the index of entry @number of a dictionary of @size with @count entries so far. */
static uint32_t dictionary_index(struct decoder *body, uint64_t number, uint32_t count,
				 uint32_t size)
{
	if (number >= count || count - number > size)
		body->failed = true;
	return (uint32_t)(number % size);
}

/* Read the properties of a server to @s. */
static void server_read(struct decoder *body, struct decode_server *s)
{
	struct server *server = &s->server;
	uint64_t dialect, uid;

	decode_copy(body, s->name, sizeof(s->name));
	s->unknown = (struct engine){
		.name = s->name, .title = s->name, .otel_system = s->otel_system,
	};
	server->engine = engines_by_name(s->name);
	if (!server->engine)
		server->engine = &s->unknown;
	decode_copy(body, s->product, sizeof(s->product));
	server->product = *s->product ? s->product : s->name;
	decode_copy(body, s->otel_system, sizeof(s->otel_system));
	server->otel_system = s->otel_system;
	decode_copy(body, server->version, sizeof(server->version));
	decode_copy(body, server->path, sizeof(server->path));
	dialect = decode_number(body);
	s->unknown.dialect = dialect < FINGERPRINT_UNKNOWN ? (enum fingerprint_dialect)dialect :
							      FINGERPRINT_UNKNOWN;
	decode_copy(body, server->container, sizeof(server->container));
	uid = decode_number(body);
	server->has_uid = uid;
	server->uid = uid ? (uint32_t)(uid - 1) : 0;
	server->pid = (uint32_t)decode_number(body);
	decode_copy(body, server->directory, sizeof(server->directory));
	/* These are of a server that was found. */
	if (!server->pid || !uid) {
		server->pid = 0;
		*server->directory = '\0';
	}
}

/* Add a server to the dictionary; those of all blocks are kept. Return 0 or -errno. */
static int decode_add_server(struct decode *d, struct decoder *body)
{
	size_t len = (size_t)(body->end - body->at), i = 0;

	if (len > SERVER_MAX)
		return -EBADMSG;
	while (i < d->nservers && (d->bytes[i].len != len ||
				   memcmp(d->bytes[i].data, body->at, len)))
		i++;
	if (i == d->nservers) {
		if (i == DECODE_SERVERS)
			return -EBADMSG;
		d->bytes[i].data = malloc(len + 1);
		if (!d->bytes[i].data)
			return -ENOMEM;
		memcpy(d->bytes[i].data, body->at, len);
		d->bytes[i].len = len;
		server_read(body, &d->servers[i]);
		d->nservers++;
	}
	d->server[d->nserver++ % RECORDING_SERVERS] = (uint32_t)i;
	return body->failed ? -EBADMSG : 0;
}

/* Set *@at to the index in ->servers of the server that @body refers to. */
static void decode_server_at(const struct decode *d, struct decoder *body, uint32_t *at)
{
	uint32_t entry = dictionary_index(body, decode_number(body), d->nserver,
					  RECORDING_SERVERS);

	*at = body->failed ? 0 : d->server[entry];
}

static int decode_add_session(struct decode *d, struct decoder *body)
{
	struct decode_session *s = &d->sessions[d->nsessions++ % RECORDING_SESSIONS];
	struct who *who = &s->who;
	uint32_t server;
	uint64_t uid;

	decode_server_at(d, body, &server);
	if (body->failed)
		return -EBADMSG;
	s->server = &d->servers[server].server;
	who->pid = (uint32_t)decode_number(body);
	who->tid = (uint32_t)decode_number(body);
	uid = decode_number(body);
	/* Of a server that was not found, the user is that of each session. */
	if (uid && (!s->server->has_uid || s->server->uid != (uint32_t)(uid - 1))) {
		s->other = *s->server;
		s->other.has_uid = true;
		s->other.uid = (uint32_t)(uid - 1);
		s->server = &s->other;
	}
	who->connection = decode_number(body);
	decode_copy(body, who->user, sizeof(who->user));
	decode_copy(body, who->database, sizeof(who->database));
	decode_copy(body, who->client, sizeof(who->client));
	decode_copy(body, who->application, sizeof(who->application));
	return body->failed ? -EBADMSG : 0;
}

static int decode_add_call(struct decode *d, struct decoder *body)
{
	char name[SYSCALL_NAME];

	decode_copy(body, name, sizeof(name));
	d->calls[d->ncalls++ % RECORDING_CALLS] = breakdown_call_number(name);
	return body->failed ? -EBADMSG : 0;
}

static int decode_add_query(struct decode *d, struct decoder *body)
{
	d->queries[d->nqueries++ % RECORDING_QUERIES] = decode_number(body);
	return body->failed ? -EBADMSG : 0;
}

/* Read values of which only those that are not 0 were stored; a later version may have more. */
static void decode_sparse(struct decoder *body, __u64 *values, int n)
{
	uint64_t mask = decode_number(body), value;

	for (int i = 0; i < 64; i++) {
		value = mask & 1ull << i ? decode_number(body) : 0;
		if (i < n)
			values[i] = value;
	}
}

static void decode_why(struct decode *d, struct decoder *body)
{
	struct event_breakdown *why = &d->why;
	uint64_t n, phase;

	*why = (struct event_breakdown){ .tid = 0 };
	decode_sparse(body, why->ns, BREAKDOWN_PARTS);
	n = decode_number(body);
	if (n > BREAKDOWN_WAITS)
		body->failed = true;
	for (uint64_t i = 0; i < n && !body->failed; i++) {
		why->waits[i].call = d->calls[dictionary_index(body, decode_number(body),
							       d->ncalls, RECORDING_CALLS)];
		why->waits[i].sleeps = (uint32_t)decode_number(body);
		why->waits[i].ns = decode_number(body);
	}
	why->workers.count = decode_number(body);
	if (why->workers.count)
		decode_sparse(body, why->workers.ns, BREAKDOWN_PARTS);
	for (int i = 0; i < PHASES; i++) {
		phase = decode_number(body);
		why->phases[i].first_ns = phase;
		why->phases[i].ns = phase ? phase - 1 : 0;
	}
	why->used = (uint32_t)decode_number(body);
	if (why->used)
		decode_sparse(body, why->use, USES);
}

/* Read the text of a statement. It may be the difference from an earlier one. */
static void decode_text(struct decode *d, struct decoder *body, struct statement *s)
{
	uint64_t number = decode_number(body), len;
	enum shape_change change;
	char *kept;

	if (number) {
		if (number > RECORDING_TEXTS || number > d->ntexts)
			body->failed = true;
		if (body->failed)
			return;
		s->text = d->text;
		s->text_len = shape_apply(body, d->texts[number - 1].text,
					  d->texts[number - 1].len, d->text, TEXT_MAX, &change);
		if (!s->truncated && change != SHAPE_OTHER &&
		    (change == SHAPE_SAME || d->texts[number - 1].plain))
			s->alike = d->texts[number - 1].alike;
		return;
	}
	len = decode_number(body);
	s->text = (const char *)decode_bytes(body, len);
	if (!s->text || len > TEXT_MAX) {
		body->failed = true;
		return;
	}
	s->text_len = len;
	if (len > RECORDING_TEXT_MAX)
		return;
	kept = realloc(d->texts[d->ntexts % RECORDING_TEXTS].text, len + 1);
	if (!kept) {
		body->failed = true;
		return;
	}
	memcpy(kept, s->text, len);
	d->texts[d->ntexts % RECORDING_TEXTS].text = kept;
	s->alike = s->truncated ? 0 : ++d->alike;
	d->texts[d->ntexts % RECORDING_TEXTS].alike = s->alike;
	d->texts[d->ntexts % RECORDING_TEXTS].plain = shape_is_plain(kept, len);
	d->texts[d->ntexts++ % RECORDING_TEXTS].len = len;
}

/* Read the members that @flags announce. */
static void decode_members(struct decode *d, struct decoder *body, struct statement *s,
			   uint64_t flags)
{
	uint64_t plan;

	if (flags & RECORDED_ROWS) {
		s->rows = decode_number(body);
		s->has_counts = true;
		s->has_rows = !s->failed;
		s->sent = flags & RECORDED_CHANGED ? 0 : s->rows;
		s->affected = s->rows - s->sent;
	}
	if (flags & RECORDED_BYTES)
		s->query_bytes = decode_number(body);
	if (flags & RECORDED_ERROR) {
		s->error_code = (uint32_t)decode_number(body);
		decode_copy(body, s->sqlstate, sizeof(s->sqlstate));
	}
	if (flags & RECORDED_EXAMINED)
		s->examined = decode_number(body);
	if (flags & RECORDED_LOCK)
		s->lock_ns = decode_number(body);
	if (flags & RECORDED_PLAN) {
		plan = decode_number(body);
		s->has_index = true;
		s->has_plan = plan & 1;
		s->plan = (uint16_t)(plan >> 1 & ((1u << PLAN_BITS) - 1));
	}
	if (flags & RECORDED_FETCHES)
		s->fetches = (uint32_t)decode_number(body);
	if (flags & RECORDED_REDACTED)
		s->original_len = decode_number(body);
	if (flags & RECORDED_PARENT) {
		decode_copy(body, d->parent.trace, sizeof(d->parent.trace));
		decode_copy(body, d->parent.span, sizeof(d->parent.span));
		d->parent.flags = (uint8_t)decode_number(body);
		s->parent = &d->parent;
	}
	if (flags & RECORDED_QUERY)
		s->query_id = d->queries[dictionary_index(body, decode_number(body), d->nqueries,
							  RECORDING_QUERIES)];
}

/* Return the session that @body refers to, or NULL. */
static const struct decode_session *decode_session_of(const struct decode *d, struct decoder *body)
{
	uint32_t at = dictionary_index(body, decode_number(body), d->nsessions,
				       RECORDING_SESSIONS);

	return body->failed ? NULL : &d->sessions[at];
}

/* Begin the statement or transaction of @event with its session. Return false if it has none. */
static bool decode_begin(const struct decode *d, struct decoder *body, struct decode_event *event)
{
	const struct decode_session *session = decode_session_of(d, body);

	if (!session)
		return false;
	event->statement = (struct statement){ .server = session->server, .who = &session->who };
	return true;
}

/* Read the text that @flags announce. */
static void decode_texts(struct decode *d, struct decoder *body, struct statement *s,
			 uint64_t flags)
{
	if (flags & RECORDED_TEXT)
		decode_text(d, body, s);
	s->has_query_bytes = flags & (RECORDED_BYTES | RECORDED_WHOLE);
	if (flags & RECORDED_WHOLE)
		s->query_bytes = s->text_len;
	s->span_text = s->text;
	s->span_text_len = s->text_len;
}

static int decode_transaction(struct decode *d, struct decoder *body, struct decode_event *event)
{
	uint64_t flags = decode_number(body), state;
	struct statement *s = &event->statement;
	struct transaction *t = &d->transaction;

	if (!decode_begin(d, body, event))
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
	decode_members(d, body, s, flags & (RECORDED_BYTES | RECORDED_REDACTED));
	decode_texts(d, body, s, flags);
	s->transaction = t;
	s->unended = true;
	event->end_ns = s->start_ns + s->duration_ns;
	return body->failed || event->end_ns < s->start_ns ? -EBADMSG : 1;
}

static int decode_statement(struct decode *d, struct decoder *body, struct decode_event *event)
{
	uint64_t flags = decode_number(body);
	struct statement *s = &event->statement;

	if (!decode_begin(d, body, event))
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
	decode_members(d, body, s, flags);
	decode_texts(d, body, s, flags);
	if (flags & RECORDED_WHY) {
		decode_why(d, body);
		s->why = &d->why;
	}
	event->end_ns = s->start_ns + s->duration_ns;
	return body->failed || event->end_ns < s->start_ns ? -EBADMSG : 1;
}

/* Read a backend; its text is borrowed. */
static void decode_backend(struct decoder *body, struct lock_backend *backend)
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

static void decode_info(struct decode *d, struct decoder *body, bool known)
{
	struct lock_info *info = &d->info;
	uint64_t n;

	*info = (struct lock_info){ .known = known, .event = d->lock };
	info->relation = (uint32_t)decode_number(body);
	decode_copy(body, info->name, sizeof(info->name));
	decode_copy(body, info->object, sizeof(info->object));
	decode_copy(body, info->index, sizeof(info->index));
	decode_backend(body, &info->self);
	n = decode_number(body);
	if (n > LOCK_HOLDERS_KEPT)
		body->failed = true;
	for (; info->nholders < n && !body->failed; info->nholders++)
		decode_backend(body, &info->holders[info->nholders]);
	info->more = (unsigned int)decode_number(body);
}

/* Read the session of the wait of @event. Earlier recordings have only its @server. */
static int decode_waiter(struct decode *d, struct decoder *body, uint32_t server,
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
		.pid = d->lock.pid, .tid = d->lock.tid,
		.connection = wait->info ? wait->info->self.connection : 0,
	};
	wait->who = session ? &session->who : &d->who;
	wait->server = session ? session->server : &d->servers[server].server;
	return 1;
}

static int decode_wait(struct decode *d, struct decoder *body, struct decode_event *event)
{
	uint64_t flags = decode_number(body), n;
	struct lock_wait *wait = &event->wait;
	struct event_lock *lock = &d->lock;
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
	decode_copy(body, d->kind, sizeof(d->kind));
	decode_copy(body, lock->name, sizeof(lock->name));
	*wait = (struct lock_wait){
		.event = lock, .kind = d->kind, .start_ns = lock->start_ns,
		.wall_ns = lock->start_ns + d->wall_offset_ns, .duration_ns = lock->duration_ns,
		.running = flags & RECORDED_WAIT_RUNNING, .joined = flags & RECORDED_WAIT_JOINED,
	};
	n = decode_number(body);
	if (n > LOCK_CYCLE)
		body->failed = true;
	for (; wait->ncycle < n && !body->failed; wait->ncycle++)
		wait->cycle[wait->ncycle] = (uint32_t)decode_number(body);
	if (flags & RECORDED_WAIT_INFO) {
		decode_info(d, body, flags & RECORDED_WAIT_KNOWN);
		wait->info = &d->info;
	}
	event->end_ns = wait->start_ns + wait->duration_ns;
	if (body->failed || event->end_ns < wait->start_ns)
		return -EBADMSG;
	return decode_waiter(d, body, server, event);
}

static void decode_summary(struct decoder *body, struct summary *s)
{
	static const enum loss order[] = RECORDING_LOSSES;

	*s = (struct summary){ .statements = decode_number(body) };
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		s->lost[order[i]] = decode_number(body);
	s->boundary = decode_number(body);
}

static void decode_limit(struct decoder *body, struct summary *s)
{
	static const enum loss order[] = RECORDING_LIMIT_LOSSES;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		s->lost[order[i]] = decode_number(body);
	s->untraced_ns = decode_number(body);
}

static int decode_status(struct decode *d, struct decoder *body, struct decode_event *event)
{
	uint64_t bpf_ns;

	event->end_ns = decode_difference(body, d->start_ns);
	event->status.cost.cpu_ns = decode_number(body);
	bpf_ns = decode_number(body);
	event->status.cost.has_bpf = bpf_ns;
	event->status.cost.bpf_ns = bpf_ns ? bpf_ns - 1 : 0;
	decode_summary(body, &event->status.statements);
	decode_summary(body, &event->status.waits);
	if (body->at < body->end)
		decode_limit(body, &event->status.statements);
	return body->failed ? -EBADMSG : 1;
}

static int decode_option(struct decoder *body, struct decode_event *event)
{
	event->option.key = decode_string(body, &event->option.key_len);
	event->option.value = decode_string(body, &event->option.value_len);
	return !event->option.key || !event->option.value ? -EBADMSG : 1;
}

/* Decode one event. Return 1; 0 if it is none for the caller; or -errno. */
static int decode_body(struct decode *d, struct decoder *body, struct decode_event *event)
{
	switch (event->type) {
	case RECORDING_OPTIONS:
		return decode_option(body, event);
	case RECORDING_SERVER:
		return decode_add_server(d, body);
	case RECORDING_SESSION:
		return decode_add_session(d, body);
	case RECORDING_CALL:
		return decode_add_call(d, body);
	case RECORDING_QUERY:
		return decode_add_query(d, body);
	case RECORDING_CLOCK:
		d->wall_offset_ns = decode_number(body);
		return body->failed ? -EBADMSG : 0;
	case RECORDING_STATEMENT:
		return decode_statement(d, body, event);
	case RECORDING_WAIT:
		return decode_wait(d, body, event);
	case RECORDING_STATUS:
		return decode_status(d, body, event);
	case RECORDING_TRANSACTION:
		return decode_transaction(d, body, event);
	case RECORDING_TYPES:
		break;
	}
	return 0;
}

int decode_next(struct decode *d, struct decode_event *event)
{
	struct decoder *block = &d->block, body;
	uint64_t len, type;
	int ret = 0;

	while (!ret && block->at < block->end) {
		type = decode_number(block);
		len = decode_number(block);
		body.at = decode_bytes(block, len);
		if (block->failed)
			return -EBADMSG;
		body = (struct decoder){ .at = body.at, .end = body.at + len };
		event->type = type < RECORDING_TYPES ? (enum recording_type)type : RECORDING_TYPES;
		ret = decode_body(d, &body, event);
	}
	return ret;
}
