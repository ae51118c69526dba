// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/metadata_lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CONTEXT_BYTES	640		/* of an MDL_context that are searched */
#define SESSION_WORDS	1024		/* of a THD that are searched for one */
#define TICKET_WORDS	10		/* of an MDL_ticket that are searched */
#define TICKET_LINK	8		/* lists point to a ticket's start, or to this offset */
#define LOCK_WORDS	160		/* of an MDL_lock that are searched */
#define TICKETS_MAX	256		/* of one lock, or of one session */
#define KEY_BYTES	392		/* of an MDL_key */
#define NAMESPACE_MAX	31
#define WAITING		"Waiting for "
#define USER_LOCK	"User lock"
#define STATE_BYTES	64		/* of a name: "Waiting for commit lock" */

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
	snprintf(info->object, sizeof(info->object), "%s%s%s", db, *db && len ? "." : "", name);
	return true;
}

/*
 * Read what a session shows while it waits for a lock of namespace @number: "User lock", "Waiting
 * for commit lock". The array has other members, which differ by release.
 */
static bool reader_state(const struct lock_reader *r, uint8_t number, char state[STATE_BYTES])
{
	uint64_t words[MYSQL_NAMESPACE_WORDS];
	size_t size = r->places->namespace_words * 8;

	if (!size || !lock_reader_bytes(r, r->places->namespaces + r->memory.slide, words, size))
		return false;
	for (size_t i = 0; i < size / 8; i++) {
		ssize_t n = words[i] < 4096 || !*r->reads ? 0 :
			    process_memory_read(&r->memory, words[i], state, STATE_BYTES);

		*r->reads -= *r->reads > 0;
		if (n <= 0 || !memchr(state, '\0', (size_t)n) ||
		    (memcmp(state, WAITING, sizeof(WAITING) - 1) && strcmp(state, USER_LOCK)))
			continue;
		if (!number--)
			return true;
	}
	return false;
}

/* Name a lock by its namespace where it has no other name, as the global read lock. */
static void reader_namespace(const struct lock_reader *r, uint8_t number, struct lock_info *info)
{
	char state[STATE_BYTES];

	info->event.kind = LOCK_WAITS_METADATA;
	if (!reader_state(r, number, state))
		return;
	if (!strcmp(state, USER_LOCK))
		info->event.kind = LOCK_WAITS_USER;
	else if (!*info->object)
		snprintf(info->object, sizeof(info->object), "%s", state + sizeof(WAITING) - 1);
}

static bool reader_key(const struct lock_reader *r, uint64_t lock, struct lock_info *info)
{
	static const uint8_t heads[] = { 8, 6, 4 };
	char key[KEY_BYTES];

	if (!lock_reader_bytes(r, lock, key, sizeof(key)))
		return false;
	for (size_t i = 0; i < sizeof(heads); i++) {
		if (!key_names(key, heads[i], info))
			continue;
		reader_namespace(r, (uint8_t)key[heads[i]], info);
		return true;
	}
	return false;
}

/*
 * Return whether @link, a word @i of an MDL_ticket, is of a list of the tickets of @context: it
 * points into the context, or to the member before it of another ticket of the context.
 */
static bool link_is_own(const struct lock_reader *r, uint64_t link, size_t i, uint64_t context,
			size_t context_at)
{
	uint64_t there;

	return link - context < CONTEXT_BYTES ||
	       (i && lock_reader_bytes(r, link - (i - 1) * 8 + context_at, &there, 8) &&
		there == context);
}

enum ticket_state { TICKET_RELEASED, TICKET_WAITS, TICKET_GRANTED };

/*
 * Return the state of the MDL_ticket of @context at @ticket, which has these words. What it is
 * linked to points back. A granted one is in a list of the context and, unless it is on the fast
 * path, in one of the lock; a waiting one only in the latter; and one that was released in none.
 */
static enum ticket_state ticket_state(const struct lock_reader *r, uint64_t ticket,
				      uint64_t context, const uint64_t words[TICKET_WORDS])
{
	uint64_t there, back = 0;
	size_t context_at = 0;

	while (context_at < TICKET_WORDS && words[context_at] != context)
		context_at++;
	for (size_t i = 0; i < TICKET_WORDS; i++) {
		if (words[i] == back || !lock_reader_bytes(r, words[i], &there, 8) ||
		    (there != ticket && there != ticket + TICKET_LINK))
			continue;
		if (back || link_is_own(r, words[i], i, context, context_at * 8))
			return TICKET_GRANTED;
		back = words[i];
	}
	return back ? TICKET_WAITS : TICKET_RELEASED;
}

/*
 * Return whether @ticket is the address of an MDL_ticket of @context that waits. Its lock goes to
 * *@lock, its name to @info. In all releases (sql/mdl.h) a ticket points to its lock right behind
 * its context; what its other words point to may be remains of what was in its memory before.
 */
static bool reader_ticket(struct lock_reader *r, uint64_t ticket, uint64_t context, uint64_t *lock,
			  struct lock_info *info)
{
	uint64_t words[TICKET_WORDS];

	if (!lock_reader_bytes(r, ticket, words, sizeof(words)) ||
	    ticket_state(r, ticket, context, words) != TICKET_WAITS)
		return false;
	for (size_t i = 0; i < TICKET_WORDS - 1; i++) {
		if (words[i] != context || !reader_key(r, words[i + 1], info))
			continue;
		r->context_at = i * 8;
		r->lock_at = i * 8 + 8;
		*lock = words[i + 1];
		return true;
	}
	return false;
}

/*
 * Return whether @context waits with the ticket that its word @i, which was @ticket, points to. A
 * ticket that is granted at once is in a list of its lock before it is in one of the context, and
 * may be where an earlier one was. So both are read twice.
 */
static bool reader_waits(struct lock_reader *r, uint64_t context, size_t i, uint64_t ticket,
			 uint64_t *lock, struct lock_info *info)
{
	uint64_t again;

	return reader_ticket(r, ticket, context, lock, info) &&
	       lock_reader_bytes(r, context + i * 8, &again, 8) && again == ticket &&
	       reader_ticket(r, ticket, context, lock, info);
}

/* Return the address of the ticket that @link points to, with @owner at offset @at; or 0. */
static uint64_t reader_linked(const struct lock_reader *r, uint64_t link, size_t at, uint64_t owner)
{
	uint64_t there;

	for (uint64_t ticket = link; link - ticket <= TICKET_LINK; ticket -= TICKET_LINK)
		if (lock_reader_bytes(r, ticket + at, &there, 8) && there == owner)
			return ticket;
	return 0;
}

/*
 * Find the tickets that are linked from @owner, an MDL_lock or MDL_context that they point to at
 * offset @owner_at: @found has @owner itself, then the tickets. Return the number of elements.
 */
static size_t reader_tickets(const struct lock_reader *r, uint64_t owner, size_t owner_at,
			     uint64_t found[TICKETS_MAX])
{
	uint64_t words[LOCK_WORDS];
	size_t n = 1, nwords = owner_at == r->lock_at ? LOCK_WORDS : CONTEXT_BYTES / 8;

	found[0] = owner;
	for (size_t at = 0; at < n; at++, nwords = TICKET_WORDS) {
		if (!lock_reader_bytes(r, found[at], words, nwords * 8))
			continue;
		for (size_t i = 0; i < nwords && n < TICKETS_MAX; i++) {
			uint64_t ticket = reader_linked(r, words[i], owner_at, owner);
			size_t old = 0;

			while (old < n && found[old] != ticket)
				old++;
			if (ticket && old == n)
				found[n++] = ticket;
		}
	}
	return n;
}

/* Add @session, which has the MDL_ticket at @ticket, to the holders or the queue. */
static void ticket_keep(const struct lock_reader *r, uint64_t ticket, uint64_t session,
			const uint64_t words[TICKET_WORDS], struct lock_info *info)
{
	enum ticket_state state = ticket_state(r, ticket, words[r->context_at / 8], words);

	if (state != TICKET_RELEASED)
		lock_reader_keep(r, session, state == TICKET_WAITS, false, info);
}

/* Add the sessions of the other tickets of @lock: its holders, and those that wait as well. */
static void reader_others(const struct lock_reader *r, uint64_t lock, uint64_t own,
			  struct lock_info *info)
{
	uint64_t found[TICKETS_MAX], words[TICKET_WORDS], context;
	size_t n = reader_tickets(r, lock, r->lock_at, found);

	for (size_t i = 1; i < n; i++) {
		if (!lock_reader_bytes(r, found[i], words, sizeof(words)))
			continue;
		context = words[r->context_at / 8];
		if (context != own || r->known)
			ticket_keep(r, found[i], lock_reader_owner(r, context), words, info);
	}
}

/* --- holders that are not in the list of the lock */

/* A search of the tickets of all sessions. */
struct search {
	const struct lock_reader *r;
	uint64_t lock, own;		/* the awaited lock, the MDL_context that waits */
	uint64_t context_at;		/* offset of the MDL_context in a THD */
	bool cut;			/* some were not searched */
	struct lock_info *info;
};

/* Add the THD at @session to the holders if one of its tickets is for the lock. */
static void search_session(void *arg, uint64_t session)
{
	struct search *search = arg;
	const struct lock_reader *r = search->r;
	uint64_t found[TICKETS_MAX], words[TICKET_WORDS], context = session + search->context_at;
	size_t n;

	if (context == search->own && !r->known)
		return;
	n = reader_tickets(r, context, r->context_at, found);
	search->cut |= n == TICKETS_MAX;
	for (size_t i = 1; i < n; i++)
		if (lock_reader_bytes(r, found[i], words, sizeof(words)) &&
		    words[r->lock_at / 8] == search->lock)
			ticket_keep(r, found[i], session, words, search->info);
}

/*
 * Add the sessions that hold the lock on the fast path: their tickets are only in lists of their
 * own. Return whether all sessions were searched.
 */
static bool search_all(struct search *search)
{
	return search->context_at && lock_reader_sessions(search->r, search_session, search) &&
	       !search->cut && *search->r->reads;
}

/* Return whether another session than that of the THD at @session has the lock or waits for it. */
static bool has_others(const struct lock_reader *r, uint64_t session, const struct lock_info *info)
{
	uint64_t own = session ? object_connection(&r->memory, &r->backend->object, session) : 0;

	for (unsigned int i = 0; i < info->nholders; i++)
		if (info->holders[i].connection != own)
			return true;
	return info->more;
}

int metadata_lock_read(struct lock_reader *r, uint64_t context, uint64_t session,
		       struct lock_info *info)
{
	uint64_t words[CONTEXT_BYTES / 8], lock;
	struct search search;
	int err = -ENOENT;

	if (!lock_reader_bytes(r, context, words, sizeof(words)))
		return -ENOENT;
	for (size_t i = 0; i < CONTEXT_BYTES / 8; i++) {
		if (!reader_waits(r, context, i, words[i], &lock, info))
			continue;
		lock_info_drop(info);
		info->lock = lock;
		err = 0;
		if (lock_reader_knows(r, lock))
			break;
		reader_others(r, lock, context, info);
		search = (struct search){
			.r = r, .lock = lock, .own = context, .context_at = context - session,
			.info = info,
		};
		info->known = !r->places->fast_path || (session && search_all(&search));
		/* Else it may be one of which memory has remains, and another one is awaited. */
		if (has_others(r, session, info))
			break;
	}
	return err;
}

/*
 * Return the offset of the MDL_context in the THD at @session that the MDL_ticket at @ticket points
 * to, or 0.
 */
static size_t ticket_context(const struct lock_reader *r, uint64_t ticket, uint64_t session)
{
	uint64_t words[TICKET_WORDS];
	struct lock_info info;

	if (!lock_reader_bytes(r, ticket, words, sizeof(words)))
		return 0;
	for (size_t i = 0; i < TICKET_WORDS - 1; i++)
		if (words[i] > session && words[i] - session < SESSION_WORDS * 8 &&
		    reader_key(r, words[i + 1], &info))
			return words[i] - session;
	return 0;
}

size_t metadata_lock_learn(struct lock_reader *r, uint64_t session)
{
	uint64_t words[SESSION_WORDS];
	size_t found = 0;

	if (!lock_reader_bytes(r, session, words, sizeof(words)))
		return 0;
	for (size_t i = 0; i < SESSION_WORDS && !found; i++)
		if (words[i] - session >= sizeof(words))
			found = ticket_context(r, words[i], session);
	return found;
}
