// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sessions of PostgreSQL, 14 to 19, from one array in shared memory that all processes of the
 * server have at the same address: MyBEEntry of each points to its element (struct
 * PgBackendStatus; utils/backend_status.h). Of each element, st_appname and st_activity_raw point
 * into arrays of their own, so that they prove where the elements of the first one are.
 */
#include "db/postgres/sample.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres/backend.h"
#include "db/postgres/entry.h"
#include "db/ps/ops.h"

#define ENTRY_LEAST	256		/* bytes of an element that are read .. */
#define ENTRY_MOST	2048		/* .. and that it can have */
#define ENTRIES_MOST	(1u << 19)	/* MaxBackends is less than 2^18 */
#define ENTRY_TRIES	3
#define ARRAY_MOST	(64u << 20)	/* bytes */
#define NAME_BYTES	64		/* NAMEDATALEN */
#define PIDS_READ	4096		/* bytes of a list of children */

/* What a sample works with. */
struct sampling {
	const struct postgres_ps *ps;
	struct postgres_server *server;
	const struct sample_query *query;
};

static bool bytes_read(const struct process_memory *memory, uint64_t address, void *buf,
		       size_t size)
{
	return address && process_memory_read(memory, address, buf, size) == (ssize_t)size;
}

/* Return whether @next is the element behind @entry. */
static bool entry_follows(const char *entry, const char *next)
{
	uint64_t text = load64(entry + ENTRY_TEXT), next_text = load64(next + ENTRY_TEXT);

	return load64(entry + ENTRY_NAME) &&
	       load64(next + ENTRY_NAME) == load64(entry + ENTRY_NAME) + NAME_BYTES &&
	       text && next_text > text && next_text - text <= ENTRY_TEXT_MOST;
}

/* Return the bytes of an element of the array that has one at @address; 0: it cannot be proven. */
static size_t array_stride(const struct process_memory *memory, uint64_t address)
{
	char around[2 * ENTRY_MOST + ENTRY_LEAST];
	const char *entry = around + ENTRY_MOST;

	if (!bytes_read(memory, address - ENTRY_MOST, around, sizeof(around)))
		return 0;
	for (size_t stride = ENTRY_LEAST; stride <= ENTRY_MOST; stride += 8)
		if (entry_follows(entry, entry + stride) || entry_follows(entry - stride, entry))
			return stride;
	return 0;
}

/*
 * Find the first and the last element around the one at @address: read @step elements at a time,
 * upwards or downwards, while each follows the other. Return the number of elements found.
 */
static size_t array_extent(const struct process_memory *memory, uint64_t address, size_t stride,
			   bool down)
{
	char here[ENTRY_LEAST], next[ENTRY_LEAST];
	size_t n = 0;

	if (!bytes_read(memory, address, here, sizeof(here)))
		return 0;
	while (n < ENTRIES_MOST) {
		address = down ? address - stride : address + stride;
		if (!bytes_read(memory, address, next, sizeof(next)) ||
		    !(down ? entry_follows(next, here) : entry_follows(here, next)))
			break;
		memcpy(here, next, sizeof(here));
		n++;
	}
	return n;
}

/* Read the array that has an element at @address. Return 0 or -errno. */
static int array_open(struct postgres_server *server, uint64_t address)
{
	size_t stride = array_stride(&server->memory, address), below, count;

	if (!stride)
		return -EAGAIN;
	below = array_extent(&server->memory, address, stride, true);
	count = below + 1 + array_extent(&server->memory, address, stride, false);
	if (count > ENTRIES_MOST || count * stride > ARRAY_MOST)
		return -EAGAIN;
	server->array = address - below * stride;
	server->stride = stride;
	server->count = count;
	server->entries = malloc(count * stride);
	server->session = calloc(count, sizeof(*server->session));
	if (server->entries && server->session)
		return 0;
	free(server->entries);
	free(server->session);
	server->entries = NULL;
	server->session = NULL;
	return -ENOMEM;
}

/*
 * Return the process @pid of the server's PID namespace, a child of the main process, as this
 * process numbers it; 0: none.
 */
static uint32_t child_of(const struct sampling *s, uint32_t pid, struct process *child)
{
	bool (*is_program)(const char *name) = s->ps->locks.is_program;
	const struct process *main = s->query->process;
	char path[64], list[PIDS_READ];
	const char *at = list;
	ssize_t n;

	if (main->ns_pid == main->pid) {
		bool is = !process_read(pid, is_program, child) &&
			  child->ppid == main->pid &&
			  process_file_same(&child->file, &main->file);
		return is ? pid : 0;
	}
	snprintf(path, sizeof(path), "task/%u/children", main->pid);
	n = process_read_file(main->pid, path, list, sizeof(list) - 1);
	list[n > 0 ? n : 0] = '\0';
	while (*at) {
		char *end;
		uint32_t one = (uint32_t)strtoull(at, &end, 10);

		if (end == at)
			break;
		at = end + (*end == ' ');
		if (!process_read(one, is_program, child) && child->ns_pid == pid &&
		    child->ppid == main->pid && process_file_same(&child->file, &main->file))
			return one;
	}
	return 0;
}

/* Find the array by a child of the main process. Return 0 or -errno. */
static int array_find(const struct sampling *s)
{
	const struct process *main = s->query->process;
	char path[64], list[PIDS_READ], *at = list, *end;
	struct process_memory memory;
	int err = -EAGAIN;
	ssize_t n;

	snprintf(path, sizeof(path), "task/%u/children", main->pid);
	n = process_read_file(main->pid, path, list, sizeof(list) - 1);
	list[n > 0 ? n : 0] = '\0';
	while (err == -EAGAIN && *at) {
		uint32_t pid = (uint32_t)strtoull(at, &end, 10);
		uint64_t address;

		if (end == at)
			break;
		at = end + (*end == ' ');
		if (process_memory_open(pid, &memory))
			continue;
		memory.slide = s->server->memory.slide;
		if (!process_memory_variable(&memory, s->ps->entry, &address, sizeof(address)) &&
		    address > ENTRY_MOST)
			err = array_open(s->server, address);
		process_memory_close(&memory);
	}
	return err;
}

static int server_open(const struct sampling *s)
{
	struct postgres_server *server = s->server;
	int err;

	if (server->session)
		return 0;
	err = process_memory_open_program(s->query->process, s->query->lowest, &server->memory);
	if (err)
		return err;
	err = array_find(s);
	if (err)
		process_memory_close(&server->memory);
	return err;
}

/* Read element @i again until it does not change meanwhile. Return success. */
static bool entry_read(const struct postgres_server *server, size_t i)
{
	char *entry = server->entries + i * server->stride;
	uint64_t address = server->array + i * server->stride;
	uint32_t again;

	for (int tries = 0; tries < ENTRY_TRIES; tries++) {
		if (!(load32(entry) & 1) &&
		    bytes_read(&server->memory, address, &again, sizeof(again)) &&
		    again == load32(entry))
			return true;
		if (!bytes_read(&server->memory, address, entry, server->stride))
			return false;
	}
	return false;
}

/* Learn who the session of element @i is, if it is a client's. */
static void session_open(const struct sampling *s, size_t i)
{
	struct entry_session *session = &s->server->session[i];
	uint64_t address = s->server->array + i * s->server->stride, entry = 0;
	struct process_memory memory;
	struct process child;
	uint32_t pid = child_of(s, session->pid, &child);

	session->ignored = true;
	if (!pid || !s->query->wants(s->query->arg, pid) ||
	    process_memory_open(pid, &memory))
		return;
	memory.slide = s->server->memory.slide;
	process_memory_variable(&memory, s->ps->entry, &entry, sizeof(entry));
	if (entry == address && postgres_backend_is_session(s->ps, &memory)) {
		session->who = calloc(1, sizeof(*session->who));
		session->ignored = !session->who;
	}
	if (!session->ignored) {
		session->who->pid = session->who->tid = pid;
		postgres_backend_who(s->ps, &memory, s->query->engine, session->who);
	}
	process_memory_close(&memory);
}

static void session_close(const struct sample_query *query, struct entry_session *session)
{
	query->gone(query->arg, &session->sampled);
	free(session->who);
	*session = (struct entry_session){ .pid = 0 };
}

/*
 * Read the text of element @i: that in the element, or the whole one if it was cut. Return whether
 * it is that of the statement in @sample.
 */
static bool session_text(const struct sampling *s, size_t i, struct sample *sample)
{
	const struct postgres_server *server = s->server;
	const char *entry = server->entries + i * server->stride;
	uint64_t address = server->array + i * server->stride, query;
	struct process_memory memory;
	uint32_t again;
	ssize_t n = process_memory_read(&server->memory, load64(entry + ENTRY_TEXT),
					s->query->text, s->query->text_bytes);

	sample->len = n > 0 ? strnlen(s->query->text, (size_t)n) : 0;
	sample->cut = n > 0 && sample->len == (size_t)n;
	if (n > 0 && sample->len < (size_t)n &&
	    postgres_entry_cuts(&server->memory, s->ps->locks.entry_size, sample->len)) {
		sample->cut = true;
		if (!process_memory_open(sample->who->pid, &memory)) {
			memory.slide = server->memory.slide;
			n = process_memory_variable(&memory, s->ps->query, &query,
						    sizeof(query)) || !query ? 0 :
			    process_memory_read(&memory, query, s->query->text,
						s->query->text_bytes);
			if (n > 0) {
				sample->len = strnlen(s->query->text, (size_t)n);
				sample->cut = sample->len == (size_t)n;
			}
			process_memory_close(&memory);
		}
	}
	sample->text = sample->len ? s->query->text : NULL;
	return bytes_read(&server->memory, address, &again, sizeof(again)) &&
	       again == load32(entry);
}

/* Tell the sampler of element @i, which has changed. */
static void session_changed(const struct sampling *s, size_t i)
{
	struct postgres_server *server = s->server;
	struct entry_session *session = &server->session[i];
	const char *entry = server->entries + i * server->stride;
	struct sample sample = { .who = session->who };
	enum postgres_state state;

	for (int tries = 0; tries < ENTRY_TRIES; tries++) {
		if (!entry_read(server, i))
			return;
		state = postgres_entry_state(load32(entry + ENTRY_STATE),
					     s->ps->locks.has_starting);
		sample.active = state == POSTGRES_RUNNING || state == POSTGRES_FASTPATH;
		sample.key = load64(entry + ENTRY_STATEMENT);
		sample.begin_ns = postgres_entry_time(sample.key);
		if (!sample.active)
			sample.end_ns = postgres_entry_time(load64(entry + ENTRY_STATE_AT));
		if (server->stride >= ENTRY_QUERY_ID + 8)
			sample.query_id = load64(entry + ENTRY_QUERY_ID);
		if (!sample.active || session_text(s, i, &sample))
			break;
		sample.text = NULL;
	}
	bytes_read(&server->memory, load64(entry + ENTRY_NAME), session->who->application,
		   sizeof(session->who->application));
	session->who->application[sizeof(session->who->application) - 1] = '\0';
	session->changes = load32(entry);
	if (state != POSTGRES_UNDEFINED && state != POSTGRES_DISABLED)
		s->query->changed(s->query->arg, &session->sampled, &sample);
}

/* Look at element @i as it was read. */
static void session_sample(const struct sampling *s, size_t i)
{
	struct entry_session *session = &s->server->session[i];
	const char *entry = s->server->entries + i * s->server->stride;
	uint32_t pid = load32(entry + ENTRY_PID);

	if (pid != session->pid && session->pid)
		session_close(s->query, session);
	if (!pid)
		return;
	if (!session->pid) {
		session->pid = pid;
		session_open(s, i);
	}
	if (session->ignored)
		return;
	if (postgres_entry_state(load32(entry + ENTRY_STATE), s->ps->locks.has_starting) ==
	    POSTGRES_DISABLED)
		++*s->query->unsampled;
	if (load32(entry) != session->changes)
		session_changed(s, i);
}

int postgres_sample(void *state, void *server, const struct sample_query *query)
{
	struct sampling s = { state, server, query };
	size_t size;
	ssize_t n;
	int err;

	if (!s.ps->entry)
		return -ENOTSUP;
	err = server_open(&s);
	if (err)
		return err;
	size = s.server->count * s.server->stride;
	n = process_memory_read(&s.server->memory, s.server->array, s.server->entries, size);
	if (n != (ssize_t)size)
		return -ESRCH;
	for (size_t i = 0; i < s.server->count; i++)
		session_sample(&s, i);
	return 0;
}

void postgres_sample_forget(void *state, const struct sample_query *query)
{
	struct postgres_server *server = state;

	if (!server->session)
		return;
	for (size_t i = 0; i < server->count; i++)
		if (server->session[i].pid)
			session_close(query, &server->session[i]);
	free(server->session);
	free(server->entries);
	process_memory_close(&server->memory);
}
