// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sessions of PostgreSQL, 10 to 19: each is a process, whether it serves a client or not. Its entry
 * of pg_stat_activity is at
 * MyBEEntry (struct PgBackendStatus; utils/backend_status.h), which before 14 is found by what it
 * points to. If it cannot be, variables and the title have less.
 */
#include "db/postgres/ps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres/backend.h"
#include "db/postgres/entry.h"
#include "db/postgres/lock_names.h"
#include "db/postgres/plan.h"
#include "db/postgres/sample.h"
#include "host/process_memory.h"
#include "usdt/accessor.h"

#define ENTRY_TRIES	3	/* the entry can change while it is read */
#define WAIT_AT_13	684	/* PGPROC.wait_event_info of 13 .. */
#define WAIT_AT_10	676	/* .. and from 10 on */

/* A process that is read. */
struct reader {
	struct postgres_ps *ps;
	const struct ps_query *query;
	struct process_memory memory;
};

static int postgres_find(void *state, const struct elf *elf, bool (*is_program)(const char *name))
{
	struct postgres_ps *ps = state;

	postgres_locks_find(elf, &ps->locks);
	ps->locks.is_program = is_program;
	ps->applies = elf_symbol_value(elf, "in_remote_transaction");
	ps->query = elf_symbol_value(elf, "debug_query_string");
	if (accessor_read_global(elf, "GetCurrentTransactionStartTimestamp", &ps->transaction))
		ps->transaction = 0;
	ps->contexts = elf_symbol_value(elf, "TopMemoryContext");
	ps->wait = elf_symbol_value(elf, "my_wait_event_info");
	ps->proc = elf_symbol_value(elf, "MyProc");
	ps->wait_at = elf_symbol_value(elf, "GetCommandTagName") ? WAIT_AT_13 : WAIT_AT_10;
	/* In a large file, it is names that are not found. */
	lock_names_find(elf, &ps->locks);
	wait_names_find(elf, &ps->waits);
	return ps->query && ps->locks.serves.client && ps->locks.serves.replication ? 0 : -ENOENT;
}

static void postgres_names(void *state, const struct process_memory *memory, const char *version)
{
	struct postgres_ps *ps = state;

	lock_names_read(&ps->locks, memory, version);
	wait_names_read(&ps->waits, &ps->locks, memory, version);
	ps->named = true;
}

static bool reader_bytes(const struct reader *r, uint64_t address, void *buf, size_t size)
{
	return process_memory_get(&r->memory, address, buf, size);
}

static uint64_t reader_pointer(const struct reader *r, uint64_t variable)
{
	return postgres_pointer(&r->memory, variable);
}

/* Read a consistent entry at @address: its first member is odd while it changes. */
static bool reader_entry(const struct reader *r, uint64_t address, char entry[ENTRY_LEAST])
{
	uint32_t again;

	for (int i = 0; i < ENTRY_TRIES; i++)
		if (reader_bytes(r, address, entry, ENTRY_LEAST) && !(load32(entry) & 1) &&
		    reader_bytes(r, address, &again, sizeof(again)) && again == load32(entry))
			return load32(entry + ENTRY_PID) == r->query->process->ns_pid;
	return false;
}

/* Read at most ->text_bytes of the text at @address. */
static void reader_text(const struct reader *r, uint64_t address, struct ps_session *session)
{
	size_t size = r->query->text_bytes;
	char *text = address ? malloc(size) : NULL;
	ssize_t n = text ? process_memory_read(&r->memory, address, text, size) : 0;

	if (n <= 0 || !*text) {
		free(text);
		return;
	}
	session->text = text;
	session->len = strnlen(text, (size_t)n);
	session->cut = session->len == (size_t)n;
}

/* Fill in @session from @entry. Return false if that has no state. */
static bool reader_state(const struct reader *r, const char *entry, struct ps_session *session)
{
	static const uint8_t states[POSTGRES_STATES] = {
		[POSTGRES_UNDEFINED] = PS_UNKNOWN, [POSTGRES_IDLE] = PS_IDLE,
		[POSTGRES_RUNNING] = PS_ACTIVE, [POSTGRES_IN_TRANSACTION] = PS_IN_TRANSACTION,
		[POSTGRES_FASTPATH] = PS_ACTIVE, [POSTGRES_ABORTED] = PS_ABORTED,
		[POSTGRES_DISABLED] = PS_UNKNOWN,
	};
	size_t text = r->ps->locks.entry_text;

	session->state = states[postgres_entry_state(load32(entry + ENTRY_STATE(text)),
						     r->ps->locks.has_starting)];
	if (session->state == PS_UNKNOWN)
		return false;
	session->transaction_ns = postgres_entry_time(load64(entry + ENTRY_XACT));
	session->state_ns = postgres_entry_time(load64(entry + ENTRY_STATE_AT));
	if (session->state == PS_ACTIVE)
		session->statement_ns = postgres_entry_time(load64(entry + ENTRY_STATEMENT));
	/* The entry has only the beginning of a long text. */
	if (session->state == PS_ACTIVE)
		reader_text(r, reader_pointer(r, r->ps->query), session);
	if (!session->text) {
		reader_text(r, load64(entry + text), session);
		session->cut |= session->text &&
				postgres_entry_cuts(&r->memory, r->ps->locks.entry_size,
						    session->len);
	}
	return true;
}

/*
 * The same from the entry of pg_stat_activity, with the text that was there as long as the entry
 * did not change, or with none.
 */
static bool reader_activity(const struct reader *r, struct ps_session *session)
{
	uint64_t address = reader_pointer(r, r->ps->locks.entry);
	const struct ps_session before = *session;
	char entry[ENTRY_LEAST];

	for (int i = 0; i < ENTRY_TRIES; i++) {
		uint32_t changes;

		*session = before;
		if (!reader_entry(r, address, entry) || !reader_state(r, entry, session))
			return false;
		if (reader_bytes(r, address, &changes, sizeof(changes)) &&
		    changes == load32(entry))
			return true;
		free(session->text);
		session->text = NULL;
		session->len = 0;
		session->cut = false;
	}
	return true;
}

/* Return the state that the process title ends in. */
static enum ps_state title_state(uint32_t pid)
{
	static const struct {
		const char *end;
		enum ps_state state;
	} ends[] = {
		{ " idle", PS_IDLE }, { " idle in transaction", PS_IN_TRANSACTION },
		{ " idle in transaction (aborted)", PS_ABORTED },
	};
	char title[512];
	ssize_t n = process_title(pid, title, sizeof(title));

	/* The title is padded with blanks or NULs. */
	while (n > 0 && (!title[n - 1] || title[n - 1] == ' '))
		n--;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t len = strlen(ends[i].end);

		if (n > (ssize_t)len && !memcmp(title + n - len, ends[i].end, len))
			return ends[i].state;
	}
	return PS_UNKNOWN;
}

/* The same as reader_activity() without an entry, or without track_activities. */
static void reader_variables(const struct reader *r, struct ps_session *session)
{
	uint64_t query = reader_pointer(r, r->ps->query), begun, transaction;

	session->state = query ? PS_ACTIVE : title_state(session->who.pid);
	if (query) {
		reader_text(r, query, session);
		begun = reader_pointer(r, r->query->places->begun);
		session->statement_ns = postgres_entry_time(begun);
	}
	if (session->state == PS_ACTIVE || session->state == PS_IN_TRANSACTION) {
		transaction = reader_pointer(r, r->ps->transaction);
		session->transaction_ns = postgres_entry_time(transaction);
	}
}

/* Read the wait event, since 14 at my_wait_event_info, before in the PGPROC. Return 0: none. */
static uint32_t reader_wait(const struct reader *r)
{
	uint64_t address = reader_pointer(r, r->ps->wait ? r->ps->wait : r->ps->proc);
	uint32_t event = 0;

	if (address && !r->ps->wait)
		address += r->ps->wait_at;
	reader_bytes(r, address, &event, sizeof(event));
	return event;
}

static bool postgres_event(const void *state, uint32_t server, uint32_t event, char to[WAIT_EVENT])
{
	const struct postgres_ps *ps = state;

	return wait_names_write(&ps->waits, &ps->locks, server, event, to);
}

static void postgres_learn(void *state, const struct process_memory *memory, uint32_t server,
			   uint32_t event)
{
	struct postgres_ps *ps = state;

	wait_names_custom(&ps->waits, &ps->locks, memory, server, event);
}

/*
 * Set who a process is that serves no client, but has an entry of pg_stat_activity. Return whether
 * it has one.
 */
static bool reader_internal(const struct reader *r, struct ps_session *session)
{
	char entry[ENTRY_LEAST];

	if (!reader_entry(r, reader_pointer(r, r->ps->locks.entry), entry))
		return false;
	session->background = !reader_pointer(r, r->ps->locks.serves.client);
	session->leader = postgres_backend_internal(r->ps, &r->memory, entry, &session->who);
	return true;
}

/* Set the text of a running statement that has none. */
static void reader_no_text(const struct reader *r, struct ps_session *session)
{
	const char *text = postgres_backend_text(r->ps, &r->memory);

	session->text = text ? strndup(text, r->query->text_bytes) : NULL;
	session->len = session->text ? strlen(session->text) : 0;
	session->cut = session->text && text[session->len];
}

/* Read the processes that hold the heavyweight lock for which the session waits. */
static void reader_blockers(const struct reader *r, struct ps_session *session)
{
	struct event_lock event = { .pid = session->who.pid, .tid = session->who.pid };
	struct lock_info info;

	if (!postgres_locks_read(&r->ps->locks, session->who.pid, &event, 1, &info)) {
		for (unsigned int i = 0; i < info.nholders; i++)
			if (session->nblockers < PS_BLOCKERS)
				session->blockers[session->nblockers++] = info.holders[i].pid;
	}
	lock_info_clear(&info);
}

/* Return whether the process's session is the one that is asked for, by a PID outside or inside. */
static bool is_wanted(const struct ps_query *query)
{
	return !query->session || query->session == query->process->pid ||
	       query->session == query->process->ns_pid;
}

/*
 * Read the begin of the statement and the database from the entry of pg_stat_activity, which the
 * statements in functions and each row of a COPY change, too. Return success.
 */
static bool reader_statement(const struct reader *r, uint64_t *begun, uint32_t *database)
{
	uint64_t address = reader_pointer(r, r->ps->locks.entry);
	char entry[ENTRY_LEAST];

	if (!reader_bytes(r, address, entry, sizeof(entry)) ||
	    load32(entry + ENTRY_PID) != r->query->process->ns_pid)
		return false;
	*begun = load64(entry + ENTRY_STATEMENT);
	*database = load32(entry + ENTRY_DATABASE);
	return true;
}

/* Read the plans, if the session is at the same statement before and after that. */
static void reader_plan(const struct reader *r, struct ps_session *session)
{
	struct plan_writer writer = { .bytes = malloc(PLAN_BYTES) };
	struct postgres_plan_query query = {
		.memory = &r->memory, .pid = session->who.pid, .top = r->ps->contexts,
		.release = (unsigned int)strtoul(r->query->version, NULL, 10),
		.deadline_ns = r->query->deadline_ns,
	};
	uint64_t begun, after = 0;

	for (int i = 0; writer.bytes && i < ENTRY_TRIES; i++) {
		writer.len = 0;
		if (!reader_statement(r, &begun, &query.database) ||
		    postgres_plan_read(&query, &writer) ||
		    !reader_statement(r, &after, &query.database)) {
			free(writer.bytes);
			return;
		}
		if (after == begun)
			break;
	}
	/* It is another statement by now. */
	if (writer.bytes && after != begun) {
		writer.len = 0;
		plan_put(&writer, PLAN_MISSED, 1);
	}
	session->plan = writer.bytes;
	session->plan_len = writer.len;
}

static int postgres_read(void *state, const struct ps_query *query)
{
	struct reader r = { .ps = state, .query = query };
	struct ps_session session = {
		.who = { .pid = query->process->pid, .tid = query->process->pid },
		.ns_pid = query->process->ns_pid,
	};
	uint32_t event;
	bool client;
	int err;

	if (!is_wanted(query))
		return 0;
	err = process_memory_open_program(query->process, query->lowest, &r.memory);
	if (err)
		return err;
	client = postgres_kind_is_client(&r.ps->locks.serves, &r.memory);
	if (!client && !reader_pointer(&r, r.ps->locks.proc))
		goto cleanup;
	/* A server that starts does not have all names. */
	postgres_entry_search(&r.ps->locks, &r.memory, query->process->ns_pid);
	if (!client && !reader_internal(&r, &session))
		goto cleanup;
	if (!r.ps->named)
		postgres_names(r.ps, &r.memory, query->version);
	if (client)
		postgres_backend_who(state, &r.memory, query->engine, &session.who);
	if (!reader_activity(&r, &session))
		reader_variables(&r, &session);
	if (!client && session.state == PS_ACTIVE && !session.text)
		reader_no_text(&r, &session);
	backend_application(&r.memory, query->places, session.who.application);
	event = reader_wait(&r);
	if (!postgres_event(state, query->process->ppid, event, session.wait)) {
		postgres_learn(state, &r.memory, query->process->ppid, event);
		postgres_event(state, query->process->ppid, event, session.wait);
	}
	if (event >> 24 == WAIT_LOCK)
		reader_blockers(&r, &session);
	if (query->session)
		reader_plan(&r, &session);
	query->add(query->arg, &session, query->process->ppid);
cleanup:
	process_memory_close(&r.memory);
	return 0;
}

const struct ps_ops postgres_ps_ops = {
	.state = {
		.bytes = sizeof(struct postgres_ps), .find = postgres_find, .names = postgres_names,
	},
	.event = postgres_event, .learn = postgres_learn, .read = postgres_read,
	.server_bytes = sizeof(struct postgres_server), .sample = postgres_sample,
	.forget = postgres_sample_forget,
};
