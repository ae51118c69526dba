// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/elf_map.h"
#include "host/process_memory.h"
#include "usdt/accessor.h"
#include "usdt/fmt.h"

#define VTABLE_HEAD	16		/* of a vtable, before the functions (Itanium C++ ABI) */
#define SESSION_WORDS	5120		/* of a THD that are searched */
#define TRX_WORDS	320		/* of a trx_t that are searched */
#define TRX_FIRST	2		/* first word after its list pointers */
#define CONTEXT_BYTES	640		/* of an MDL_context that are searched */
#define CONTEXT_BEHIND	8192		/* largest offset of the MDL_context in a THD */
#define TICKET_WORDS	10		/* of an MDL_ticket that are searched */
#define TICKET_LINK	8		/* lists point to a ticket's start, or to this offset */
#define LOCK_WORDS	160		/* of an MDL_lock that are searched */
#define TICKETS_MAX	64		/* of one lock */
#define FAILURES_MAX	64
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
	/* MySQL: a trx_t also points to others by its lists. */
	places->has_waited = !elf_symbol_find(elf, "thd_wait_begin", &symbol);
	if (!accessor_read(elf, "thd_get_thread_id", &accessor) &&
	    accessor.kind == ACCESSOR_VALUE) {
		places->connection = accessor.offset;
		places->connection_size = accessor.size;
	}
}

/* A server process whose memory is read. */
struct reader {
	struct mysql_locks *places;
	const struct backend_places *backend;
	struct process_memory memory;
	struct backend_owner owner;
	size_t size;			/* of a text */
	uint64_t session_class;		/* first word of a THD: the address of its vtable */
	unsigned int *reads;		/* left: a hostile process cannot cause endless reading */
	/* Offsets in an MDL_ticket; ->waits_at: of the awaited ticket in an MDL_context. */
	size_t context_at, lock_at, waits_at;
};

static bool reader_bytes(const struct reader *r, uint64_t address, void *buf, size_t size)
{
	if (address < 4096 || address & 7 || !*r->reads)
		return false;
	--*r->reads;
	return process_memory_read(&r->memory, address, buf, size) == (ssize_t)size;
}

static bool reader_is_session(const struct reader *r, uint64_t address)
{
	uint64_t class;

	return r->places->sessions && reader_bytes(r, address, &class, sizeof(class)) &&
	       class == r->session_class;
}

/* Return the address of the THD that contains MDL_context @context; 0: unknown. */
static uint64_t reader_owner(const struct reader *r, uint64_t context)
{
	for (uint64_t at = context; at > context - CONTEXT_BEHIND; at -= 8)
		if (reader_is_session(r, at))
			return at;
	return 0;
}

/* Read the connection id and the statement of the THD at @session, which may be 0. */
static void reader_backend(const struct reader *r, uint64_t session, struct lock_backend *backend)
{
	size_t len = 0;
	int n;

	backend->pid = r->owner.pid;
	if (!session)
		return;
	if (r->places->connection >= 0)
		process_memory_read(&r->memory, session + (uint64_t)r->places->connection,
				    &backend->connection,
				    r->places->connection_size < 8 ? 4 : 8);
	backend->text = malloc(r->size);
	n = backend->text ? backend_query(&r->owner, session, r->backend, backend->text,
					  r->size, &len) : -ENOMEM;
	backend->valid = r->backend->query >= 0;
	backend->running = n > 0;
	if (n > 0) {
		lock_backend_text(backend, (size_t)n);
		backend->cut = len > (size_t)n;
		return;
	}
	free(backend->text);
	backend->text = NULL;
}

/* Add the session to the lock holders, or to those ahead in the queue, once. */
static void reader_keep(const struct reader *r, uint64_t session, bool queued,
			struct lock_info *info)
{
	struct lock_backend backend = { .queued = queued };

	reader_backend(r, session, &backend);
	for (unsigned int i = 0; i < info->nholders; i++) {
		if (info->holders[i].connection != backend.connection)
			continue;
		info->holders[i].queued &= queued;
		free(backend.text);
		return;
	}
	lock_info_add(info, &backend);
}

/* --- metadata locks */

/*
 * Parse an MDL_key (sql/mdl.h): two lengths of 16 bits, of all that follows the head and of the
 * database's name; in MySQL the length of the object's name; in MariaDB since 10.6 a hash of 32
 * bits; then a byte for the namespace, and both names with a NUL each. Return whether the key is
 * valid with a head of @head bytes.
 */
static bool key_names(const char key[KEY_BYTES], size_t head, struct lock_info *info)
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
	fmt_text(info->object, sizeof(info->object), "%s%s%s", db, *db && len ? "." : "", name);
	return true;
}

static bool reader_key(const struct reader *r, uint64_t lock, struct lock_info *info)
{
	char key[KEY_BYTES];

	return reader_bytes(r, lock, key, sizeof(key)) &&
	       (key_names(key, 8, info) || key_names(key, 6, info) || key_names(key, 4, info));
}

/*
 * Return whether @ticket is the address of an MDL_ticket of @context that is not in its lists, and
 * so the awaited one. Its lock goes to *@lock, its name to @info.
 */
static bool reader_ticket(struct reader *r, uint64_t ticket, uint64_t context, uint64_t *lock,
			  struct lock_info *info)
{
	uint64_t words[TICKET_WORDS], head;

	if (!reader_bytes(r, ticket, words, sizeof(words)))
		return false;
	/* A granted ticket is linked to a list whose head is in the context. */
	for (size_t i = 0; i < TICKET_WORDS; i++)
		if (words[i] > context && words[i] < context + CONTEXT_BYTES &&
		    reader_bytes(r, words[i], &head, 8) && head == ticket)
			return false;
	for (size_t i = 0; i < TICKET_WORDS; i++) {
		if (words[i] != context)
			continue;
		for (size_t j = 0; j < TICKET_WORDS; j++) {
			if (j == i || words[j] == ticket || !reader_key(r, words[j], info))
				continue;
			r->context_at = i * 8;
			r->lock_at = j * 8;
			*lock = words[j];
			return true;
		}
	}
	return false;
}

/* Return the address of the ticket of @lock that @link points to, or 0. */
static uint64_t reader_linked(const struct reader *r, uint64_t link, uint64_t lock)
{
	uint64_t there;

	for (uint64_t ticket = link; link - ticket <= TICKET_LINK; ticket -= TICKET_LINK)
		if (reader_bytes(r, ticket + r->lock_at, &there, 8) && there == lock)
			return ticket;
	return 0;
}

/*
 * Find the tickets that are linked from @lock: @found has @lock itself, then the tickets. Return
 * the number of elements.
 */
static size_t reader_tickets(const struct reader *r, uint64_t lock, uint64_t found[TICKETS_MAX])
{
	uint64_t words[LOCK_WORDS];
	size_t n = 1, nwords = LOCK_WORDS;

	found[0] = lock;
	for (size_t at = 0; at < n; at++, nwords = TICKET_WORDS) {
		if (!reader_bytes(r, found[at], words, nwords * 8))
			continue;
		for (size_t i = 0; i < nwords && n < TICKETS_MAX; i++) {
			uint64_t ticket = reader_linked(r, words[i], lock);
			size_t old = 0;

			while (old < n && found[old] != ticket)
				old++;
			if (ticket && old == n)
				found[n++] = ticket;
		}
	}
	return n;
}

/* Add the sessions of the other tickets of @lock: its holders, and those that wait as well. */
static void reader_others(const struct reader *r, uint64_t lock, uint64_t own,
			  struct lock_info *info)
{
	uint64_t found[TICKETS_MAX], context, waits;
	size_t n = reader_tickets(r, lock, found);

	for (size_t i = 1; i < n; i++)
		if (reader_bytes(r, found[i] + r->context_at, &context, 8) && context != own &&
		    reader_bytes(r, context + r->waits_at, &waits, 8))
			reader_keep(r, reader_owner(r, context), waits == found[i], info);
}

/* Find the metadata lock that MDL_context @context waits for. Return 0 or -ENOENT. */
static int reader_metadata(struct reader *r, uint64_t context, struct lock_info *info)
{
	uint64_t words[CONTEXT_BYTES / 8], lock;

	if (!reader_bytes(r, context, words, sizeof(words)))
		return -ENOENT;
	for (size_t i = 0; i < CONTEXT_BYTES / 8; i++) {
		if (!reader_ticket(r, words[i], context, &lock, info))
			continue;
		r->waits_at = i * 8;
		reader_others(r, lock, context, info);
		return 0;
	}
	return -ENOENT;
}

/* --- InnoDB's locks */

/*
 * Return the address of the THD whose transaction the one at @trx, of @session, waits for, or 0.
 *
 * In a trx_t, the pointer to that transaction (offset @wait_at) follows a pointer to the awaited
 * lock, which begins with a pointer to its owner @trx. That distinguishes a trx_t from other
 * structures that point to a THD and to their like, such as an MDL_ticket, and a transaction that
 * waits from one that does not.
 */
static uint64_t reader_trx(struct reader *r, uint64_t trx, uint64_t session, size_t session_at,
			   size_t wait_at)
{
	uint64_t wait[2], other, there;

	if (!reader_bytes(r, trx + session_at, &there, 8) || there != session ||
	    !reader_bytes(r, trx + wait_at - 8, wait, sizeof(wait)) ||
	    !reader_bytes(r, wait[0], &there, 8) || there != trx)
		return 0;
	other = wait[1];
	if (other == trx ||
	    !reader_bytes(r, other + session_at, &there, 8) || there == session ||
	    !reader_is_session(r, there))
		return 0;
	return there;
}

/* The same if the offsets are still unknown: try all of them, and keep those that fit. */
static uint64_t reader_trx_learn(struct reader *r, uint64_t trx, uint64_t session)
{
	uint64_t words[TRX_WORDS], found;

	if (!reader_bytes(r, trx, words, sizeof(words)))
		return 0;
	for (size_t i = TRX_FIRST; i < TRX_WORDS; i++) {
		if (words[i] != session)
			continue;
		for (size_t j = TRX_FIRST + 1; j < TRX_WORDS; j++) {
			found = words[j] ? reader_trx(r, trx, session, i * 8, j * 8) : 0;
			if (!found)
				continue;
			r->places->trx_session_at = i * 8;
			r->places->trx_wait_at = j * 8;
			return found;
		}
	}
	return 0;
}

/*
 * Return the THD whose transaction the one in word @i of the THD at @session waits for, or 0.
 * Pointers into the THD itself cannot be to a trx_t.
 */
static uint64_t reader_session_word(struct reader *r, uint64_t session, size_t i, uint64_t word)
{
	const struct mysql_locks *places = r->places;

	if (places->trx_valid)
		return i == places->trx_at / 8 ? reader_trx(r, word, session,
							    places->trx_session_at,
							    places->trx_wait_at) : 0;
	return word - session >= SESSION_WORDS * 8 ? reader_trx_learn(r, word, session) : 0;
}

/*
 * Find the transaction that @session waits for in InnoDB. Return 0 or -ENOENT. The offsets are
 * learned only if @learn, and not after too many failures: the search is expensive.
 */
static int reader_innodb(struct reader *r, uint64_t session, bool learn, struct lock_info *info)
{
	struct mysql_locks *places = r->places;
	uint64_t *words, found = 0;
	ssize_t n;

	if (!session || !places->has_waited ||
	    (!places->trx_valid && (!learn || places->failures >= FAILURES_MAX)))
		return -ENOENT;
	words = malloc(SESSION_WORDS * 8);
	n = words ? process_memory_read(&r->memory, session, words, SESSION_WORDS * 8) : 0;
	for (size_t i = 0; !found && (ssize_t)i < n / 8; i++) {
		found = reader_session_word(r, session, i, words[i]);
		if (found)
			places->trx_at = i * 8;
	}
	free(words);
	places->trx_valid |= found != 0;
	places->failures += !found;
	if (found)
		reader_keep(r, found, false, info);
	return found ? 0 : -ENOENT;
}

int mysql_locks_read(struct mysql_locks *places, const struct backend_places *backend,
		     const struct event_lock *event, size_t size, bool learn,
		     struct lock_info *info)
{
	unsigned int reads = READS_MAX;
	struct process process;
	struct reader r = { .places = places, .backend = backend, .size = size, .reads = &reads,
			    .owner = { event->pid, &process.file } };
	uint64_t session = event->address;
	int err = process_read(event->pid, places->is_program, &process);

	*info = (struct lock_info){ .event = *event };
	info->self.pid = event->pid;
	if (!err)
		err = process_memory_open_program(&process, places->lowest, &r.memory);
	if (err)
		return err;
	r.session_class = places->sessions + r.memory.slide;
	if (event->kind == LOCK_WAITS_METADATA && event->relation) {
		session = session ? session : reader_owner(&r, event->relation);
		err = reader_metadata(&r, event->relation, info);
	} else {
		err = reader_innodb(&r, session, learn, info);
	}
	reader_backend(&r, session, &info->self);
	process_memory_close(&r.memory);
	return err;
}
