// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/enrich.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "db/engines.h"
#include "db/ps/ops.h"
#include "host/clock.h"
#include "host/process.h"
#include "sql/command.h"

#define DOUBTS_MAX	3		/* process titles that contradict the server's memory */
#define AGAIN_NS	1000000000u	/* between two searches of a server that was not found */
#define NAMES_SHARE	20u		/* 1/20 of the time is to read names of wait events, .. */
#define NAMES_OWNER_SHARE	50u	/* .. 1/50 those of one owner .. */
#define NAMES_ADVANCE_NS	5000000000ull	/* .. so long ahead, if it was not used: 100 ms */
#define IGNORE_WITHIN_NS	500000000u	/* no thread ID is reused within this time */

int enrich_open(struct enrich *e, const struct enrich_config *config, struct error *error)
{
	bool none = false;

	*e = (struct enrich){ .config = *config };
	if (config->breakdown)
		e->breakdowns.rows = calloc(BREAKDOWN_PENDING, sizeof(*e->breakdowns.rows));
	none |= config->breakdown && !e->breakdowns.rows;
	if (config->sink->config.stat_waits)
		e->waits.rows = calloc(BREAKDOWN_OPEN, sizeof(*e->waits.rows));
	none |= config->sink->config.stat_waits && !e->waits.rows;
	e->waits.owners = config->runtime->owners;
	return none ? error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL) : 0;
}

void enrich_close(struct enrich *e)
{
	identity_clear(&e->identities);
	servers_clear(&e->servers);
	states_clear(&e->states);
	free(e->breakdowns.rows);
	breakdown_waits_free(&e->waits);
	e->breakdowns.rows = NULL;
}

/* Return the target of a record, whose ID is known. */
static struct target *enrich_target(const struct enrich *e, uint32_t id)
{
	return target_by_id(e->config.discover->targets, e->config.discover->ntargets, id);
}

/*
 * Make the programs ignore a session whose user and database are known and do not both match, so
 * that it costs no more than the probe hits. Valid only if a session is a thread, which keeps both
 * until it exits.
 */
static void enrich_ignore(struct enrich *e, const struct identity_entry *entry,
			  const struct event_session *session)
{
	const struct filter *wanted = &e->config.sink->config.filter;
	const struct filter filter = {
		.user = wanted->user, .database = wanted->database, .backend = wanted->backend,
	};
	bool known;

	if (!filter_any(&filter) || !entry)
		return;
	/* Later, the thread ID may have been reused. */
	if (runtime_now(e->config.runtime) - session->time_ns > IGNORE_WITHIN_NS)
		return;
	known = (*entry->who.user && *entry->who.database) ||
		(filter.backend && !filter.user && !filter.database);
	if (e->config.runtime->pid_ns_ino || !known || !*entry->who.backend ||
	    filter_selects(&filter, entry->server, &entry->who, NULL, 0))
		return;
	sessions_ignore(e->config.sessions, session->tid);
}

/*
 * Trust the server's memory once a process title agrees with it, and stop trying after DOUBTS_MAX
 * titles that do not. Return whether there was a title; that of a walsender has no database.
 */
static bool enrich_trust(struct target_trust *trust, uint32_t tid, const struct who *memory)
{
	char title[512], expected[256];
	ssize_t len = process_title(tid, title, sizeof(title) - 1);

	if (len <= 0)
		return false;
	title[len] = '\0';
	snprintf(expected, sizeof(expected), " %s %s %s", memory->user, memory->database,
		 memory->client);
	if (*memory->user && strstr(title, expected))
		trust->verdict = TRUST_MEMORY;
	else if (strstr(title, "walsender ") || strstr(title, "wal sender process "))
		return false;
	else if (++trust->doubts == DOUBTS_MAX)
		trust->verdict = TRUST_TITLE;
	return true;
}

/* Return the trust in @target as run by @uid. */
static struct target_trust *enrich_trust_of(struct target *target, uint32_t uid)
{
	struct target_trust *trust;

	for (unsigned int i = 0; i < target->ntrusts && i < TARGET_TRUSTS; i++)
		if (target->trust[i].uid == uid)
			return &target->trust[i];
	trust = &target->trust[target->ntrusts++ % TARGET_TRUSTS];
	*trust = (struct target_trust){ .uid = uid };
	return trust;
}

/*
 * Return whether the identity of a backend that has exited, and so has no title, is plausible: a
 * valid client address and port show that the offsets are right.
 */
static bool identity_plausible(const struct event_identity *event)
{
	if (!*event->user || (!*event->database && event->backend != BACKEND_WALSENDER))
		return false;
	return !strncmp(event->host, "[local]", sizeof(event->host)) ||
	       (memchr(event->host, '.', 5) && *event->port >= '1' && *event->port <= '9');
}

/* Drop all servers if there are too many. */
static void enrich_limit_servers(struct enrich *e)
{
	if (!servers_full(&e->servers))
		return;
	identity_forget_servers(&e->identities);
	servers_clear(&e->servers);
}

/*
 * Find the server of the session of @entry in process @pid of user *@uid, NULL: unknown, unless it
 * is known. To be called as early as possible: a backend may exit soon.
 */
static void enrich_server(struct enrich *e, const struct target *target, uint32_t pid,
			  const uint32_t *uid, struct identity_entry *entry)
{
	const struct server *known = entry->target_id == target->id ? entry->server : NULL, *found;
	uint64_t now_ns;

	if (known && known->pid && (!uid || known->uid == *uid))
		return;
	now_ns = clock_ns(CLOCK_MONOTONIC);
	if (known && known->has_uid == (uid != NULL) && now_ns < entry->again_ns)
		return;
	/* It may forget the one that is known. */
	enrich_limit_servers(e);
	known = entry->target_id == target->id ? entry->server : NULL;
	found = servers_of(&e->servers, target, pid, uid);
	/* Of a process that has exited meanwhile, less is found than before. */
	if (!known || known->uid != found->uid || found->pid || *found->container)
		entry->server = found;
	entry->target_id = target->id;
	entry->again_ns = now_ns + AGAIN_NS;
}

/* Return whether names may be read for @owner at @now_ns. */
static bool enrich_may_read(const struct enrich *e, uint32_t owner, uint64_t now_ns)
{
	uint64_t until_ns = now_ns + NAMES_ADVANCE_NS;

	return e->names_ns < until_ns && e->names_owner_ns[owner % OWNERS] < until_ns;
}

/* Return until when the time is used if it was until @used_ns and @ns from @begun_ns on were. */
static uint64_t enrich_charge(uint64_t used_ns, uint64_t begun_ns, unsigned int share, uint64_t ns)
{
	return (used_ns > begun_ns ? used_ns : begun_ns) + share * ns;
}

/* Charge the time since @begun_ns to @owner. */
static void enrich_spend(struct enrich *e, uint32_t owner, uint64_t begun_ns)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), ns = now_ns - begun_ns;
	uint64_t *owner_ns = &e->names_owner_ns[owner % OWNERS];

	*owner_ns = enrich_charge(*owner_ns, begun_ns, NAMES_OWNER_SHARE, ns);
	e->names_ns = enrich_charge(e->names_ns, begun_ns, NAMES_SHARE, ns);
	/* Others wait for at most a second for one whose memory is slow. */
	if (e->names_ns > now_ns + NAMES_ADVANCE_NS + NS_PER_S)
		e->names_ns = now_ns + NAMES_ADVANCE_NS + NS_PER_S;
}

/* Return the name of @backend, as pg_stat_activity.backend_type has those of PostgreSQL. */
static const char *backend_name(uint32_t backend)
{
	static const char *const names[] = {
		[BACKEND_CLIENT] = "client", [BACKEND_WALSENDER] = "walsender",
		[BACKEND_WORKER] = "background worker", [BACKEND_AUTOVACUUM] = "autovacuum worker",
		[BACKEND_EVENT] = "event worker", [BACKEND_APPLIER] = "replication applier",
		[BACKEND_INIT] = "init",
	};

	return backend < sizeof(names) / sizeof(*names) ? names[backend] : "";
}

/* Write what the session of @event serves to @to. */
static void identity_backend(const struct event_identity *event, char to[BACKEND_NAME])
{
	if (event->backend == BACKEND_WORKER && *event->type)
		snprintf(to, BACKEND_NAME, "%.*s", (int)sizeof(event->type) - 1, event->type);
	else
		snprintf(to, BACKEND_NAME, "%s", backend_name(event->backend));
}

/* Read the names of @entry's session, which serves no client, from the catalog of its server. */
static void enrich_catalog(struct enrich *e, const struct target *target,
			   const struct event_identity *event, struct identity_entry *entry)
{
	uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC);
	uint32_t owner = event->session.head.owner;
	uint32_t pid = entry->server && entry->server->pid ? entry->server->pid :
							     event->session.pid;

	if (!target->engine->names || !enrich_may_read(e, owner, begun_ns))
		return;
	target->engine->names(pid, event->database_id, event->user_id, &entry->who);
	enrich_spend(e, owner, begun_ns);
}

/*
 * Struct offsets vary between releases; they are trusted only after they match a process title.
 * That of a process that serves no client has no names.
 */
void enrich_identity(struct enrich *e, const struct event_identity *event)
{
	struct target *target = enrich_target(e, event->session.target_id);
	struct who memory = { .user = "" };
	struct target_trust unknown = { .verdict = TRUST_UNKNOWN }, *trust = &unknown;
	char host[sizeof(event->host)], port[sizeof(event->port)];
	uint32_t tid = event->session.tid, uid;
	struct identity_entry *entry;
	bool titled = true, has_uid, internal = event->internal;

	identity_backend(event, memory.backend);
	snprintf(memory.user, sizeof(memory.user), "%.*s", (int)sizeof(event->user) - 1,
		 event->user);
	snprintf(memory.database, sizeof(memory.database), "%.*s",
		 (int)sizeof(event->database) - 1, event->database);
	snprintf(host, sizeof(host), "%.*s", (int)sizeof(event->host) - 1, event->host);
	snprintf(port, sizeof(port), "%.*s", (int)sizeof(event->port) - 1, event->port);
	if (!internal)
		target->engine->client(host, port, memory.client, sizeof(memory.client));
	has_uid = owners_uid(e->config.runtime->owners, event->session.head.owner, &uid);
	if (has_uid)
		trust = enrich_trust_of(target, uid);
	if (!target->engine->identify)
		trust->verdict = TRUST_MEMORY;
	if (!internal && trust->verdict == TRUST_UNKNOWN)
		titled = enrich_trust(trust, tid, &memory);
	identity_forget(&e->identities, tid);
	if (internal || trust->verdict == TRUST_MEMORY || (!titled && identity_plausible(event)))
		identity_set(&e->identities, tid, &memory);
	entry = identity_of(&e->identities, target->engine, tid);
	if (entry) {
		memcpy(entry->who.backend, memory.backend, sizeof(memory.backend));
		enrich_server(e, target, event->session.pid, has_uid ? &uid : NULL, entry);
	}
	if (entry && internal)
		enrich_catalog(e, target, event, entry);
	if (target->engine->identify)
		enrich_ignore(e, entry, &event->session);
}

void enrich_process(struct enrich *e, const struct target *target, const struct process *process)
{
	struct identity_entry *entry = identity_of(&e->identities, target->engine, process->pid);
	struct process_memory memory;

	if (!entry)
		return;
	enrich_server(e, target, process->pid, &process->uid, entry);
	/* The programs send its name only when they first see a session. */
	if (!target->places.application ||
	    process_memory_open_program(process, target->lowest_vaddr, &memory))
		return;
	backend_application(&memory, &target->places, entry->who.application);
	process_memory_close(&memory);
}

void enrich_application(struct enrich *e, const struct event_application *event)
{
	const struct target *target = enrich_target(e, event->session.target_id);

	/* The name is kept with the identity. */
	identity_of(&e->identities, target->engine, event->session.tid);
	identity_rename(&e->identities, event);
}

/* Read the user of @event's process to *@uid. Return false if it is unknown. */
static bool enrich_uid(const struct enrich *e, const struct event_statement *event, uint32_t *uid)
{
	struct process process;

	/* Only when it ends has a session that was added by user space an owner. */
	if (!(event->flags & SESSION_ADDED) || !(event->flags & SESSION_OPEN))
		return owners_uid(e->config.runtime->owners, event->head.owner, uid);
	if (process_read(event->pid, engine_is_executable, &process))
		return false;
	*uid = process.uid;
	return true;
}

/* Return what is known of all servers of @target. */
static const struct server *enrich_file(struct enrich *e, const struct target *target)
{
	enrich_limit_servers(e);
	return servers_of_file(&e->servers, target);
}

/* Return the session of @event, with its server; NULL if there is no memory. */
static struct identity_entry *enrich_session(struct enrich *e, const struct target *target,
					     const struct event_statement *event)
{
	struct identity_entry *entry = identity_of(&e->identities, target->engine, event->tid);
	uint32_t owner = 1u + event->head.owner, uid;
	bool by_owner = !(event->flags & SESSION_ADDED) || !(event->flags & SESSION_OPEN), has_uid;

	/* To ask for the user of each statement would be a system call. */
	if (!entry || (entry->server && entry->server->pid && entry->owner == owner &&
		       entry->target_id == target->id))
		return entry;
	has_uid = enrich_uid(e, event, &uid);
	enrich_server(e, target, event->pid, has_uid ? &uid : NULL, entry);
	entry->owner = has_uid && by_owner ? owner : 0;
	return entry;
}

/* Add the server and the session, with @connection, the server's number of it. */
static void enrich_who(struct enrich *e, const struct event_statement *event, uint64_t connection,
		       struct statement *s)
{
	const struct target *target = enrich_target(e, event->target_id);
	struct identity_entry *entry = NULL;
	struct who *who = &e->who;

	if (e->config.identify)
		entry = enrich_session(e, target, event);
	if (entry && event->flags & SESSION_UNNAMED) {
		*who = entry->who;
		*who->application = '\0';
	} else if (entry) {
		identity_settle(entry, event);
		who = &entry->who;
	} else {
		*who = (struct who){ .pid = 0 };
	}
	who->pid = event->pid;
	who->tid = event->tid;
	who->connection = connection;
	s->server = entry ? entry->server : enrich_file(e, target);
	s->who = who;
}

/*
 * The same of what is open in a session that is an object: its user comes with the end of a
 * statement, and is in the server's memory meanwhile. Return whether it could be read.
 */
static bool enrich_object(struct enrich *e, const struct session *session, struct statement *s)
{
	const struct event_statement *event = &session->s;
	uint32_t uid;
	bool has_uid = enrich_uid(e, event, &uid), known;

	enrich_limit_servers(e);
	e->who = (struct who){ .pid = event->pid, .tid = event->tid };
	known = sessions_who(e->config.sessions, session, &e->who);
	snprintf(e->who.backend, sizeof(e->who.backend), "%s", backend_name(session->backend));
	s->server = servers_of(&e->servers, enrich_target(e, event->target_id), event->pid,
			       has_uid ? &uid : NULL);
	s->who = &e->who;
	return known;
}

/* If a session is not a thread, the identity comes with each statement: drop that of @event. */
static void enrich_leave(struct enrich *e, const struct event_statement *event)
{
	if (e->config.identify && !enrich_target(e, event->target_id)->engine->identify)
		identity_forget(&e->identities, event->tid);
}

/* Return a statement with the members that running and completed statements share. */
static struct statement statement_of(struct enrich *e, const struct event_statement *event,
				     bool has_text)
{
	const uint32_t without = STATEMENT_UNREADABLE | STATEMENT_NO_TEXT | STATEMENT_DROPPED;
	struct statement s = {
		.start_ns = runtime_here_ns(e->config.runtime, event->start_ns),
		.wall_ns = runtime_wall_ns(e->config.runtime, event->start_ns),
	};

	if (has_text && !(event->flags & without)) {
		s.text = (const char *)(event + 1);
		s.text_len = event->text_len;
		s.truncated = event->flags & STATEMENT_CUT;
		s.query_bytes = event->query_bytes;
		s.has_query_bytes = s.query_bytes || !s.truncated;
	}
	return s;
}

/* Set the text behind that of @s, which has one. */
static void statement_of_other(const struct event_statement *event, struct statement *s)
{
	/* Those of MySQL have another member there. */
	if (!s->text || event->flags & SESSION_LATE || !event->of_len ||
	    !command_runs(s->text, s->text_len))
		return;
	s->of = s->text + s->text_len + OF_GAP;
	s->of_len = event->of_len;
	s->of_cut = event->of_cut;
}

/* Copy the SQLSTATE in an event if it is valid. */
static void sqlstate_read(uint64_t from, char to[SQLSTATE_LENGTH + 1])
{
	char state[SQLSTATE_LENGTH + 1] = "";

	for (int i = 0; i < SQLSTATE_LENGTH; i++)
		state[i] = (char)(from >> 8 * i);
	if (strspn(state, SQLSTATE_CHARACTERS) == SQLSTATE_LENGTH)
		memcpy(to, state, sizeof(state));
}

/* Return when detaching from the target of a record began; 0: it has not. */
static uint64_t enrich_detach_ns(const struct enrich *e, uint32_t target_id)
{
	uint64_t paused_ns = enrich_target(e, target_id)->paused_ns;

	return paused_ns ? paused_ns : e->detach_ns;
}

/* Return what is known of the server of @key, of which @pid is a process; NULL: nothing. */
static void *enrich_state(struct enrich *e, const struct target *target, uint32_t owner,
			  uint32_t pid, const struct state_key *key)
{
	void *state = states_get(&e->states, key);
	uint64_t begun_ns;

	if (state)
		return state;
	begun_ns = clock_ns(CLOCK_MONOTONIC);
	if (!enrich_may_read(e, owner, begun_ns))
		return NULL;
	state = states_read(&e->states, &target->engine->ps_ops->state, target, pid, key);
	enrich_spend(e, owner, begun_ns);
	return state;
}

/* Write the name of wait event @event to @to. */
static void enrich_name(struct enrich *e, const struct target *target, uint32_t owner, void *state,
			const struct state_key *key, uint32_t event, char to[WAIT_EVENT])
{
	const struct ps_ops *ops = target->engine->ps_ops;
	uint64_t begun_ns;
	struct process_memory memory;

	if (ops->event(state, key->server, event, to) || !key->server)
		return;
	begun_ns = clock_ns(CLOCK_MONOTONIC);
	if (!enrich_may_read(e, owner, begun_ns))
		return;
	if (!states_memory(target, key->server, key->uid, &memory)) {
		ops->learn(state, &memory, key->server, event);
		process_memory_close(&memory);
	}
	enrich_spend(e, owner, begun_ns);
	ops->event(state, key->server, event, to);
}

/* Name the wait events of the breakdown of @s, whose server is known. */
static void enrich_events(struct enrich *e, const struct event_statement *event,
			  const struct target *target, struct statement *s)
{
	const struct ps_ops *ops = target->engine->ps_ops;
	struct state_key key = { .target_id = target->id, .server = s->server->pid };
	/* The process of the session may have ended. */
	uint32_t pid = key.server ? key.server : event->pid, owner = event->head.owner;
	void *state = NULL;

	/* It is looked up only if it is shown, and is then the same process. */
	if (target->engine->has_stages)
		key.server = pid;
	if (!s->why || !ops || !ops->event ||
	    !owners_uid(e->config.runtime->owners, event->head.owner, &key.uid))
		return;
	for (int i = 0; i < BREAKDOWN_WAITS && s->why->waits[i].sleeps; i++) {
		*e->event[i] = '\0';
		if (!s->why->waits[i].event)
			continue;
		state = state ? state : enrich_state(e, target, owner, pid, &key);
		if (!state)
			return;
		enrich_name(e, target, owner, state, &key, s->why->waits[i].event, e->event[i]);
	}
	s->events = e->event;
}

/* Set the level of @s, which has its text, and that of its caller. */
static void statement_of_routine(const struct event_nested *nested, struct statement *s)
{
	s->level = nested->level;
	if (!s->text || !nested->caller_len)
		return;
	s->of = nested->caller;
	s->of_cut = nested->caller_len > CALLER_TEXT;
	s->of_len = s->of_cut ? CALLER_TEXT : nested->caller_len;
}

void enrich_statement(struct enrich *e, const struct event_statement *event,
		      const struct event_nested *nested)
{
	uint64_t detach_ns = enrich_detach_ns(e, event->target_id);
	struct statement s = statement_of(e, event, true);
	const struct target *target = enrich_target(e, event->target_id);

	/* Sites are detached one by one, so some probes of this statement may have been missed. */
	if (detach_ns && event->start_ns + event->duration_ns > detach_ns) {
		/* A Parse that only prepares is not counted. */
		e->half_seen += !statement_is_prepare(event) && event->start_ns < detach_ns;
		e->unseen += !statement_is_prepare(event);
		enrich_leave(e, event);
		return;
	}
	if (nested)
		statement_of_routine(nested, &s);
	else
		statement_of_other(event, &s);
	s.duration_ns = event->duration_ns;
	if (event->flags & STATEMENT_HAS_QUERY_ID)
		s.query_id = event->query_id;
	s.error_code = event->error_code;
	/* After the end of its backend, it is that of an earlier statement. */
	if (event->flags & STATEMENT_ERROR && !(event->flags & STATEMENT_DIED))
		sqlstate_read(event->sqlstate, s.sqlstate);
	s.prepare = statement_is_prepare(event);
	s.alone = event->flags & STATEMENT_ALONE;
	s.fetches = event->flags & STATEMENT_FETCHED ? event->depth : 0;
	s.has_rows = event->flags & STATEMENT_HAS_ROWS && !(event->flags & STATEMENT_ERROR);
	s.rows = event->rows;
	s.has_counts = event->flags & STATEMENT_HAS_ROWS;
	s.sent = event->flags & STATEMENT_CHANGED ? 0 : event->rows;
	s.has_affected = s.has_counts && target && target->has & TARGET_HAS_CHANGES;
	s.affected = event->rows - s.sent;
	s.has_examined = event->flags & STATEMENT_HAS_EXAMINED;
	s.examined = event->examined;
	s.has_lock = event->flags & STATEMENT_HAS_LOCK;
	s.lock_ns = event->lock_us * 1000;
	s.has_index = event->flags & STATEMENT_HAS_INDEX;
	s.has_plan = event->flags & STATEMENT_HAS_PLAN;
	s.plan = s.has_index ? (uint16_t)event->plan : 0;
	s.has_status = !(event->flags & STATEMENT_NO_STATUS);
	s.failed = s.unended = event->flags & STATEMENT_ERROR;
	s.died = event->flags & STATEMENT_DIED;
	s.no_text = event->flags & (STATEMENT_NO_TEXT | STATEMENT_DROPPED);
	s.why = breakdown_take(&e->breakdowns, event->tid, event->start_ns, event->duration_ns);
	s.waits = breakdown_wait_take(&e->waits, event->pid, event->start_ns, &s.nwaits);
	enrich_who(e, event, event->connection_id, &s);
	if (e->config.events)
		enrich_events(e, event, target, &s);
	if (sink_statement(e->config.sink, &s, event->head.owner)) {
		e->text_dropped += !!(event->flags & STATEMENT_DROPPED);
		e->why_dropped += !!(event->flags & STATEMENT_NO_WHY);
	}
	enrich_leave(e, event);
}

void enrich_running(struct enrich *e, const struct session *session, bool has_text,
		    uint64_t now_ns)
{
	const struct event_statement *event = &session->s;
	struct statement s = statement_of(e, event, has_text);

	statement_of_other(event, &s);
	s.running = true;
	s.duration_ns = now_ns - event->start_ns - event->duration_ns;
	if (e->config.identify && !enrich_target(e, event->target_id)->engine->identify)
		enrich_object(e, session, &s);
	else
		enrich_who(e, event, 0, &s);
	sink_statement(e->config.sink, &s, event->head.owner);
}

static enum transaction_state transaction_state(uint32_t flags)
{
	return flags & TRANSACTION_COMMITTED ? TRANSACTION_IS_COMMITTED :
	       flags & TRANSACTION_ROLLED_BACK ? TRANSACTION_IS_ROLLED_BACK :
	       flags & TRANSACTION_PREPARED ? TRANSACTION_IS_PREPARED : TRANSACTION_IS_UNKNOWN;
}

/* Return a transaction of which @active_ns is the time that its statements took. */
static struct transaction transaction_of(const struct event_transaction *event,
					 uint64_t duration_ns, uint64_t active_ns)
{
	return (struct transaction){
		.dated = !(event->flags & TRANSACTION_UNDATED),
		.counted = !(event->flags & TRANSACTION_PARTIAL),
		.statements = event->statements,
		.idle_ns = duration_ns > active_ns ? duration_ns - active_ns : 0,
	};
}

/*
 * Report transaction @t, which is @s with the text of one of its statements. @session: that has it
 * open; NULL: it has ended.
 */
static void enrich_show_transaction(struct enrich *e, const struct event_transaction *event,
				    const struct session *session, struct statement *s,
				    const struct transaction *t)
{
	struct event_identity who = event->who;
	struct event_application application = { .start_ns = 0 };
	const struct identity_entry *entry = NULL;
	uint32_t id = event->s.target_id;

	/* It may have been read in another thread of a pool. */
	who.session.tid = event->s.tid;
	if (e->config.identify && who.session.head.type && who.session.target_id == id) {
		enrich_identity(e, &who);
		application.session = who.session;
		memcpy(application.name, event->application, sizeof(application.name));
		enrich_application(e, &application);
		entry = identity_of(&e->identities, enrich_target(e, id)->engine, event->s.tid);
	}
	/*
	 * If its memory cannot be read, the session is of whom it was before. That may tell the
	 * application only while a statement is running.
	 */
	if (!session || !e->config.identify || enrich_target(e, id)->engine->identify ||
	    !enrich_object(e, session, s))
		enrich_who(e, &event->s, event->s.connection_id, s);
	else if (entry && !*e->who.application)
		memcpy(e->who.application, entry->who.application, sizeof(e->who.application));
	s->transaction = t;
	s->no_text = event->s.flags & (STATEMENT_NO_TEXT | STATEMENT_DROPPED);
	s->unended = true;
	if (sink_statement(e->config.sink, s, event->s.head.owner))
		e->text_dropped += !!(event->s.flags & STATEMENT_DROPPED);
	enrich_leave(e, &event->s);
}

void enrich_transaction(struct enrich *e, const struct event_transaction *event)
{
	struct statement s = statement_of(e, &event->s, true);
	struct transaction t = transaction_of(event, event->s.duration_ns, event->active_ns);
	uint64_t detach_ns = enrich_detach_ns(e, event->s.target_id);

	s.duration_ns = event->s.duration_ns;
	t.state = transaction_state(event->flags);
	/* Some probes of its end may have been missed. */
	if (detach_ns && event->s.start_ns + event->s.duration_ns > detach_ns) {
		e->unseen += e->config.transactions;
		if (event->s.start_ns >= detach_ns)
			return;
		e->half_seen += e->config.transactions;
		s.duration_ns = detach_ns - event->s.start_ns;
		t.open = true;
		t.counted = false;
		t.state = TRANSACTION_IS_UNKNOWN;
	}
	enrich_show_transaction(e, event, NULL, &s, &t);
}

void enrich_open_transaction(struct enrich *e, const struct event_transaction *event,
			     const struct session *session, bool has_text, uint64_t now_ns)
{
	const struct event_statement *now = &session->s;
	enum session_phase phase = session_phase(now);
	bool running = phase == SESSION_RUNNING || (phase == SESSION_BETWEEN && has_text);
	uint64_t running_ns = running ? now_ns - now->start_ns - now->duration_ns : 0;
	struct statement s;
	struct transaction t = transaction_of(event, now_ns - event->s.start_ns,
					      event->active_ns + running_ns);

	s = running && running_ns >= event->longest_ns ? statement_of(e, now, has_text) :
							 statement_of(e, &event->s, true);
	s.start_ns = runtime_here_ns(e->config.runtime, event->s.start_ns);
	s.wall_ns = runtime_wall_ns(e->config.runtime, event->s.start_ns);
	s.duration_ns = now_ns - event->s.start_ns;
	s.running = true;
	t.open = true;
	t.statements += running;
	t.state = running ? TRANSACTION_IS_RUNNING :
		  event->flags & TRANSACTION_FAILED ? TRANSACTION_IS_ABORTED : TRANSACTION_IS_IDLE;
	enrich_show_transaction(e, event, session, &s, &t);
}
