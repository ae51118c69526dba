// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/locks.h"

#include <errno.h>

#include "db/mysql/metadata_lock.h"
#include "db/mysql/options.h"
#include "db/mysql/row_lock.h"
#include "db/mysql/table_lock.h"
#include "host/elf_map.h"

#define VTABLE_HEAD	16		/* of a vtable, before the functions (Itanium C++ ABI) */
#define READS_MAX	(1u << 17)	/* of memory, for one wait */

void mysql_locks_find(const struct elf *elf, struct mysql_locks *places)
{
	struct elf_symbol symbol;

	*places = (struct mysql_locks){ .options = mysql_options_find(elf),
					 .own_context = -1 };
	places->lowest = elf_map_lowest_vaddr(elf);
	mysql_kinds_find(elf, &places->kinds);
	if (!elf_symbol_find(elf, "_ZTV3THD", &symbol))
		places->sessions = symbol.value + VTABLE_HEAD;
	places->trx_behind = elf_symbol_find(elf, "thd_wait_begin", &symbol);
	places->fast_path = !elf_symbol_find(
		elf, "_ZN11MDL_context27materialize_fast_path_locksEv", &symbol);
	if (!elf_symbol_find(elf, "_ZN18Global_THD_manager11thd_managerE", &symbol))
		places->manager = symbol.value;
	if (!elf_symbol_find(elf, "_ZN18Global_THD_manager23atomic_global_thd_countE", &symbol))
		places->session_count = symbol.value;
	if (!elf_symbol_find(elf, "_ZN7MDL_key30m_namespace_to_wait_state_nameE", &symbol)) {
		places->namespaces = symbol.value;
		places->namespace_words = (unsigned int)(symbol.size / 8);
	}
	if (places->namespace_words > MYSQL_NAMESPACE_WORDS)
		places->namespace_words = MYSQL_NAMESPACE_WORDS;
}

static void learn_context(void *arg, uint64_t session)
{
	const struct lock_reader *r = arg;

	if (r->places->own_context < 0)
		object_context(&r->memory, &r->backend->object, session, &r->places->own_context);
}

int mysql_locks_read(struct mysql_locks *places, const struct lock_query *query,
		     struct lock_info *info)
{
	const struct event_lock *event = query->event;
	unsigned int reads = READS_MAX;
	struct process process;
	struct lock_reader r = { .places = places, .backend = query->places, .reads = &reads,
				 .size = query->text_bytes,
				 .owner = { event->pid, &process.file, places->is_program } };
	uint64_t session = event->address, owner;
	int err = process_read(event->pid, places->is_program, &process);

	*info = (struct lock_info){ .event = *event };
	info->self.pid = event->pid;
	if (!err)
		err = process_memory_open_program(&process, places->lowest, &r.memory);
	if (err)
		return err;
	r.session_class = places->sessions + r.memory.slide;
	if (event->kind == LOCK_WAITS_METADATA && event->relation) {
		owner = lock_reader_owner(&r, event->relation);
		session = session ? session : owner;
		err = metadata_lock_read(&r, event->relation, owner, info);
	} else if (event->kind == LOCK_WAITS_TABLE && event->relation) {
		err = table_lock_read(&r, event->relation, session, info);
		session = err ? 0 : session;
	} else {
		err = row_lock_read(&r, session, query, info);
	}
	info->session = session;
	lock_reader_backend(&r, session, &info->self);
	if (query->identify && session && places->own_context < 0 &&
	    query->places->object.context >= 0)
		lock_reader_sessions(&r, learn_context, &r);
	if (query->identify && session)
		mysql_who_read(&places->kinds, &r.memory, &query->places->object, session,
			       &places->own_context, &info->who);
	process_memory_close(&r.memory);
	return err;
}

static int session_metadata(struct lock_reader *r, uint64_t session, struct lock_info *info)
{
	struct mysql_locks *places = r->places;

	*info = (struct lock_info){ .event.kind = LOCK_WAITS_METADATA };
	if (!places->context_at)
		places->context_at = metadata_lock_learn(r, session);
	return !places->context_at ? -ENOENT :
	       metadata_lock_read(r, session + places->context_at, session, info);
}

int mysql_locks_session(struct lock_reader *r, uint64_t session, bool learn,
			struct lock_info *info)
{
	const struct lock_query query = { .again = learn };

	/* To learn takes thousands of reads, in vain if the session waits for no row. */
	if (learn && !session_metadata(r, session, info))
		return 0;
	*info = (struct lock_info){ .event.kind = LOCK_WAITS_FIRST };
	if (!row_lock_read(r, session, &query, info)) {
		if (*info->object && !*info->index)
			info->event.kind = LOCK_WAITS_TABLE;
		return 0;
	}
	return learn ? -ENOENT : session_metadata(r, session, info);
}
