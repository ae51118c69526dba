// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sessions of MariaDB from 10.5 on: the THDs in the list server_threads (sql/sql_class.h). Its
 * elements begin with struct ilink (sql/sql_list.h): the vtable, a pointer to the pointer to this
 * element, and one to the next element. Offsets in a THD are decoded from exported accessors.
 */
#include "db/mysql/ps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/engines.h"
#include "db/mysql/identity.h"
#include "db/mysql/options.h"
#include "db/mysql/probes.h"
#include "host/clock.h"
#include "host/process_memory.h"
#include "usdt/accessor.h"

#define VTABLE_HEAD	16		/* of a vtable, before the functions (Itanium C++ ABI) */
#define LIST_WORDS	8		/* of server_threads that may point to its first element */
#define LINK_PREVIOUS	1
#define LINK_NEXT	2
#define LINK_WORDS	3
#define WALK_TRIES	5		/* the list can change while it is read */
#define WALK_MAX	(2u * PS_SESSIONS)	/* elements in all tries */

struct mysql_ps {
	uint64_t class;			/* first word of a THD, as linked */
	uint64_t threads;		/* variable: the list, as linked */
	int64_t connection;		/* offsets in a THD */
	int64_t start, options;		/* .. or -1: unknown */
	struct mysql_identity identity;
};

struct reader {
	const struct mysql_ps *ps;
	const struct ps_query *query;
	struct process_memory memory;
	struct backend_owner owner;
	uint64_t class;
	unsigned int *elements;		/* of the list that may still be read */
};

/* Return the offset that @pattern extracts from function @name, or -1. */
static int64_t find_match(const struct elf *elf, const char *name, const char *pattern)
{
	int64_t offset;

	return accessor_match(elf, name, pattern, &offset) ? -1 : offset;
}

static int mysql_find(void *state, const struct elf *elf)
{
	struct mysql_ps *ps = state;
	struct accessor connection;

	ps->class = elf_symbol_value(elf, "_ZTV3THD");
	ps->threads = elf_symbol_value(elf, "server_threads");
	ps->options = mysql_options_find(elf);
	/* imul $1000000,start_time(%rdi),%rax */
	ps->start = find_match(elf, "thd_start_utime", "48 69 87 @@@@@@@@ 40 42 0f 00");
	mysql_identity_find(elf, &ps->identity);
	if (accessor_read(elf, "thd_get_thread_id", &connection) ||
	    connection.kind != ACCESSOR_VALUE)
		return -ENOENT;
	ps->connection = connection.offset;
	return ps->class && ps->threads && ps->identity.user.at >= 0 ? 0 : -ENOENT;
}

static bool reader_bytes(const struct reader *r, uint64_t address, void *buf, size_t size)
{
	return address >= 4096 && !(address & 7) &&
	       process_memory_read(&r->memory, address, buf, size) == (ssize_t)size;
}

static void reader_statement(const struct reader *r, uint64_t thd, struct ps_session *session)
{
	size_t size = r->query->text_bytes, len = 0;
	uint64_t seconds[2];
	int n;

	session->text = malloc(size);
	n = session->text ? backend_query(&r->owner, thd, r->query->places, session->text, size,
					  &len) : -ENOMEM;
	if (n <= 0) {
		free(session->text);
		session->text = NULL;
		return;
	}
	session->state = PS_ACTIVE;
	session->len = (size_t)n;
	session->cut = len > (size_t)n;
	/* THD::start_time and start_time_sec_part */
	if (r->ps->start >= 0 && reader_bytes(r, thd + (uint64_t)r->ps->start, seconds,
					      sizeof(seconds)) && seconds[0] < UINT32_MAX)
		session->statement_ns = seconds[0] * 1000000000u + seconds[1] % 1000000u * 1000u;
}

/* Return the state of a session that runs no statement. */
static enum ps_state reader_idle(const struct reader *r, uint64_t thd)
{
	uint64_t options;

	if (r->ps->options < 0 ||
	    !reader_bytes(r, thd + (uint64_t)r->ps->options, &options, sizeof(options)))
		return PS_UNKNOWN;
	if (options & OPTION_BEGIN)
		return PS_IN_TRANSACTION;
	/* Without autocommit a transaction may have begun by itself. */
	return options & OPTION_NOT_AUTOCOMMIT ? PS_UNKNOWN : PS_IDLE;
}

/* Add the session of the THD at @thd, unless it has no user or is gone. Return as ->add(). */
static bool reader_session(const struct reader *r, uint64_t thd)
{
	struct ps_session session = {
		.engine = &engine_mysql, .pid = r->query->process->pid,
		.server = r->query->process->pid,
	};
	uint64_t class;

	mysql_identity_read(&r->memory, &r->ps->identity, thd, &session.identity);
	if (!*session.identity.user)
		return true;
	if (!reader_bytes(r, thd + (uint64_t)r->ps->connection, &session.connection,
			  sizeof(session.connection)))
		session.connection = 0;
	reader_statement(r, thd, &session);
	if (session.state != PS_ACTIVE)
		session.state = reader_idle(r, thd);
	if (reader_bytes(r, thd, &class, sizeof(class)) && class == r->class)
		return r->query->add(r->query->arg, &session);
	free(session.text);
	return true;
}

/*
 * Collect the THDs of the list that begins with @link, the address of its first pointer, to @thds.
 * Return their number, or 0: the list has changed meanwhile.
 */
static size_t reader_walk(const struct reader *r, uint64_t link, uint64_t *thds)
{
	uint64_t words[LINK_WORDS] = { 0 }, at;
	size_t n = 0;

	while (*r->elements && --*r->elements && reader_bytes(r, link, &at, sizeof(at)) &&
	       reader_bytes(r, at, words, sizeof(words)) && words[LINK_PREVIOUS] == link) {
		/* The last element is in the list itself, and not a THD. */
		if (words[0] != r->class || n == PS_SESSIONS)
			return n;
		thds[n++] = at;
		link = at + LINK_NEXT * 8;
	}
	return 0;
}

static int mysql_read(void *state, const struct ps_query *query)
{
	const struct mysql_ps *ps = state;
	unsigned int elements = WALK_MAX;
	struct reader r = { .ps = ps, .query = query, .elements = &elements,
			    .owner = { query->process->pid, &query->process->file } };
	uint64_t *thds = malloc(PS_SESSIONS * sizeof(*thds)), list;
	size_t n = 0;
	int err = thds ? process_memory_open_program(query->process, query->lowest, &r.memory) :
			 -ENOMEM;

	if (err)
		goto cleanup;
	r.class = ps->class + VTABLE_HEAD + r.memory.slide;
	list = ps->threads + r.memory.slide;
	for (int i = 0; !n && i < WALK_TRIES; i++)
		for (uint64_t word = 0; !n && word < LIST_WORDS; word++)
			n = reader_walk(&r, list + word * 8, thds);
	for (size_t i = 0; i < n && clock_ns(CLOCK_MONOTONIC) < query->deadline_ns &&
			   reader_session(&r, thds[i]); i++)
		continue;
	process_memory_close(&r.memory);
cleanup:
	free(thds);
	return err;
}

const struct ps_ops mysql_ps_ops = {
	.state_bytes = sizeof(struct mysql_ps), .find = mysql_find, .read = mysql_read,
};
