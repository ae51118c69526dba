// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/event.h"
#include "db/engine.h"
#include "db/recording/member.h"
#include "db/recording/shape.h"
#include "db/session/breakdown.h"
#include "host/syscall.h"
#include "sql/traceparent.h"

void encode_open(struct encode *e)
{
	*e = (struct encode){
		.events = { .limit = RECORDING_BLOCK_MAX - RECORDING_HEAD },
		.body = { .limit = RECORDING_BLOCK_MAX }, .entry = { .limit = RECORDING_BLOCK_MAX },
		.servers = { .type = RECORDING_SERVER, .size = RECORDING_SERVERS },
		.sessions = { .type = RECORDING_SESSION, .size = RECORDING_SESSIONS },
		.calls = { .type = RECORDING_CALL, .size = RECORDING_CALLS },
		.queries = { .type = RECORDING_QUERY, .size = RECORDING_QUERIES },
	};
}

static void dictionary_clear(struct encode_dictionary *dictionary)
{
	for (size_t i = 0; i < ENCODE_SLOTS; i++) {
		free(dictionary->slot[i].data);
		dictionary->slot[i] = (struct encode_entry){ .data = NULL };
	}
	dictionary->count = 0;
}

void encode_reset(struct encode *e)
{
	dictionary_clear(&e->servers);
	dictionary_clear(&e->sessions);
	dictionary_clear(&e->calls);
	dictionary_clear(&e->queries);
	for (size_t i = 0; i < RECORDING_TEXTS; i++) {
		free(e->texts[i].text);
		e->texts[i] = (struct encode_text){ .text = NULL };
	}
	memset(e->text_of, 0, sizeof(e->text_of));
	e->ntexts = 0;
	e->begin_ns = e->end_ns = e->statements = e->waits = e->start_ns = 0;
	e->has_clock = false;
	e->events.len = e->body.len = e->entry.len = 0;
	e->events.failed = e->body.failed = e->entry.failed = false;
}

void encode_close(struct encode *e)
{
	encode_reset(e);
	encoder_free(&e->events);
	encoder_free(&e->body);
	encoder_free(&e->entry);
}

/* Append an event of @type with the bytes of @body, which becomes empty. */
static void encode_event(struct encode *e, enum recording_type type, struct encoder *body)
{
	size_t before = e->events.len;

	encode_number(&e->events, type);
	encode_number(&e->events, body->len);
	encode_bytes(&e->events, body->data, body->len);
	if (body->failed)
		e->events.failed = true;
	/* An event is complete or absent. */
	if (e->events.failed)
		e->events.len = before;
	body->len = 0;
	body->failed = false;
}

/*
 * Return the number of the entry in ->entry, in a dictionary; add it unless it was used lately.
 * @key distinguishes most entries.
 */
static uint32_t encode_entry(struct encode *e, struct encode_dictionary *dictionary, uint64_t key)
{
	struct encode_entry *slot = &dictionary->slot[key % ENCODE_SLOTS];
	struct encoder *entry = &e->entry;

	if (slot->data && slot->len == entry->len &&
	    dictionary->count - slot->number <= dictionary->size &&
	    !memcmp(slot->data, entry->data, entry->len)) {
		entry->len = 0;
		return slot->number;
	}
	free(slot->data);
	slot->data = malloc(entry->len + 1);
	slot->len = entry->len;
	slot->number = dictionary->count++;
	/* Without memory, the next one is added again. */
	if (slot->data && entry->len)
		memcpy(slot->data, entry->data, entry->len);
	encode_event(e, dictionary->type, entry);
	return slot->number;
}

void encode_option(struct encode *e, const char *key, const char *value)
{
	encode_string(&e->body, key);
	encode_string(&e->body, value);
	encode_event(e, RECORDING_OPTIONS, &e->body);
}

/* Return a hash of @text, NULL or NUL-terminated. */
static uint64_t hash_string(const char *text)
{
	uint64_t hash = 0;

	for (; text && *text; text++)
		hash = (hash + (uint8_t)*text) * 0x9e3779b97f4a7c15u;
	return hash >> 32;
}

/* Append @text; "" is unknown. */
static void encode_known(struct encoder *entry, const char *text)
{
	encode_string(entry, *text ? text : NULL);
}

static uint32_t encode_server(struct encode *e, const struct server *server)
{
	struct encoder *entry = &e->entry;

	encode_string(entry, server->engine->name);
	encode_string(entry, server->product);
	encode_string(entry, server->otel_system);
	encode_string(entry, server->version);
	encode_string(entry, server->path);
	encode_number(entry, server->engine->dialect);
	encode_known(entry, server->container);
	encode_number(entry, server->pid ? 1 + (uint64_t)server->uid : 0);
	encode_number(entry, server->pid);
	encode_known(entry, server->directory);
	return encode_entry(e, &e->servers, hash_string(server->version) +
					    hash_string(server->container) + server->pid);
}

static uint32_t encode_session(struct encode *e, const struct server *of, const struct who *who)
{
	uint32_t server = encode_server(e, of);
	struct encoder *entry = &e->entry;

	encode_number(entry, server);
	encode_number(entry, who->pid);
	encode_number(entry, who->tid);
	encode_number(entry, of->has_uid ? 1 + (uint64_t)of->uid : 0);
	encode_number(entry, who->connection);
	encode_known(entry, who->user);
	encode_known(entry, who->database);
	encode_known(entry, who->client);
	encode_known(entry, who->application);
	encode_known(entry, who->backend);
	return encode_entry(e, &e->sessions, who->tid);
}

/* Append the event of the clock if it has changed, before one that began at @start_ns. */
static void encode_clock(struct encode *e, uint64_t start_ns, uint64_t wall_ns)
{
	if (e->has_clock && e->wall_offset_ns == wall_ns - start_ns)
		return;
	e->wall_offset_ns = wall_ns - start_ns;
	e->has_clock = true;
	encode_number(&e->entry, e->wall_offset_ns);
	encode_event(e, RECORDING_CLOCK, &e->entry);
}

/* Keep @text for later ones of the same shape. */
static void encode_keep(struct encode *e, uint64_t shape, const char *text, size_t len)
{
	struct encode_text *kept = &e->texts[e->ntexts % RECORDING_TEXTS];

	if (len > RECORDING_TEXT_MAX)
		return;
	/* The numbers of the texts must be those that a reader counts, also without memory. */
	free(kept->text);
	*kept = (struct encode_text){ .shape = shape, .text = malloc(len + 1), .len = len };
	if (kept->text && len)
		memcpy(kept->text, text, len);
	e->text_of[shape % ENCODE_SLOTS] = (uint16_t)(1 + e->ntexts++ % RECORDING_TEXTS);
}

/* Append @text: what differs from an earlier one of the same shape, or all of it. */
static void encode_text(struct encode *e, const char *text, size_t len)
{
	uint64_t shape = shape_hash(text, len);
	unsigned int number = e->text_of[shape % ENCODE_SLOTS];
	const struct encode_text *from = number ? &e->texts[number - 1] : NULL;
	size_t before = e->body.len;

	if (from && from->text && from->shape == shape) {
		encode_number(&e->body, number);
		if (shape_difference(&e->body, from->text, from->len, text, len))
			return;
		e->body.len = before;
	}
	encode_number(&e->body, 0);
	encode_number(&e->body, len);
	encode_bytes(&e->body, text, len);
	encode_keep(e, shape, text, len);
}

static void encode_members(struct encode *e, const struct member *members, const void *of);

/* Append those of the @n @values that are in @mask and not 0: a bit for each, and these. */
static void encode_sparse(struct encoder *body, const __u64 *values, int n, uint64_t mask)
{
	uint64_t present = 0;

	for (int i = 0; i < n; i++)
		present |= values[i] ? mask & 1ull << i : 0;
	encode_number(body, present);
	for (int i = 0; i < n; i++)
		if (present & 1ull << i)
			encode_number(body, values[i]);
}

static void encode_calls(struct encode *e, const struct statement *s)
{
	const struct breakdown_wait *waits = s->why->waits;
	uint32_t numbers[BREAKDOWN_WAITS];
	char name[SYSCALL_NAME];
	int n;

	for (n = 0; n < BREAKDOWN_WAITS && waits[n].sleeps; n++) {
		const char *event = s->events ? s->events[n] : "";

		breakdown_call_name(waits[n].call, name);
		encode_string(&e->entry, name);
		if (*event)
			encode_string(&e->entry, event);
		numbers[n] = encode_entry(e, &e->calls, waits[n].call + hash_string(event));
	}
	encode_number(&e->body, (uint64_t)n);
	for (int i = 0; i < n; i++) {
		encode_number(&e->body, numbers[i]);
		encode_number(&e->body, waits[i].sleeps);
		encode_number(&e->body, waits[i].ns);
	}
}

static void encode_why(struct encode *e, const struct statement *s)
{
	const struct event_breakdown *why = s->why;
	struct encoder *body = &e->body;
	__u64 phases[PHASES];

	for (int i = 0; i < PHASES; i++)
		phases[i] = why->phases[i].first_ns ? 1 + why->phases[i].ns : 0;
	encode_sparse(body, why->ns, BREAKDOWN_PARTS, UINT64_MAX);
	encode_calls(e, s);
	encode_number(body, why->workers.count);
	if (why->workers.count)
		encode_sparse(body, why->workers.ns, BREAKDOWN_PARTS, UINT64_MAX);
	encode_sparse(body, phases, PHASES, UINT64_MAX);
	encode_number(body, why->used);
	encode_sparse(body, why->use, USES, why->used);
}

static void encode_list(struct encoder *body, const struct member *member, const void *of)
{
	size_t n = member_count(member, of, sizeof(uint32_t));
	const char *at = (const char *)of + member->at;
	uint32_t value;

	encode_number(body, n);
	for (size_t i = 0; i < n; i++) {
		memcpy(&value, at + i * sizeof(value), sizeof(value));
		encode_number(body, value);
	}
}

/* Append a backend. Together, the texts of all in a wait must fit into a block. */
static void encode_backend(struct encode *e, const struct lock_backend *backend)
{
	struct lock_backend b = *backend;

	b.cut |= b.len > RECORDING_HELD_MAX;
	b.len = b.len < RECORDING_HELD_MAX ? b.len : RECORDING_HELD_MAX;
	encode_members(e, backend_members, &b);
}

static void encode_backends(struct encode *e, const struct member *member, const void *of)
{
	const void *at = (const char *)of + member->at;
	const struct lock_backend *backends = at;
	size_t n = member_count(member, of, sizeof(*backends));

	encode_number(&e->body, n);
	for (size_t i = 0; i < n; i++)
		encode_backend(e, &backends[i]);
}

static void encode_member(struct encode *e, const struct member *member, const void *of)
{
	const char *at = (const char *)of + member->at;
	const struct recorded_statement *statement = of;
	const char *bytes = NULL;
	size_t len = 0;

	if (member->type == MEMBER_BYTES || member->type == MEMBER_TEXT) {
		memcpy(&bytes, at, sizeof(bytes));
		memcpy(&len, (const char *)of + member->known, sizeof(len));
	}

	switch (member->type) {
	case MEMBER_NUMBER:
		encode_number(&e->body, member_value(member, of));
		break;
	case MEMBER_STRING:
		len = strnlen(at, member->size);
		encode_number(&e->body, 1 + len);
		encode_bytes(&e->body, at, len);
		break;
	case MEMBER_BYTES:
		encode_number(&e->body, len);
		encode_bytes(&e->body, bytes, len);
		break;
	case MEMBER_LIST:
		encode_list(&e->body, member, of);
		break;
	case MEMBER_BACKENDS:
		encode_backends(e, member, of);
		break;
	case MEMBER_TEXT:
		encode_text(e, bytes, len);
		break;
	case MEMBER_BREAKDOWN:
		encode_why(e, &statement->s);
		break;
	case MEMBER_FLAG:
		break;
	}
}

/* Append those of @members that the event @of has: a bit for each, and the values. */
static void encode_members(struct encode *e, const struct member *members, const void *of)
{
	uint64_t flags = 0;

	for (int i = 0; members[i].name; i++)
		flags |= (uint64_t)member_has(&members[i], of) << i;
	encode_number(&e->body, flags);
	for (; flags; flags &= flags - 1)
		encode_member(e, &members[__builtin_ctzll(flags)], of);
}

/* Widen the time range of the block by an event that ended at @ns. */
static void encode_time(struct encode *e, uint64_t ns)
{
	if (!e->begin_ns || ns < e->begin_ns)
		e->begin_ns = ns;
	if (ns > e->end_ns)
		e->end_ns = ns;
}

/* Append what each event begins with: session, start and duration. */
static void encode_begin(struct encode *e, uint32_t session, uint64_t start_ns,
			 uint64_t duration_ns)
{
	encode_number(&e->body, session);
	encode_difference(&e->body, start_ns, e->start_ns);
	encode_number(&e->body, duration_ns);
	e->start_ns = start_ns;
}

void encode_statement(struct encode *e, const struct statement *s)
{
	struct recorded_statement r = {
		.s = *s, .is_transaction = s->transaction, .plan = s->plan,
		.whole = s->has_query_bytes && s->query_bytes == s->text_len,
		.has_bytes = s->has_query_bytes && s->query_bytes != s->text_len,
	};
	uint32_t session = encode_session(e, s->server, s->who);

	if (s->transaction) {
		r.t = *s->transaction;
		r.s.running = r.t.open;
	}
	if (s->original_len && s->parent)
		traceparent_write(s->parent, r.parent);
	if (s->query_id) {
		encode_number(&e->entry, s->query_id);
		r.query = 1 + (uint64_t)encode_entry(e, &e->queries, s->query_id);
	}
	encode_clock(e, s->start_ns, s->wall_ns);
	encode_begin(e, session, s->start_ns, s->duration_ns);
	encode_members(e, statement_members, &r);
	encode_event(e, RECORDING_STATEMENT, &e->body);
	e->statements += !s->running && !s->prepare && !s->transaction && !e->events.failed;
	encode_time(e, s->start_ns + s->duration_ns);
}

void encode_wait(struct encode *e, const struct lock_wait *wait)
{
	struct recorded_wait r = {
		.w = *wait, .lock = *wait->event, .has_info = wait->info != NULL,
	};
	uint32_t session = encode_session(e, wait->server, wait->who);

	snprintf(r.kind, sizeof(r.kind), "%s", wait->kind);
	if (wait->info)
		r.info = *wait->info;
	encode_clock(e, wait->start_ns, wait->wall_ns);
	encode_begin(e, session, wait->start_ns, wait->duration_ns);
	encode_members(e, wait_members, &r);
	encode_event(e, RECORDING_WAIT, &e->body);
	e->waits += !wait->running && !e->events.failed;
	encode_time(e, wait->start_ns + wait->duration_ns);
}

/* Append what was seen and lost. */
static void encode_summary(struct encoder *body, const struct summary *s)
{
	__u64 lost[LOSSES];

	for (int i = 0; i < LOSSES; i++)
		lost[i] = s->lost[i];
	encode_number(body, s->statements);
	encode_sparse(body, lost, LOSSES, UINT64_MAX);
	encode_number(body, s->boundary);
	encode_number(body, s->untraced_ns);
}

void encode_status(struct encode *e, uint64_t now_ns, const struct summary *statements,
		   const struct summary *waits, const struct recorded_cost *cost,
		   const struct recorded_user *users, size_t nusers)
{
	encode_difference(&e->body, now_ns, e->start_ns);
	encode_number(&e->body, cost->cpu_ns);
	encode_number(&e->body, cost->has_bpf ? 1 + cost->bpf_ns : 0);
	encode_summary(&e->body, statements);
	encode_summary(&e->body, waits);
	encode_number(&e->body, nusers);
	for (size_t i = 0; i < nusers; i++) {
		encode_number(&e->body, users[i].known ? 1 + (uint64_t)users[i].uid : 0);
		encode_number(&e->body, users[i].statements);
		encode_number(&e->body, users[i].waits);
		encode_number(&e->body, users[i].last_ns);
	}
	encode_event(e, RECORDING_STATUS, &e->body);
	encode_time(e, now_ns);
}
