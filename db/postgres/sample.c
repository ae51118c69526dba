// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sessions of PostgreSQL, 10 to 19, from one array in shared memory that all processes of the
 * server have at the same address: MyBEEntry of each points to its element (struct
 * PgBackendStatus; utils/backend_status.h). Of each element, st_appname and st_activity_raw point
 * into arrays of their own, so that they prove where the elements of the first one are.
 */
#include "db/postgres/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/postgres/backend.h"
#include "db/postgres/entry.h"
#include "db/ps/ops.h"
#include "host/clock.h"

#define ENTRY_TRIES	3
#define ARRAY_MOST	(24u << 20)	/* bytes, which are read for each sample */
#define OPENS_MOST	64		/* new sessions in a sample */
#define NAMES_MOST	4		/* those whose names are read from files in a sample .. */
#define NAMES_TRIES	2		/* .. and so often of one: at first it may have none */
#define TEXT_BEGIN	256		/* bytes by which a longer text is recognized */
#define DEADLINE_STEP	64		/* sessions between two looks at the clock */
#define LIST_BYTES	(1u << 20)	/* of the PIDs of a server's children */
#define CHILDREN_SHARE	20		/* times what it takes, until children are searched again */
#define CHILDREN_TRIES	32

/* What a sample works with. */
struct reader {
	struct postgres_ps *ps;
	struct postgres_server *server;
	const struct sample_query *query;
	unsigned int opens;		/* new sessions that are still looked at */
	unsigned int names;		/* those whose names are read from files */
};

/* How the elements of the array follow each other. */
struct array {
	const struct process_memory *memory;
	size_t text;			/* where the address of the text is in one */
	int64_t stride, text_bytes;	/* of an element, and of its text */
};

/* Return whether element @n of the array that has @entry as its first one is where it should be. */
static bool array_has(const struct array *array, uint64_t address, const char *entry, int64_t n)
{
	size_t name = ENTRY_NAME(array->text), text = array->text;
	char at[ENTRY_LEAST];

	address += (uint64_t)(n * array->stride);
	return process_memory_get(array->memory, address, at, sizeof(at)) &&
	       load64(at + name) == load64(entry + name) + (uint64_t)(n * ENTRY_NAME_BYTES) &&
	       load64(at + text) == load64(entry + text) + (uint64_t)(n * array->text_bytes);
}

/*
 * Return how many elements are behind the one at @address, or with @sign -1 before it, at most
 * @most.
 */
static size_t array_extent(const struct array *array, uint64_t address, int64_t sign, size_t most)
{
	char entry[ENTRY_LEAST];
	size_t has = 0, step = 1;

	if (!process_memory_get(array->memory, address, entry, sizeof(entry)))
		return 0;
	/* Steps that double, and then halve. */
	while (has + step <= most &&
	       array_has(array, address, entry, sign * (int64_t)(has + step))) {
		has += step;
		step *= 2;
	}
	for (; step; step /= 2)
		if (has + step <= most &&
		    array_has(array, address, entry, sign * (int64_t)(has + step)))
			has += step;
	return has;
}

/* Read the array that has an element at @address. Return 0 or -errno. */
static int array_open(const struct reader *s, uint64_t address)
{
	struct postgres_server *server = s->server;
	struct array array = { .memory = &server->memory, .text = s->ps->locks.entry_text };
	size_t taken = *s->query->sessions, most = s->query->most, below, count;

	array.stride = postgres_entry_stride(array.memory, address, array.text, &array.text_bytes);
	if (!array.stride || taken >= most)
		return -EAGAIN;
	below = array_extent(&array, address, -1, most);
	count = below + 1 + array_extent(&array, address, 1, most);
	if (count > most - taken || count * (size_t)array.stride > ARRAY_MOST)
		return -EAGAIN;
	server->array = address - below * (size_t)array.stride;
	server->stride = (size_t)array.stride;
	server->entries = malloc(count * server->stride);
	server->session = calloc(count, sizeof(*server->session));
	if (server->entries && server->session) {
		*s->query->sessions += server->count = count;
		return 0;
	}
	free(server->entries);
	free(server->session);
	server->entries = NULL;
	server->session = NULL;
	return -EAGAIN;
}

/* Return whether process @pid is a child of the main process, with what it is in @child. */
static bool is_child(const struct reader *s, uint32_t pid, struct process *child)
{
	const struct process *main = s->query->process;

	return !process_read(pid, s->ps->locks.is_program, child) && child->ppid == main->pid &&
	       process_file_same(&child->file, &main->file);
}

/* A search for the children of the main process. */
struct search {
	const struct reader *reader;
	struct child_pid *found;	/* of room for ->room; owned */
	size_t n, room;
	size_t known;			/* that of ->server->children that is next */
};

/* Add process @pid, unless it is no child. Those that are known come in the same order. */
static int search_add(void *arg, uint32_t pid)
{
	struct search *search = arg;
	const struct postgres_server *server = search->reader->server;
	struct child_pid one = { pid, 0 }, *more;
	struct process child;
	size_t at = search->known;

	while (at < server->nchildren && server->children[at].pid != pid)
		at++;
	if (at < server->nchildren) {
		one = server->children[at];
		search->known = at + 1;
	} else if (is_child(search->reader, pid, &child)) {
		one.ns_pid = child.ns_pid;
	} else {
		return 0;
	}
	if (search->n == search->room) {
		search->room = 2 * search->room + 64;
		more = realloc(search->found, search->room * sizeof(*more));
		if (!more)
			return 1;
		search->found = more;
	}
	search->found[search->n++] = one;
	return search->n == search->reader->query->most;
}

/* Read the PIDs of the children of @main to @list, of LIST_BYTES. Return whether they are known. */
static bool list_read(uint32_t main, char *list)
{
	char path[64];
	size_t len = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", main, main);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* The kernel returns a page at a time. */
	while ((n = read(fd, list + len, LIST_BYTES - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	list[len] = '\0';
	return !n;
}

/* Search the list that the kernel may have (CONFIG_PROC_CHILDREN). Return whether there is one. */
static bool search_list(struct search *search)
{
	char *list = malloc(LIST_BYTES), *at = list, *end;
	bool known = list && list_read(search->reader->query->process->pid, list);
	uint32_t pid;

	while (known && (pid = (uint32_t)strtoull(at, &end, 10)) && !search_add(search, pid))
		at = end;
	free(list);
	return known;
}

/* Find the children of the main process, if the last time is not too close. */
static void children_find(const struct reader *s)
{
	struct search search = { .reader = s };
	struct postgres_server *server = s->server;
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);

	if (begin_ns < server->children_ns)
		return;
	if (!search_list(&search))
		process_pids(search_add, &search);
	free(server->children);
	server->children = search.found;
	server->nchildren = search.n;
	server->children_ns = begin_ns +
			      CHILDREN_SHARE * (clock_ns(CLOCK_MONOTONIC) - begin_ns);
}

/* Return the process @pid of the server's PID namespace, a child of the main process; 0: none. */
static uint32_t child_of(const struct reader *s, uint32_t pid)
{
	struct postgres_server *server = s->server;
	struct process child;

	if (s->query->process->ns_pid == s->query->process->pid)
		return is_child(s, pid, &child) ? pid : 0;
	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < server->nchildren; i++)
			if (server->children[i].ns_pid == pid &&
			    is_child(s, server->children[i].pid, &child) && child.ns_pid == pid)
				return child.pid;
		if (!again)
			children_find(s);
	}
	return 0;
}

/* Find the array by a child of the main process. Return 0 or -EAGAIN. */
static int array_find(const struct reader *s)
{
	struct postgres_server *server = s->server;
	struct process_memory memory;
	struct process child;
	int err = -EAGAIN;

	children_find(s);
	for (size_t i = 0; err && i < server->nchildren && i < CHILDREN_TRIES; i++) {
		uint64_t address;

		if (!is_child(s, server->children[i].pid, &child) ||
		    process_memory_open(child.pid, &memory))
			continue;
		memory.slide = server->memory.slide;
		postgres_entry_search(&s->ps->locks, &memory, child.ns_pid);
		address = postgres_pointer(&memory, s->ps->locks.entry);
		if (address > ENTRY_MOST)
			err = array_open(s, address);
		process_memory_close(&memory);
	}
	return err;
}

static int server_open(const struct reader *s)
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

static enum postgres_state entry_state(const struct reader *s, const char *entry)
{
	const struct postgres_locks *places = &s->ps->locks;

	return postgres_entry_state(load32(entry + ENTRY_STATE(places->entry_text)),
				    places->has_starting);
}

/* Read element @i again until it does not change meanwhile. Return success. */
static bool entry_read(const struct postgres_server *server, size_t i)
{
	char *entry = server->entries + i * server->stride;
	uint64_t address = server->array + i * server->stride;
	uint32_t again;

	for (int tries = 0; tries < ENTRY_TRIES; tries++) {
		if (!(load32(entry) & 1) &&
		    process_memory_get(&server->memory, address, &again, sizeof(again)) &&
		    again == load32(entry))
			return true;
		if (!process_memory_get(&server->memory, address, entry, server->stride))
			return false;
	}
	return false;
}

/* Learn whose session element @i is. Return false if its process is not known yet. */
static bool session_open(const struct reader *s, size_t i)
{
	struct entry_session *session = &s->server->session[i];
	uint64_t address = s->server->array + i * s->server->stride;
	struct process_memory memory;
	uint32_t pid = child_of(s, session->pid);

	session->ignored = true;
	if (!pid)
		return s->query->process->ns_pid == s->query->process->pid;
	if (!s->query->wants(s->query->arg, pid) || process_memory_open(pid, &memory))
		return true;
	memory.slide = s->server->memory.slide;
	if (postgres_pointer(&memory, s->ps->locks.entry) == address) {
		session->client = postgres_kind_is_client(&s->ps->locks.serves, &memory);
		session->who = calloc(1, sizeof(*session->who));
		session->ignored = !session->who;
		if (session->who)
			session->who->pid = session->who->tid = pid;
	}
	process_memory_close(&memory);
	return true;
}

static void session_close(const struct sample_query *query, struct entry_session *session)
{
	query->gone(query->arg, &session->sampled);
	free(session->who);
	*session = (struct entry_session){ .pid = 0 };
}

/* Read at most ->text_bytes of a text at @address to the query's buffer. */
static void text_read(const struct reader *s, const struct process_memory *memory,
		      uint64_t address, struct sample *sample)
{
	ssize_t n = address ? process_memory_read(memory, address, s->query->text,
						  s->query->text_bytes) : 0;

	sample->len = n > 0 ? strnlen(s->query->text, (size_t)n) : 0;
	sample->cut = n > 0 && sample->len == (size_t)n;
}

/* Read the text from the backend's memory. Return whether it begins as the @len bytes of @begin. */
static bool text_read_whole(const struct reader *s, struct sample *sample, const char *begin,
			    size_t len)
{
	struct process_memory memory;

	if (process_memory_open(sample->who->pid, &memory))
		return false;
	memory.slide = s->server->memory.slide;
	text_read(s, &memory, postgres_pointer(&memory, s->ps->query), sample);
	process_memory_close(&memory);
	return sample->len >= len && !memcmp(s->query->text, begin, len);
}

/*
 * Read the text of element @i: that in the element, or the whole one if it was cut. Return whether
 * it is that of the statement in @sample.
 */
static bool session_text(const struct reader *s, size_t i, struct sample *sample)
{
	const struct postgres_server *server = s->server;
	const char *entry = server->entries + i * server->stride;
	uint64_t address = server->array + i * server->stride;
	uint64_t text = load64(entry + s->ps->locks.entry_text);
	char begin[TEXT_BEGIN];
	uint32_t again;
	size_t len;

	text_read(s, &server->memory, text, sample);
	len = sample->len < sizeof(begin) ? sample->len : sizeof(begin);
	memcpy(begin, s->query->text, len);
	if (len && !sample->cut &&
	    postgres_entry_cuts(&server->memory, s->ps->locks.entry_size, sample->len) &&
	    !text_read_whole(s, sample, begin, len)) {
		text_read(s, &server->memory, text, sample);
		sample->cut = true;
	}
	sample->text = sample->len ? s->query->text : NULL;
	return process_memory_get(&server->memory, address, &again, sizeof(again)) &&
	       again == load32(entry);
}

/* A session may be seen before its names are known. Return whether they are to be read. */
static bool session_is_new(const struct entry_session *session, const char *entry)
{
	return session->client ? !*session->who->user :
	       session->tries < NAMES_TRIES &&
	       (!session->tries || session->database != load32(entry + ENTRY_DATABASE) ||
		session->user != load32(entry + ENTRY_USER));
}

static void session_who(struct reader *s, struct entry_session *session, const char *entry)
{
	struct who *who = session->who;
	struct process_memory memory;

	if ((!session->client && !s->names) || process_memory_open(who->pid, &memory))
		return;
	memory.slide = s->server->memory.slide;
	if (session->client) {
		postgres_backend_who(s->ps, &memory, s->query->engine, who);
	} else {
		s->names--;
		session->tries++;
		session->database = load32(entry + ENTRY_DATABASE);
		session->user = load32(entry + ENTRY_USER);
		/* The time of a parallel worker is its leader's. */
		session->ignored = postgres_backend_internal(s->ps, &memory, entry, who);
	}
	process_memory_close(&memory);
}

/* Set the text of a statement that has none, in a process that serves no client. */
static void session_no_text(const struct reader *s, const struct who *who, struct sample *sample)
{
	struct process_memory memory;

	if (process_memory_open(who->pid, &memory))
		return;
	memory.slide = s->server->memory.slide;
	sample->text = postgres_backend_text(s->ps, &memory);
	sample->len = sample->text ? strnlen(sample->text, s->query->text_bytes) : 0;
	sample->cut = sample->text && sample->text[sample->len];
	process_memory_close(&memory);
}

/* Tell the sampler of element @i, which has changed. */
static void session_changed(struct reader *s, size_t i)
{
	struct postgres_server *server = s->server;
	struct entry_session *session = &server->session[i];
	const char *entry = server->entries + i * server->stride;
	struct sample sample = { .who = session->who };
	char *application = session->who->application;
	enum postgres_state state;

	for (int tries = 0; tries < ENTRY_TRIES; tries++) {
		if (!entry_read(server, i))
			return;
		state = entry_state(s, entry);
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
	if (sample.active && !sample.text && !session->client)
		session_no_text(s, session->who, &sample);
	if (session_is_new(session, entry))
		session_who(s, session, entry);
	if (session->ignored)
		return;
	process_memory_get(&server->memory, load64(entry + ENTRY_NAME(s->ps->locks.entry_text)),
		   application, sizeof(session->who->application));
	application[sizeof(session->who->application) - 1] = '\0';
	session->changes = load32(entry);
	if (state != POSTGRES_UNDEFINED && state != POSTGRES_DISABLED)
		s->query->changed(s->query->arg, &session->sampled, &sample);
}

/* Look at element @i as it was read. */
static void session_sample(struct reader *s, size_t i)
{
	struct entry_session *session = &s->server->session[i];
	const char *entry = s->server->entries + i * s->server->stride;
	uint32_t pid = load32(entry + ENTRY_PID);

	if (pid != session->pid && session->pid)
		session_close(s->query, session);
	if (!pid)
		return;
	if (!session->pid) {
		if (!s->opens)
			return;
		s->opens--;
		session->pid = pid;
		if (!session_open(s, i))
			session->pid = 0;
	}
	if (session->ignored || !session->pid)
		return;
	if (entry_state(s, entry) == POSTGRES_DISABLED)
		++*s->query->unsampled;
	if (load32(entry) != session->changes)
		session_changed(s, i);
}

int postgres_sample(void *state, void *server, const struct sample_query *query)
{
	struct reader s = { state, server, query, OPENS_MOST, NAMES_MOST };
	size_t size, done;
	ssize_t n;
	int err;

	if (!postgres_entry_known(&s.ps->locks))
		return -ENOTSUP;
	err = server_open(&s);
	if (err)
		return err;
	size = s.server->count * s.server->stride;
	n = process_memory_read(&s.server->memory, s.server->array, s.server->entries, size);
	if (n != (ssize_t)size)
		return -ESRCH;
	for (done = 0; done < s.server->count; done++) {
		if (done % DEADLINE_STEP == DEADLINE_STEP - 1 &&
		    clock_ns(CLOCK_MONOTONIC) >= query->deadline_ns)
			break;
		session_sample(&s, (s.server->next + done) % s.server->count);
	}
	s.server->next = (s.server->next + done) % s.server->count;
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
	*query->sessions -= server->count;
	free(server->session);
	free(server->entries);
	free(server->children);
	process_memory_close(&server->memory);
}
