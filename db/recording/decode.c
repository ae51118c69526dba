// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/decode.h"

#include <errno.h>
#include <string.h>

#include "db/recording/version1.h"

static void decode_members(struct decode *d, struct decoder *body, enum layout_of of, void *event);

/* Read a list, of which later versions may have more; the elements after its last one remain 0. */
static void decode_list(struct decoder *body, const struct member *member, void *of)
{
	uint64_t n = decode_number(body), room = member->size / sizeof(uint32_t);
	unsigned int count = (unsigned int)(n < room ? n : room);

	for (uint64_t i = 0; i < n && !body->failed; i++) {
		uint32_t value = (uint32_t)decode_number(body);

		if (i < room)
			memcpy((char *)of + member->at + i * sizeof(value), &value, sizeof(value));
	}
	if (member->known)
		memcpy((char *)of + member->known, &count, sizeof(count));
}

/* Read backends to the @room elements at @backends. Return their number, which may be larger. */
static uint64_t decode_backends(struct decode *d, struct decoder *body,
				struct lock_backend *backends, size_t room)
{
	uint64_t n = decode_number(body);

	for (uint64_t i = 0; i < n && !body->failed; i++) {
		struct lock_backend more = { .pid = 0 };

		decode_members(d, body, LAYOUT_BACKEND, i < room ? &backends[i] : &more);
	}
	return n;
}

/* Read the backends of a member, and how many there are: those beyond ours are not kept. */
static void decode_holders(struct decode *d, struct decoder *body, const struct member *member,
			   void *of)
{
	void *at = (char *)of + member->at;
	uint64_t n = decode_backends(d, body, at, member->size / sizeof(struct lock_backend));
	unsigned int count = n < UINT32_MAX ? (unsigned int)n : UINT32_MAX;

	memcpy((char *)of + member->known, &count, sizeof(count));
}

/* Read bytes, borrowed. */
static void decode_pointer(struct decoder *body, const struct member *member, void *of)
{
	uint64_t len = decode_number(body);
	const uint8_t *bytes = decode_bytes(body, len);
	size_t size = bytes ? len : 0;

	memcpy((char *)of + member->at, &bytes, sizeof(bytes));
	memcpy((char *)of + member->known, &size, sizeof(size));
}

/* Read a time breakdown that is not wanted. */
static void decode_other_why(struct decode *d, struct decoder *body)
{
	struct event_breakdown why = d->why;

	decode_why(d, body);
	d->why = why;
}

/* Read a text that is not wanted. Later ones may refer to it, but not if it is itself a copy. */
static void decode_other_text(struct decode *d, struct decoder *body)
{
	struct statement s = { .start_ns = 0 };
	struct decoder copy = *body;

	if (!decode_number(&copy)) {
		decode_text(d, body, &s, false);
		return;
	}
	*body = copy;
	for (uint64_t n = decode_number(body); n && !body->failed; n--) {
		decode_number(body);
		decode_number(body);
		decode_bytes(body, decode_number(body));
	}
}

/* Skip a value of @type, which may be a later one, of an unknown member of the file's list @of. */
static void decode_skip(struct decode *d, struct decoder *body, enum layout_of of, char type)
{
	size_t len;

	switch (type) {
	case MEMBER_NUMBER:
		decode_number(body);
		break;
	case MEMBER_STRING:
		decode_string(body, &len);
		break;
	case MEMBER_LIST:
		for (uint64_t n = decode_number(body); n && !body->failed; n--)
			decode_number(body);
		break;
	case MEMBER_TEXT:
		decode_other_text(d, body);
		break;
	case MEMBER_BREAKDOWN:
		decode_other_why(d, body);
		break;
	case MEMBER_BACKENDS:
		/* A backend has none: nested ones could exhaust the stack. */
		if (of == LAYOUT_BACKEND)
			body->failed = true;
		else
			decode_backends(d, body, NULL, 0);
		break;
	default:
		decode_bytes(body, decode_number(body));
		break;
	}
}

/* Read one of the texts of @s. */
static void decode_text_of(struct decode *d, struct decoder *body, const struct member *member,
			   struct statement *s)
{
	struct statement other = { .truncated = s->of_cut };

	if (member->at == offsetof(struct recorded_statement, s.text)) {
		decode_text(d, body, s, false);
		return;
	}
	decode_text(d, body, &other, true);
	s->of = other.text;
	s->of_len = other.text_len;
}

static void decode_member(struct decode *d, struct decoder *body, const struct member *member,
			  void *of)
{
	struct recorded_statement *statement = of;

	switch (member->type) {
	case MEMBER_NUMBER:
		member_set(member, of, decode_number(body));
		break;
	case MEMBER_STRING:
		decode_copy(body, (char *)of + member->at, member->size);
		break;
	case MEMBER_BYTES:
		decode_pointer(body, member, of);
		break;
	case MEMBER_LIST:
		decode_list(body, member, of);
		break;
	case MEMBER_BACKENDS:
		decode_holders(d, body, member, of);
		break;
	case MEMBER_TEXT:
		decode_text_of(d, body, member, &statement->s);
		break;
	case MEMBER_BREAKDOWN:
		decode_why(d, body);
		statement->s.why = &d->why;
		statement->s.events = d->event;
		break;
	case MEMBER_FLAG:
		break;
	}
}

/*
 * Read the members of the file's list @of to an event, which is all zero. Flags are set before the
 * values are read.
 */
static void decode_members(struct decode *d, struct decoder *body, enum layout_of of, void *event)
{
	const struct layout_list *list = &d->layout->lists[of];
	uint64_t flags = decode_number(body);
	const struct member *member;

	if (list->count < MEMBERS_MAX && flags >> list->count)
		body->failed = true;
	if (body->failed)
		return;
	for (uint64_t left = flags & list->flags; left; left &= left - 1) {
		member = list->member[__builtin_ctzll(left)];
		if (member)
			member_set(member, event, 1);
	}
	for (flags &= ~list->flags; flags && !body->failed; flags &= flags - 1) {
		int i = __builtin_ctzll(flags);

		if (list->member[i])
			decode_member(d, body, list->member[i], event);
		else
			decode_skip(d, body, of, list->type[i]);
	}
}

/* Turn what was read into a statement or a transaction. */
static void recorded_finish(struct decode *d, struct decoder *body, struct recorded_statement *r)
{
	struct statement *s = &r->s;

	decode_sqlstate(s);
	s->rows = s->sent + s->affected;
	s->has_rows = s->has_counts && !s->failed;
	s->has_query_bytes = r->whole || r->has_bytes;
	if (r->whole)
		s->query_bytes = s->text_len;
	if (!s->text)
		s->of = NULL;
	s->span_text = s->text;
	s->span_text_len = s->text_len;
	s->plan = (uint16_t)decode_bits(d, LAYOUT_PLAN, r->plan);
	if (r->query)
		s->query_id = d->queries[decode_index(body, r->query - 1, d->nqueries,
							  RECORDING_QUERIES)];
	if (*r->parent && traceparent_parse(r->parent, strnlen(r->parent, sizeof(r->parent)),
					    &d->parent))
		s->parent = &d->parent;
	if (!r->is_transaction)
		return;
	if ((unsigned int)r->t.state >= TRANSACTION_STATES)
		r->t.state = TRANSACTION_IS_UNKNOWN;
	r->t.open = s->running;
	d->transaction = r->t;
	s->transaction = &d->transaction;
}

static int decode_statement(struct decode *d, struct decoder *body, struct decode_event *event)
{
	const struct decode_session *session = decode_session_of(d, body);
	struct recorded_statement *r = &event->recorded;
	struct statement *s = &r->s;

	if (!session)
		return -EBADMSG;
	*r = (struct recorded_statement){ .s.server = session->server };
	s->who = &session->who;
	s->start_ns = d->start_ns = decode_difference(body, d->start_ns);
	s->wall_ns = s->start_ns + d->wall_offset_ns;
	s->duration_ns = decode_number(body);
	decode_members(d, body, LAYOUT_STATEMENT, r);
	recorded_finish(d, body, r);
	event->end_ns = s->start_ns + s->duration_ns;
	return body->failed || event->end_ns < s->start_ns ? -EBADMSG : 1;
}

static int decode_wait(struct decode *d, struct decoder *body, struct decode_event *event)
{
	const struct decode_session *session = decode_session_of(d, body);
	struct recorded_wait *r = &d->wait;
	struct lock_wait *wait = &r->w;

	if (!session)
		return -EBADMSG;
	*r = (struct recorded_wait){ .w.server = session->server };
	wait->who = &session->who;
	wait->start_ns = d->start_ns = decode_difference(body, d->start_ns);
	wait->wall_ns = wait->start_ns + d->wall_offset_ns;
	wait->duration_ns = decode_number(body);
	decode_members(d, body, LAYOUT_WAIT, r);
	r->lock.pid = wait->who->pid;
	r->lock.tid = wait->who->tid;
	r->lock.start_ns = wait->start_ns;
	r->lock.duration_ns = wait->duration_ns;
	r->info.event = r->lock;
	wait->event = &r->lock;
	wait->kind = r->kind;
	wait->joined = r->lock.flags & LOCK_JOINED;
	wait->info = r->has_info ? &r->info : NULL;
	if (r->info.nholders > LOCK_HOLDERS_KEPT) {
		r->info.more += r->info.nholders - LOCK_HOLDERS_KEPT;
		r->info.nholders = LOCK_HOLDERS_KEPT;
	}
	event->wait = *wait;
	event->end_ns = wait->start_ns + wait->duration_ns;
	return body->failed || event->end_ns < wait->start_ns ? -EBADMSG : 1;
}

static void decode_summary(const struct decode *d, struct decoder *body, struct summary *s)
{
	__u64 lost[LOSSES] = { 0 };

	*s = (struct summary){ .statements = decode_number(body) };
	decode_sparse(d, body, LAYOUT_LOSSES, lost);
	for (int i = 0; i < LOSSES; i++)
		s->lost[i] = lost[i];
	s->boundary = decode_number(body);
	s->untraced_ns = decode_number(body);
}

/* Read what was displaced, which older recordings do not have. */
static void decode_users(struct decoder *body, struct decode_event *event)
{
	uint64_t n = body->at < body->end ? decode_number(body) : 0;

	for (uint64_t i = 0; i < n && i < RECORDED_USERS && !body->failed; i++) {
		struct recorded_user *user = &event->status.users[event->status.nusers++];
		uint64_t uid = decode_number(body);

		*user = (struct recorded_user){ .known = uid, .uid = (uint32_t)(uid - 1) };
		user->statements = decode_number(body);
		user->waits = decode_number(body);
		user->last_ns = decode_number(body);
	}
}

static int decode_status(struct decode *d, struct decoder *body, struct decode_event *event)
{
	uint64_t bpf_ns;

	event->end_ns = decode_difference(body, d->start_ns);
	event->status.cost.cpu_ns = decode_number(body);
	bpf_ns = decode_number(body);
	event->status.cost.has_bpf = bpf_ns;
	event->status.cost.bpf_ns = bpf_ns ? bpf_ns - 1 : 0;
	event->status.nusers = 0;
	if (d->version == 1) {
		version1_summaries(d, body, event);
	} else {
		decode_summary(d, body, &event->status.statements);
		decode_summary(d, body, &event->status.waits);
		decode_users(body, event);
	}
	return body->failed ? -EBADMSG : 1;
}

/* Keep the layout, and whether the bytes were limited. */
static void decode_start(struct decode_file *file, const char *key, size_t key_len,
			 const char *value, size_t len)
{
	file->limited |= key_len == strlen(LIMIT_OPTION) && !memcmp(key, LIMIT_OPTION, key_len);
	if (file->has_file || len > LAYOUT_MAX || key_len != strlen(LAYOUT_OPTION) ||
	    memcmp(key, LAYOUT_OPTION, key_len))
		return;
	layout_read(&file->of_file, value, len);
	file->has_file = true;
	file->of_file_crc = crc32c_of(&file->crc, value, len);
}

static int decode_option(struct decode *d, struct decoder *body, struct decode_event *event)
{
	event->end_ns = 0;
	event->option.key = decode_string(body, &event->option.key_len);
	event->option.value = decode_string(body, &event->option.value_len);
	if (!event->option.key || !event->option.value)
		return -EBADMSG;
	if (d->kind == RECORDING_START)
		decode_start(d->file, event->option.key, event->option.key_len,
			     event->option.value, event->option.value_len);
	return 1;
}

/* Decode an event that the layout describes. */
static int decode_by_layout(struct decode *d, struct decoder *body, struct decode_event *event)
{
	if (!d->layout)
		return -EBADMSG;
	if (event->type == RECORDING_STATUS)
		return decode_status(d, body, event);
	if (event->type == RECORDING_WAIT)
		return d->version == 1 ? version1_wait(d, body, event) :
					 decode_wait(d, body, event);
	return d->version == 1 ? version1_statement(d, body, event) :
				 decode_statement(d, body, event);
}

/* Decode one event. Return 1; 0 if it is none for the caller; or -errno. */
static int decode_body(struct decode *d, struct decoder *body, struct decode_event *event)
{
	switch (event->type) {
	case RECORDING_OPTIONS:
		return decode_option(d, body, event);
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
	case RECORDING_WAIT:
	case RECORDING_STATUS:
		return decode_by_layout(d, body, event);
	case RECORDING_TRANSACTION:
		return d->version == 1 ? version1_transaction(d, body, event) : 0;
	case RECORDING_TYPES:
		break;
	}
	return 0;
}

int decode_next(struct decode *d, struct decode_event *event)
{
	struct decoder *block = &d->block, body;
	uint64_t len, type;
	int ret;

	if (block->at == block->end)
		return 0;
	type = decode_number(block);
	len = decode_number(block);
	body.at = decode_bytes(block, len);
	if (block->failed)
		return -EBADMSG;
	body = (struct decoder){ .at = body.at, .end = body.at + len };
	event->type = type < RECORDING_TYPES ? (enum recording_type)type : RECORDING_TYPES;
	ret = decode_body(d, &body, event);
	if (!ret)
		event->type = RECORDING_TYPES;
	return ret < 0 ? ret : 1;
}
