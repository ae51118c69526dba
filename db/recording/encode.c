// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bpf/event.h"
#include "bpf/lock_event.h"
#include "db/engine.h"
#include "db/locks/info.h"
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

/* Append those of the @n @values that are in @mask and not 0: a bit for each, and these. */
static void encode_sparse(struct encoder *body, const __u64 *values, int n, uint32_t mask)
{
	uint32_t present = 0;

	for (int i = 0; i < n; i++)
		present |= values[i] ? mask & 1u << i : 0;
	encode_number(body, present);
	for (int i = 0; i < n; i++)
		if (present & 1u << i)
			encode_number(body, values[i]);
}

static void encode_calls(struct encode *e, const struct event_breakdown *why, uint32_t *numbers)
{
	char name[SYSCALL_NAME];

	for (int i = 0; i < BREAKDOWN_WAITS && why->waits[i].sleeps; i++) {
		breakdown_call_name(why->waits[i].call, name);
		encode_string(&e->entry, name);
		numbers[i] = encode_entry(e, &e->calls, why->waits[i].call);
	}
}

static void encode_why(struct encode *e, const struct event_breakdown *why,
		       const uint32_t *numbers)
{
	struct encoder *body = &e->body;
	int n = 0;

	while (n < BREAKDOWN_WAITS && why->waits[n].sleeps)
		n++;
	encode_sparse(body, why->ns, BREAKDOWN_PARTS, ~0u);
	encode_number(body, (uint64_t)n);
	for (int i = 0; i < n; i++) {
		encode_number(body, numbers[i]);
		encode_number(body, why->waits[i].sleeps);
		encode_number(body, why->waits[i].ns);
	}
	encode_number(body, why->workers.count);
	if (why->workers.count)
		encode_sparse(body, why->workers.ns, BREAKDOWN_PARTS, ~0u);
	for (int i = 0; i < PHASES; i++)
		encode_number(body, why->phases[i].first_ns ? 1 + why->phases[i].ns : 0);
	encode_number(body, why->used);
	if (why->used)
		encode_sparse(body, why->use, USES, why->used);
}

/* The flags of @s. They decide which members follow. */
static uint32_t statement_flags(const struct statement *s)
{
	const struct {
		bool set;
		uint32_t flag;
	} flags[] = {
		{ s->text, RECORDED_TEXT }, { s->has_status, RECORDED_STATUS },
		{ s->has_counts, RECORDED_ROWS }, { s->why, RECORDED_WHY },
		{ s->has_counts && s->affected, RECORDED_CHANGED },
		{ s->failed, RECORDED_FAILED }, { s->query_id, RECORDED_QUERY },
		{ s->truncated, RECORDED_TRUNCATED },
		{ s->error_code || *s->sqlstate, RECORDED_ERROR },
		{ s->has_examined, RECORDED_EXAMINED }, { s->has_lock, RECORDED_LOCK },
		{ s->has_index, RECORDED_PLAN },
		{ s->fetches, RECORDED_FETCHES }, { s->prepare, RECORDED_PREPARE },
		{ s->running, RECORDED_RUNNING }, { s->no_text, RECORDED_NO_TEXT },
		{ s->original_len, RECORDED_REDACTED },
		{ s->original_len && s->parent, RECORDED_PARENT },
		{ s->has_query_bytes && s->query_bytes != s->text_len, RECORDED_BYTES },
		{ s->has_query_bytes && s->query_bytes == s->text_len, RECORDED_WHOLE },
		{ !s->alone, RECORDED_SHARED },
	};
	uint32_t all = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		all |= flags[i].set ? flags[i].flag : 0;
	return all;
}

/*
 * Append the members of @s that @flags announce, in the order of docs/recording.md. @query: the
 * entry of its query ID.
 */
static void statement_members(struct encode *e, const struct statement *s, uint32_t flags,
			      uint32_t query)
{
	struct encoder *body = &e->body;

	if (flags & RECORDED_ROWS)
		encode_number(body, s->sent + s->affected);
	if (flags & RECORDED_BYTES)
		encode_number(body, s->query_bytes);
	if (flags & RECORDED_ERROR) {
		encode_number(body, s->error_code);
		encode_string(body, s->sqlstate);
	}
	if (flags & RECORDED_EXAMINED)
		encode_number(body, s->examined);
	if (flags & RECORDED_LOCK)
		encode_number(body, s->lock_ns);
	if (flags & RECORDED_PLAN)
		encode_number(body, (uint64_t)s->plan << 1 | s->has_plan);
	if (flags & RECORDED_FETCHES)
		encode_number(body, s->fetches);
	if (flags & RECORDED_REDACTED)
		encode_number(body, s->original_len);
	if (flags & RECORDED_PARENT) {
		encode_string(body, s->parent->trace);
		encode_string(body, s->parent->span);
		encode_number(body, s->parent->flags);
	}
	if (flags & RECORDED_QUERY)
		encode_number(body, query);
}

/* Widen the time range of the block by an event that ended at @ns. */
static void encode_time(struct encode *e, uint64_t ns)
{
	if (!e->begin_ns || ns < e->begin_ns)
		e->begin_ns = ns;
	if (ns > e->end_ns)
		e->end_ns = ns;
}

void encode_statement(struct encode *e, const struct statement *s)
{
	uint32_t flags = statement_flags(s), session = encode_session(e, s->server, s->who);
	uint32_t calls[BREAKDOWN_WAITS], query = 0;

	encode_clock(e, s->start_ns, s->wall_ns);
	if (s->why)
		encode_calls(e, s->why, calls);
	if (s->query_id) {
		encode_number(&e->entry, s->query_id);
		query = encode_entry(e, &e->queries, s->query_id);
	}
	encode_number(&e->body, flags);
	encode_number(&e->body, session);
	encode_difference(&e->body, s->start_ns, e->start_ns);
	encode_number(&e->body, s->duration_ns);
	statement_members(e, s, flags, query);
	if (s->text)
		encode_text(e, s->text, s->text_len);
	if (s->why)
		encode_why(e, s->why, calls);
	encode_event(e, RECORDING_STATEMENT, &e->body);
	e->start_ns = s->start_ns;
	e->statements += !s->running && !s->prepare && !e->events.failed;
	encode_time(e, s->start_ns + s->duration_ns);
}

void encode_transaction(struct encode *e, const struct statement *s)
{
	const struct transaction *t = s->transaction;
	const uint32_t same = RECORDED_TEXT | RECORDED_WHOLE | RECORDED_TRUNCATED | RECORDED_BYTES |
			      RECORDED_NO_TEXT | RECORDED_REDACTED;
	uint32_t flags = (statement_flags(s) & same) | (t->open ? RECORDED_OPEN : 0) |
			 (t->dated ? RECORDED_DATED : 0) | (t->counted ? RECORDED_COUNTED : 0);
	uint32_t session = encode_session(e, s->server, s->who);
	struct encoder *body = &e->body;

	encode_clock(e, s->start_ns, s->wall_ns);
	encode_number(body, flags);
	encode_number(body, session);
	encode_difference(body, s->start_ns, e->start_ns);
	encode_number(body, s->duration_ns);
	encode_number(body, t->state);
	if (flags & RECORDED_COUNTED) {
		encode_number(body, t->statements);
		encode_number(body, t->idle_ns);
	}
	statement_members(e, s, flags & same, 0);
	if (s->text)
		encode_text(e, s->text, s->text_len);
	encode_event(e, RECORDING_TRANSACTION, body);
	encode_time(e, s->start_ns + s->duration_ns);
}

/* Append a backend. Together, the texts of all in a wait must fit into a block. */
static void encode_backend(struct encoder *body, const struct lock_backend *backend)
{
	size_t len = backend->len < RECORDING_HELD_MAX ? backend->len : RECORDING_HELD_MAX;

	encode_number(body, (backend->queued ? RECORDED_QUEUED : 0) |
			    (backend->valid ? RECORDED_VALID : 0) |
			    (backend->running ? RECORDED_BUSY : 0) |
			    (backend->idle_valid ? RECORDED_IDLE_VALID : 0) |
			    (backend->idle ? RECORDED_IDLE : 0) |
			    (backend->cut || len < backend->len ? RECORDED_CUT : 0));
	encode_number(body, backend->pid);
	encode_number(body, backend->connection);
	encode_number(body, backend->blocked_ns);
	encode_number(body, backend->idle_ns);
	encode_number(body, backend->text ? len + 1 : 0);
	encode_bytes(body, backend->text, backend->text ? len : 0);
}

static void encode_info(struct encoder *body, const struct lock_info *info)
{
	encode_number(body, info->relation);
	encode_string(body, info->name);
	encode_string(body, info->object);
	encode_string(body, info->index);
	encode_backend(body, &info->self);
	encode_number(body, info->nholders);
	for (unsigned int i = 0; i < info->nholders; i++)
		encode_backend(body, &info->holders[i]);
	encode_number(body, info->more);
}

void encode_wait(struct encode *e, const struct lock_wait *wait)
{
	uint32_t session = encode_session(e, wait->server, wait->who);
	uint32_t server = encode_server(e, wait->server);
	const struct event_lock *event = wait->event;
	struct encoder *body = &e->body;

	encode_clock(e, wait->start_ns, wait->wall_ns);
	encode_number(body, (wait->running ? RECORDED_WAIT_RUNNING : 0) |
			    (wait->joined ? RECORDED_WAIT_JOINED : 0) |
			    (wait->info ? RECORDED_WAIT_INFO : 0) |
			    (wait->info && wait->info->known ? RECORDED_WAIT_KNOWN : 0));
	encode_number(body, server);
	encode_number(body, wait->who->pid);
	encode_number(body, wait->who->tid);
	encode_difference(body, wait->start_ns, e->start_ns);
	encode_number(body, wait->duration_ns);
	encode_number(body, event->flags);
	encode_number(body, event->kind);
	encode_number(body, event->mode);
	for (int i = 0; i < 4; i++)
		encode_number(body, event->field[i]);
	encode_number(body, event->block);
	encode_number(body, event->offset);
	encode_string(body, wait->kind);
	encode_number(body, strnlen(event->name, sizeof(event->name)) + 1);
	encode_bytes(body, event->name, strnlen(event->name, sizeof(event->name)));
	encode_number(body, wait->ncycle);
	for (unsigned int i = 0; i < wait->ncycle; i++)
		encode_number(body, wait->cycle[i]);
	if (wait->info)
		encode_info(body, wait->info);
	encode_number(body, session);
	encode_event(e, RECORDING_WAIT, body);
	e->start_ns = wait->start_ns;
	e->waits += !wait->running && !e->events.failed;
	encode_time(e, wait->start_ns + wait->duration_ns);
}

static void encode_summary(struct encoder *body, const struct summary *s)
{
	static const enum loss order[] = RECORDING_LOSSES;

	encode_number(body, s->statements);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		encode_number(body, s->lost[order[i]]);
	encode_number(body, s->boundary);
}

/* Append what was left out for the overhead limit, if anything was. */
static void encode_limit(struct encoder *body, const struct summary *s)
{
	static const enum loss order[] = RECORDING_LIMIT_LOSSES;
	uint64_t any = s->untraced_ns;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		any |= s->lost[order[i]];
	if (!any)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		encode_number(body, s->lost[order[i]]);
	encode_number(body, s->untraced_ns);
}

void encode_status(struct encode *e, uint64_t now_ns, const struct summary *statements,
		   const struct summary *waits, const struct recorded_cost *cost)
{
	encode_difference(&e->body, now_ns, e->start_ns);
	encode_number(&e->body, cost->cpu_ns);
	encode_number(&e->body, cost->has_bpf ? 1 + cost->bpf_ns : 0);
	encode_summary(&e->body, statements);
	encode_summary(&e->body, waits);
	encode_limit(&e->body, statements);
	encode_event(e, RECORDING_STATUS, &e->body);
	encode_time(e, now_ns);
}
