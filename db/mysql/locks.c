// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/elf_map.h"
#include "host/process_memory.h"
#include "db/engines.h"
#include "usdt/accessor.h"

#define VTABLE_HEAD	16		/* before the functions: an offset and the type */
#define SESSION_WORDS	5120		/* of a THD that are looked through */
#define TRX_WORDS	320		/* of a trx_t, likewise */
#define TRX_FIRST	2		/* word; before it are its neighbours in a list */
#define CONTEXT_BYTES	640		/* of an MDL_context, likewise */
#define CONTEXT_BEHIND	8192		/* so far behind the THD's start it is at most */
#define TICKET_WORDS	10		/* of an MDL_ticket, likewise */
#define TICKET_LINK	8		/* lists lead to its start, or to this place in it */
#define LOCK_WORDS	160		/* of an MDL_lock, likewise */
#define TICKETS_MAX	64		/* of one lock */
#define FRUITLESS_MAX	64
#define READS_MAX	(1u << 17)	/* of memory, for one wait */
#define KEY_BYTES	392		/* of an MDL_key */
#define NAMESPACE_MAX	31

void mysql_locks_find(const struct elf *elf, struct mysql_locks *places)
{
	struct accessor accessor;
	struct elf_symbol symbol;

	*places = (struct mysql_locks){ .connection = -1 };
	places->lowest = elf_map_lowest_vaddr(elf);
	if (!elf_symbol_find(elf, "_ZTV3THD", &symbol))
		places->sessions = symbol.value + VTABLE_HEAD;
	/* Transactions of MySQL have others in lists, too. */
	places->has_waited = !elf_symbol_find(elf, "thd_wait_begin", &symbol);
	if (!accessor_read(elf, "thd_get_thread_id", &accessor) &&
	    accessor.kind == ACCESSOR_VALUE) {
		places->connection = accessor.offset;
		places->connection_size = accessor.size;
	}
}

struct look {
	struct mysql_locks *places;
	const struct backend_places *backend;
	struct process_memory memory;
	uint32_t pid;
	size_t size;			/* of a text */
	uint64_t session_sign;		/* the first word of a THD */
	unsigned int *reads;		/* that are left: who made what is read wants no end to it */
	/* Of the ticket that waits, and of all: where it has its context and its lock. */
	size_t context_at, lock_at, waits_at;
};

static bool look_bytes(const struct look *look, uint64_t address, void *buf, size_t size)
{
	if (address < 4096 || address & 7 || !*look->reads)
		return false;
	--*look->reads;
	return process_memory_read(&look->memory, address, buf, size) == (ssize_t)size;
}

static bool look_is_session(const struct look *look, uint64_t address)
{
	uint64_t sign;

	return look->places->sessions && look_bytes(look, address, &sign, sizeof(sign)) &&
	       sign == look->session_sign;
}

/* The THD that MDL_context @context is a member of; 0: not known. */
static uint64_t look_owner(const struct look *look, uint64_t context)
{
	for (uint64_t at = context; at > context - CONTEXT_BEHIND; at -= 8)
		if (look_is_session(look, at))
			return at;
	return 0;
}

/* Who the session at @session is, and what it does. */
static void look_party(const struct look *look, uint64_t session, struct lock_backend *party)
{
	size_t len = 0;
	int n;

	party->pid = look->pid;
	if (!session)
		return;
	if (look->places->connection >= 0)
		process_memory_read(&look->memory, session + (uint64_t)look->places->connection,
				    &party->connection,
				    look->places->connection_size < 8 ? 4 : 8);
	party->text = malloc(look->size);
	n = party->text ? backend_query(look->pid, session, look->backend, party->text, look->size,
					&len) : -ENOMEM;
	party->known = look->backend->query >= 0;
	party->running = n > 0;
	if (n > 0) {
		lock_backend_text(party, (size_t)n);
		party->cut = len > (size_t)n;
		return;
	}
	free(party->text);
	party->text = NULL;
}

/* Keeps the session as one that holds the lock, once. */
static void look_keep(const struct look *look, uint64_t session, bool queued,
		      struct lock_info *known)
{
	struct lock_backend party = { .queued = queued };

	look_party(look, session, &party);
	for (unsigned int i = 0; i < known->nholders; i++) {
		if (known->holders[i].connection != party.connection)
			continue;
		known->holders[i].queued &= queued;
		free(party.text);
		return;
	}
	lock_info_add(known, &party);
}

/* --- metadata locks */

/*
 * MDL_key: the length of all, that of the database's name; with MySQL that of the name, with MariaDB
 * from 10.6 on a hash; then a byte for the kind and both names, each with a NUL. Whether that is
 * so with a head of @head bytes.
 */
static bool key_names(const char key[KEY_BYTES], size_t head, struct lock_info *known)
{
	const char *db = key + head + 1, *name;
	uint16_t lengths[3];
	size_t len;

	memcpy(lengths, key, sizeof(lengths));
	if ((uint8_t)key[head] > NAMESPACE_MAX || lengths[0] < 3 || lengths[1] + 3 > lengths[0] ||
	    lengths[0] > KEY_BYTES - head || strnlen(db, lengths[0] - 1u) != lengths[1])
		return false;
	name = db + lengths[1] + 1;
	len = strnlen(name, lengths[0] - 2u - lengths[1]);
	if (lengths[1] + len + 3 != lengths[0] || (head == 6 && lengths[2] != len))
		return false;
	snprintf(known->object, sizeof(known->object), "%s%s%s", db, *db && len ? "." : "", name);
	return true;
}

static bool look_key(const struct look *look, uint64_t lock, struct lock_info *known)
{
	char key[KEY_BYTES];

	return look_bytes(look, lock, key, sizeof(key)) &&
	       (key_names(key, 8, known) || key_names(key, 6, known) || key_names(key, 4, known));
}

/* Whether at @ticket is one of @context that is not in its lists; its lock to *@lock. */
static bool look_ticket(struct look *look, uint64_t ticket, uint64_t context, uint64_t *lock,
			struct lock_info *known)
{
	uint64_t words[TICKET_WORDS], head;

	if (!look_bytes(look, ticket, words, sizeof(words)))
		return false;
	/* Those that it has are in lists that begin in it, and are told where. */
	for (size_t i = 0; i < TICKET_WORDS; i++)
		if (words[i] > context && words[i] < context + CONTEXT_BYTES &&
		    look_bytes(look, words[i], &head, 8) && head == ticket)
			return false;
	for (size_t i = 0; i < TICKET_WORDS; i++) {
		if (words[i] != context)
			continue;
		for (size_t j = 0; j < TICKET_WORDS; j++) {
			if (j == i || words[j] == ticket || !look_key(look, words[j], known))
				continue;
			look->context_at = i * 8;
			look->lock_at = j * 8;
			*lock = words[j];
			return true;
		}
	}
	return false;
}

/* The ticket of @lock that @link leads to; 0: to none. */
static uint64_t look_linked(const struct look *look, uint64_t link, uint64_t lock)
{
	uint64_t there;

	for (uint64_t ticket = link; link - ticket <= TICKET_LINK; ticket -= TICKET_LINK)
		if (look_bytes(look, ticket + look->lock_at, &there, 8) && there == lock)
			return ticket;
	return 0;
}

/* All tickets of @lock that its lists lead to, to @found behind its first element: the number. */
static size_t look_tickets(const struct look *look, uint64_t lock, uint64_t found[TICKETS_MAX])
{
	uint64_t words[LOCK_WORDS];
	size_t n = 1, nwords = LOCK_WORDS;

	found[0] = lock;
	for (size_t at = 0; at < n; at++, nwords = TICKET_WORDS) {
		if (!look_bytes(look, found[at], words, nwords * 8))
			continue;
		for (size_t i = 0; i < nwords && n < TICKETS_MAX; i++) {
			uint64_t ticket = look_linked(look, words[i], lock);
			size_t old = 0;

			while (old < n && found[old] != ticket)
				old++;
			if (ticket && old == n)
				found[n++] = ticket;
		}
	}
	return n;
}

/* Who has the others, or waits with them. */
static void look_others(const struct look *look, uint64_t lock, uint64_t own,
			struct lock_info *known)
{
	uint64_t found[TICKETS_MAX], context, waits;
	size_t n = look_tickets(look, lock, found);

	for (size_t i = 1; i < n; i++)
		if (look_bytes(look, found[i] + look->context_at, &context, 8) && context != own &&
		    look_bytes(look, context + look->waits_at, &waits, 8))
			look_keep(look, look_owner(look, context), waits == found[i], known);
}

/* What MDL_context @context waits for: it is the first that points to such a ticket. */
static int look_metadata(struct look *look, uint64_t context, struct lock_info *known)
{
	uint64_t words[CONTEXT_BYTES / 8], lock;

	if (!look_bytes(look, context, words, sizeof(words)))
		return -ENOENT;
	for (size_t i = 0; i < CONTEXT_BYTES / 8; i++) {
		if (!look_ticket(look, words[i], context, &lock, known))
			continue;
		look->waits_at = i * 8;
		look_others(look, lock, context, known);
		return 0;
	}
	return -ENOENT;
}

/* --- InnoDB's locks */

/*
 * The THD of a transaction that the one at @trx, of @session, waits for; 0: none. Before that pointer
 * is one to the lock that is waited for, which begins with whose it is: it tells a transaction from
 * what else leads to its session and to its like, as a metadata lock's ticket, and one that waits
 * from one that has.
 */
static uint64_t look_trx(struct look *look, uint64_t trx, uint64_t session, size_t session_at,
			 size_t wait_at)
{
	uint64_t wait[2], other, there;

	if (!look_bytes(look, trx + session_at, &there, 8) || there != session ||
	    !look_bytes(look, trx + wait_at - 8, wait, sizeof(wait)) ||
	    !look_bytes(look, wait[0], &there, 8) || there != trx)
		return 0;
	other = wait[1];
	if (other == trx ||
	    !look_bytes(look, other + session_at, &there, 8) || there == session ||
	    !look_is_session(look, there))
		return 0;
	return there;
}

/* Learns where all is, from a transaction that may be at @trx. */
static uint64_t look_trx_learn(struct look *look, uint64_t trx, uint64_t session)
{
	uint64_t words[TRX_WORDS], found;

	if (!look_bytes(look, trx, words, sizeof(words)))
		return 0;
	for (size_t i = TRX_FIRST; i < TRX_WORDS; i++) {
		if (words[i] != session)
			continue;
		for (size_t j = TRX_FIRST + 1; j < TRX_WORDS; j++) {
			found = words[j] ? look_trx(look, trx, session, i * 8, j * 8) : 0;
			if (!found)
				continue;
			look->places->trx_session_at = i * 8;
			look->places->trx_wait_at = j * 8;
			return found;
		}
	}
	return 0;
}

/* Whom InnoDB has @session wait for. */
static int look_innodb(struct look *look, uint64_t session, bool learn, struct lock_info *known)
{
	struct mysql_locks *places = look->places;
	uint64_t *words, found = 0;
	ssize_t n;

	if (!session || !places->has_waited ||
	    (!places->trx_known && (!learn || places->fruitless >= FRUITLESS_MAX)))
		return -ENOENT;
	words = malloc(SESSION_WORDS * 8);
	n = words ? process_memory_read(&look->memory, session, words, SESSION_WORDS * 8) : 0;
	for (size_t i = 0; !found && (ssize_t)i < n / 8; i++) {
		if (places->trx_known && i != places->trx_at / 8)
			continue;
		if (places->trx_known)
			found = look_trx(look, words[i], session, places->trx_session_at,
					 places->trx_wait_at);
		else if (words[i] - session >= SESSION_WORDS * 8)
			found = look_trx_learn(look, words[i], session);
		if (found)
			places->trx_at = i * 8;
	}
	free(words);
	places->trx_known |= found != 0;
	places->fruitless += !found;
	if (found)
		look_keep(look, found, false, known);
	return found ? 0 : -ENOENT;
}

int mysql_locks_read(struct mysql_locks *places, const struct backend_places *backend,
		     const struct event_lock *event, size_t size, bool learn, struct lock_info *known)
{
	unsigned int reads = READS_MAX;
	struct look look = { .places = places, .backend = backend, .pid = event->pid,
			     .size = size, .reads = &reads };
	uint64_t session = event->address;
	struct process process;
	int err = process_read(event->pid, engine_is_executable, &process);

	*known = (struct lock_info){ .event = *event };
	known->self.pid = event->pid;
	if (!err)
		err = process_memory_open_program(&process, places->lowest, &look.memory);
	if (err)
		return err;
	look.session_sign = places->sessions + look.memory.slide;
	if (event->kind == LOCK_WAITS_METADATA && event->relation) {
		session = session ? session : look_owner(&look, event->relation);
		err = look_metadata(&look, event->relation, known);
	} else {
		err = look_innodb(&look, session, learn, known);
	}
	look_party(&look, session, &known->self);
	process_memory_close(&look.memory);
	return err;
}
