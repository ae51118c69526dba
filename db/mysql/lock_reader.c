// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/lock_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/mysql/options.h"

#define MANAGER_WORDS	640		/* of a Global_THD_manager that are searched */
#define SESSIONS_MAX	8192		/* of one array */
#define CONTEXT_BEHIND	8192		/* largest offset of the MDL_context in a THD */

bool lock_reader_bytes(const struct lock_reader *r, uint64_t address, void *buf, size_t size)
{
	if (address < 4096 || address & 7 || !*r->reads)
		return false;
	--*r->reads;
	return process_memory_read(&r->memory, address, buf, size) == (ssize_t)size;
}

bool lock_reader_string(const struct lock_reader *r, uint64_t address, char *text, size_t size)
{
	ssize_t n;

	if (address < 4096 || !*r->reads)
		return false;
	--*r->reads;
	n = process_memory_read(&r->memory, address, text, size);
	return n > 0 && *text && memchr(text, '\0', (size_t)n);
}

bool lock_reader_is_session(const struct lock_reader *r, uint64_t address)
{
	uint64_t class;

	return r->places->sessions && lock_reader_bytes(r, address, &class, sizeof(class)) &&
	       class == r->session_class;
}

bool lock_reader_knows(const struct lock_reader *r, uint64_t lock)
{
	for (size_t i = 0; i < r->nknown; i++)
		if (r->known[i] == lock)
			return true;
	return false;
}

uint64_t lock_reader_owner(const struct lock_reader *r, uint64_t context)
{
	uint64_t owner = context - r->places->context_at;

	if (owner != context && lock_reader_is_session(r, owner))
		return owner;
	for (uint64_t at = context; at > context - CONTEXT_BEHIND; at -= 8)
		if (lock_reader_is_session(r, at))
			return at;
	return 0;
}

bool lock_reader_sessions(const struct lock_reader *r, void (*each)(void *arg, uint64_t session),
			  void *arg)
{
	uint64_t words[MANAGER_WORDS], manager, session;
	unsigned int found = 0;
	uint32_t count;

	if (!r->places->manager || !r->places->session_count ||
	    process_memory_variable(&r->memory, r->places->manager, &manager, 8) ||
	    !lock_reader_bytes(r, manager, words, sizeof(words)))
		return false;
	for (size_t i = 0; i < MANAGER_WORDS; i++) {
		if (lock_reader_is_session(r, words[i])) {
			each(arg, words[i]);
			found++;
			continue;
		}
		/* Of a partition with many sessions it points to an array. */
		for (unsigned int j = 0; j < SESSIONS_MAX; j++) {
			if (!lock_reader_bytes(r, words[i] + j * 8, &session, 8) ||
			    !lock_reader_is_session(r, session))
				break;
			each(arg, session);
			found++;
		}
	}
	return !process_memory_variable(&r->memory, r->places->session_count, &count, 4) &&
	       found >= count;
}

/*
 * Find out whether a session that runs no statement is idle in a transaction. The holder of a row
 * is: @in_trx. Without autocommit, a metadata lock may be held by LOCK TABLES or GET_LOCK(), too.
 */
static void reader_idle(const struct lock_reader *r, uint64_t session, bool in_trx,
			struct lock_backend *backend)
{
	uint64_t options;

	if (backend->running || in_trx) {
		backend->idle = !backend->running;
		backend->idle_valid = true;
		return;
	}
	if (r->places->options < 0 ||
	    process_memory_read(&r->memory, session + (uint64_t)r->places->options, &options,
				sizeof(options)) != sizeof(options))
		return;
	backend->idle = options & OPTION_BEGIN;
	backend->idle_valid = backend->idle || !(options & OPTION_NOT_AUTOCOMMIT);
}

void lock_reader_backend(const struct lock_reader *r, uint64_t session,
			 struct lock_backend *backend)
{
	size_t len = 0;
	int n;

	backend->pid = r->owner.pid;
	if (!session)
		return;
	object_context(&r->memory, &r->backend->object, session, &r->places->own_context);
	backend->connection = object_connection(&r->memory, &r->backend->object, session);
	mysql_kind_read(&r->places->kinds, &r->memory, session, backend->kind);
	backend->text = malloc(r->size);
	n = backend->text ? object_query(&r->owner, session, &r->backend->object, backend->text,
					 r->size, &len) : -ENOMEM;
	backend->valid = r->backend->object.text >= 0;
	backend->running = n > 0;
	if (n > 0) {
		lock_backend_text(backend, (size_t)n);
		backend->cut = len > (size_t)n;
		return;
	}
	free(backend->text);
	backend->text = NULL;
}

void lock_reader_keep(const struct lock_reader *r, uint64_t session, bool queued, bool in_trx,
			struct lock_info *info)
{
	struct lock_backend backend = { .queued = queued };

	/* Do not read what would only be counted. */
	if (!lock_info_has_room(info, queued)) {
		info->more++;
		return;
	}
	lock_reader_backend(r, session, &backend);
	if (session && backend.valid)
		reader_idle(r, session, in_trx, &backend);
	for (unsigned int i = 0; i < info->nholders; i++) {
		if (info->holders[i].connection != backend.connection)
			continue;
		info->holders[i].queued &= queued;
		free(backend.text);
		return;
	}
	lock_info_add(info, &backend);
}
