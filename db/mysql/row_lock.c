// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/row_lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/mysql/names.h"

#define SESSION_WORDS	5120		/* of a THD that are searched */
#define TRX_WORDS	320		/* of a trx_t that are searched */
#define TRX_FIRST	2		/* first word after its list pointers */
#define LOCK_WORDS	16		/* of a lock_t that are read, */
#define LOCK_INDEX_WORDS	8	/* .. searched for its index; */
#define LOCK_OWNER	0		/* words of a lock_t: its trx_t, */
#define LOCK_FOLLOWING	2		/* .. the next lock of that one, */
#define LOCK_BEHIND	4		/* .. and the next one in a list of the hash table */
#define INDEX_WORDS	16		/* .. of a dict_index_t, */
#define TABLE_WORDS	64		/* .. of a dict_table_t, */
#define TABLE_NAME_WORDS	8	/* .. of which for its name */
#define FAILURES_MAX	64
#define BITS_MIN	64		/* of a bitmap */
#define BITS_MAX	16384
#define LOCKS_MAX	4096		/* of a transaction, or of a page, that are searched */

/* Bits of lock_t::type_mode, as in the servers' lock0types.h. */
#define MODE_SHARED	2
#define MODE_MASK	15
#define MODE_KNOWN	0xfff
#define WAITS		256
#define GAP		512
#define NOT_GAP		1024
#define INSERTION	2048

/* The awaited lock_t of rows of a page. Behind its mode is a bitmap of the rows. */
struct row_wait {
	uint64_t address, words[LOCK_WORDS];
	unsigned int page, mode;	/* words; the number of bits follows the page */
	unsigned int row;		/* the awaited one, as a bit */
};

/* Read a name. InnoDB's names of tables have only graphic characters of ASCII; @others: any. */
static bool reader_name(const struct lock_reader *r, uint64_t address, bool others, char *name,
			size_t size)
{
	if (!lock_reader_string(r, address, name, size))
		return false;
	for (; *name; name++)
		if ((unsigned char)*name < (others ? ' ' : '!') || *name == 127 ||
		    ((unsigned char)*name > 127 && !others))
			return false;
	return true;
}

/*
 * Return whether a dict_index_t of @table is at @address: its name, copied to @name, precedes the
 * pointer to its table.
 */
static bool reader_index(const struct lock_reader *r, uint64_t address, uint64_t table,
			 char name[LOCK_RELATION])
{
	uint64_t words[INDEX_WORDS];

	if (!lock_reader_bytes(r, address, words, sizeof(words)))
		return false;
	for (size_t i = 1; i < INDEX_WORDS; i++)
		if (words[i] == table && reader_name(r, words[i - 1], true, name, LOCK_RELATION))
			return true;
	return false;
}

/*
 * Name the dict_table_t at @table: its first members include a name with one slash, and behind them
 * is a list of its indexes. Return whether it is one.
 */
static bool reader_table(const struct lock_reader *r, uint64_t table, struct lock_info *info)
{
	char name[LOCK_OBJECT], index[LOCK_RELATION];
	uint64_t words[TABLE_WORDS];
	bool named = false, indexed = false;

	if (!lock_reader_bytes(r, table, words, sizeof(words)))
		return false;
	for (size_t i = 1; !named && i < TABLE_NAME_WORDS; i++)
		named = reader_name(r, words[i], false, name, sizeof(name)) && *name != '/' &&
			strchr(name, '/') && !strchr(strchr(name, '/') + 1, '/');
	for (size_t i = TABLE_NAME_WORDS; named && !indexed && i < TABLE_WORDS; i++)
		indexed = words[i] != table && reader_index(r, words[i], table, index);
	if (indexed)
		mysql_table_name(name, info->object, sizeof(info->object));
	return indexed;
}

/* Name the dict_index_t at @index and its table. Return whether it is one. */
static bool reader_indexed(const struct lock_reader *r, uint64_t index, struct lock_info *info)
{
	char name[LOCK_RELATION], table[LOCK_OBJECT];
	uint64_t words[INDEX_WORDS];

	if (!lock_reader_bytes(r, index, words, sizeof(words)))
		return false;
	for (size_t i = 1; i < INDEX_WORDS; i++) {
		if (!reader_name(r, words[i - 1], true, name, sizeof(name)) ||
		    !reader_table(r, words[i], info))
			continue;
		/* MySQL has the table's name between the two. */
		mysql_table_name(name, table, sizeof(table));
		if (i > 1 && !strcmp(table, info->object) &&
		    !reader_name(r, words[i - 2], true, name, sizeof(name)))
			return false;
		memcpy(info->index, name, sizeof(name));
		return true;
	}
	return false;
}

/* Name the table and index of the lock of rows or of a table in @words, of transaction @trx. */
static void reader_name_lock(const struct lock_reader *r, const uint64_t *words, uint64_t trx,
			     struct lock_info *info)
{
	for (size_t i = 1; i < LOCK_INDEX_WORDS; i++)
		if (words[i] != trx && (reader_indexed(r, words[i], info) ||
					reader_table(r, words[i], info)))
			return;
}

/* Return the only bit of the @count ones at @address; -1: there is not exactly one. */
static int reader_only_bit(const struct lock_reader *r, uint64_t address, unsigned int count)
{
	int found = -1;

	for (unsigned int i = 0; i < count; i += 64) {
		uint64_t word;

		if (!lock_reader_bytes(r, address + i / 8, &word, 8))
			return -1;
		/* The last word may be beyond the bitmap. */
		if (count - i < 64)
			word &= (1ull << (count - i)) - 1;
		if (!word)
			continue;
		if (found >= 0 || word & (word - 1))
			return -1;
		found = (int)i + __builtin_ctzll(word);
	}
	return found;
}

/* Find the mode of the awaited lock behind its page. Return whether it waits for one row. */
static bool reader_row_of(const struct lock_reader *r, struct row_wait *wait)
{
	uint32_t bits = (uint32_t)wait->words[wait->page + 1];

	if (!wait->words[wait->page] || bits < BITS_MIN || bits > BITS_MAX || bits % 8)
		return false;
	for (wait->mode = wait->page + 2; wait->mode < LOCK_WORDS; wait->mode++) {
		/* Behind it may be garbage of a lock that had the memory before. */
		uint32_t mode = (uint32_t)wait->words[wait->mode];
		int row = mode & WAITS && mode <= MODE_KNOWN ?
			  reader_only_bit(r, wait->address + (wait->mode + 1) * 8, bits) : -1;

		wait->row = (unsigned int)row;
		if (row >= 0)
			return true;
	}
	return false;
}

/* The same for the page: where it is depends on the release. */
static bool reader_rows(const struct lock_reader *r, struct row_wait *wait)
{
	for (wait->page = LOCK_BEHIND + 1; wait->page <= LOCK_BEHIND + 3; wait->page++)
		if (reader_row_of(r, wait))
			return true;
	return false;
}

/* Return whether the lock with @words, at @address, is on the row of @wait. */
static bool reader_same_row(const struct lock_reader *r, const struct row_wait *wait,
			    uint64_t address, const uint64_t *words)
{
	uint64_t word, map = address + (wait->mode + 1) * 8;

	return words[wait->page] == wait->words[wait->page] &&
	       wait->row < (uint32_t)words[wait->page + 1] &&
	       lock_reader_bytes(r, map + wait->row / 64 * 8, &word, 8) &&
	       word >> wait->row % 64 & 1;
}

/* Return whether a lock of rows of mode @mode has to wait for one of mode @held on the same row. */
static bool mode_waits(uint32_t mode, uint32_t held)
{
	bool shared = (mode & MODE_MASK) == MODE_SHARED && (held & MODE_MASK) == MODE_SHARED;

	if (shared || held & INSERTION)
		return false;
	/* A gap is only awaited by an insertion. */
	return mode & INSERTION ? !(held & NOT_GAP) : !(held & GAP);
}

/* Return the first lock of @trx on the row of @wait; 0: none was found. */
static uint64_t reader_lock_of(const struct lock_reader *r, uint64_t trx,
			       const struct row_wait *wait)
{
	uint64_t words[LOCK_WORDS], at;

	if (!r->places->trx_locks_at ||
	    !lock_reader_bytes(r, trx + r->places->trx_locks_at, &at, 8))
		return 0;
	for (unsigned int i = 0; i < LOCKS_MAX; i++, at = words[LOCK_FOLLOWING]) {
		if (!lock_reader_bytes(r, at, words, sizeof(words)) || words[LOCK_OWNER] != trx)
			return 0;
		if (reader_same_row(r, wait, at, words))
			return at;
	}
	return 0;
}

/*
 * Add the owner of the lock with @words, at @address, if that of @wait has to wait for it, and it
 * waits itself if @queued. Return false if the owner is unknown.
 */
static bool reader_holder(struct lock_reader *r, const struct row_wait *wait, uint64_t address,
			  const uint64_t *words, bool queued, struct lock_info *info)
{
	uint32_t mode = (uint32_t)wait->words[wait->mode], held = (uint32_t)words[wait->mode];
	uint64_t session, owner = words[LOCK_OWNER];

	if (owner == wait->words[LOCK_OWNER] || !(held & WAITS) == queued ||
	    !mode_waits(mode, held) || !reader_same_row(r, wait, address, words))
		return true;
	if (!lock_reader_bytes(r, owner + r->places->trx_session_at, &session, 8) ||
	    !lock_reader_is_session(r, session))
		return false;
	lock_reader_keep(r, session, queued, true, info);
	return true;
}

/*
 * Add those that the lock of @wait has to wait for: beginning with the one at @first, they precede
 * it in a list of the hash table. Return whether all were found.
 */
static bool reader_holders(struct lock_reader *r, const struct row_wait *wait, uint64_t first,
			   bool queued, struct lock_info *info)
{
	uint64_t words[LOCK_WORDS], at = first;
	bool all = true;

	for (unsigned int i = 0; at != wait->address && i < LOCKS_MAX; i++) {
		if (!lock_reader_bytes(r, at, words, sizeof(words)))
			return false;
		all &= reader_holder(r, wait, at, words, queued, info);
		at = words[LOCK_BEHIND];
	}
	return all && at == wait->address;
}

/*
 * Add the holders of the row of @wait or, without any, those ahead in the queue; the first lock
 * that it conflicts with is one of @trx. Return whether all were found: a gap that an insertion
 * waits for can still be locked by others, which may be anywhere in the list.
 */
static bool reader_row_holders(struct lock_reader *r, struct row_wait *wait, uint64_t trx,
			       struct lock_info *info)
{
	uint64_t first = reader_rows(r, wait) ? reader_lock_of(r, trx, wait) : 0;
	bool all = first && reader_holders(r, wait, first, false, info);

	all = all && (info->nholders || reader_holders(r, wait, first, true, info));
	return all && !(wait->words[wait->mode] & INSERTION);
}

/*
 * Return the address of the transaction that the one at @trx, of @session, waits for, and in
 * *@other_session its THD; or 0. A prepared one may have no THD; nothing is learned by it.
 *
 * In a trx_t, the pointer to that transaction (offset @wait_at) is beside a pointer to the awaited
 * lock (@lock_at), which begins with a pointer to its owner @trx. That distinguishes a trx_t from
 * other structures that point to a THD and to their like, such as an MDL_ticket, and a transaction
 * that waits from one that does not.
 */
static uint64_t reader_trx(struct lock_reader *r, uint64_t trx, uint64_t session,
			   const struct mysql_locks *at, uint64_t *other_session)
{
	uint64_t lock, other, there;

	if (!lock_reader_bytes(r, trx + at->trx_session_at, &there, 8) || there != session ||
	    !lock_reader_bytes(r, trx + at->trx_lock_at, &lock, 8) ||
	    !lock_reader_bytes(r, lock, &there, 8) || there != trx ||
	    !lock_reader_bytes(r, trx + at->trx_wait_at, &other, 8) || other == trx ||
	    !lock_reader_bytes(r, other + at->trx_session_at, &there, 8) || there == session ||
	    !(there ? lock_reader_is_session(r, there) : at->trx_valid))
		return 0;
	*other_session = there;
	return other;
}

/* Return the offset of the list of locks in a trx_t with these words: its first and last lock. */
static size_t reader_locks_learn(const struct lock_reader *r, uint64_t trx, const uint64_t *words)
{
	uint64_t first[3], last[3];

	for (size_t i = TRX_FIRST; i + 1 < TRX_WORDS; i++)
		if (words[i] && words[i + 1] &&
		    lock_reader_bytes(r, words[i], first, sizeof(first)) && first[0] == trx &&
		    !first[1] && lock_reader_bytes(r, words[i + 1], last, sizeof(last)) &&
		    last[0] == trx && !last[2])
			return i * 8;
	return 0;
}

/* Return whether a lock of rows that waits is at @lock, not another one of a transaction. */
static bool reader_awaited(const struct lock_reader *r, uint64_t lock)
{
	struct row_wait wait = { .address = lock };

	return lock_reader_bytes(r, lock, wait.words, sizeof(wait.words)) && reader_rows(r, &wait);
}

/* The same if the offsets are still unknown: try all of them, and keep those that fit. */
static uint64_t reader_trx_learn(struct lock_reader *r, uint64_t trx, uint64_t session,
				 uint64_t *other_session)
{
	struct mysql_locks at = *r->places;
	uint64_t words[TRX_WORDS], found;

	if (!lock_reader_bytes(r, trx, words, sizeof(words)))
		return 0;
	for (size_t i = TRX_FIRST; i < TRX_WORDS; i++) {
		if (words[i] != session)
			continue;
		at.trx_session_at = i * 8;
		/* MySQL has the transaction before the lock, MariaDB behind it. */
		for (size_t j = TRX_FIRST + 1; j < TRX_WORDS - 1; j++) {
			at.trx_lock_at = j * 8;
			at.trx_wait_at = at.trx_behind ? j * 8 - 8 : j * 8 + 8;
			found = words[j] ? reader_trx(r, trx, session, &at, other_session) : 0;
			if (!found || !reader_awaited(r, words[j]))
				continue;
			at.trx_locks_at = reader_locks_learn(r, trx, words);
			*r->places = at;
			return found;
		}
	}
	return 0;
}

/*
 * Return the transaction that *@trx, which the word @i of the THD at @session leads to, waits for,
 * and its THD; or 0. While the offset is unknown, what points into the THD itself is no trx_t. The
 * memory just behind the THD may have the pointer to one.
 */
static uint64_t reader_session_word(struct lock_reader *r, uint64_t session, size_t i,
				    uint64_t *trx, uint64_t *other_session)
{
	const struct mysql_locks *places = r->places;

	if (places->trx_valid && i != places->trx_at / 8)
		return 0;
	if (places->trx_behind && !lock_reader_bytes(r, *trx, trx, 8))
		return 0;
	if (places->trx_valid)
		return reader_trx(r, *trx, session, places, other_session);
	return *trx - session < SESSION_WORDS * 8 ?
	       0 : reader_trx_learn(r, *trx, session, other_session);
}

/* Name the lock that @trx waits for, and add its holders, @session among them, of @other. */
static void reader_lock(struct lock_reader *r, uint64_t trx, uint64_t other, uint64_t session,
			bool named, struct lock_info *info)
{
	struct row_wait wait;

	if (lock_reader_bytes(r, trx + r->places->trx_lock_at, &wait.address, 8) &&
	    lock_reader_bytes(r, wait.address, wait.words, sizeof(wait.words)) &&
	    wait.words[LOCK_OWNER] == trx) {
		info->lock = wait.address;
		if (!named)
			reader_name_lock(r, wait.words, trx, info);
		info->known = reader_row_holders(r, &wait, other, info);
	}
	if (!info->nholders && session)
		lock_reader_keep(r, session, false, true, info);
}

int row_lock_read(struct lock_reader *r, uint64_t session, const struct lock_query *query,
		  struct lock_info *info)
{
	struct mysql_locks *places = r->places;
	uint64_t *words, found = 0, other_session;
	ssize_t n;

	if (!session || (!places->trx_valid && (!query->again || places->failures >= FAILURES_MAX)))
		return -ENOENT;
	words = malloc(SESSION_WORDS * 8);
	n = words ? process_memory_read(&r->memory, session, words, SESSION_WORDS * 8) : 0;
	for (size_t i = 0; !found && (ssize_t)i < n / 8; i++) {
		uint64_t trx = words[i];

		found = reader_session_word(r, session, i, &trx, &other_session);
		if (!found)
			continue;
		places->trx_at = i * 8;
		reader_lock(r, trx, found, other_session, query->named, info);
	}
	free(words);
	places->trx_valid |= found != 0;
	places->failures += !found;
	return found ? 0 : -ENOENT;
}
