// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/row_lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/mysql/names.h"

#define SESSION_WORDS	5120		/* of a THD that are searched */
#define TRX_WORDS	320		/* of a trx_t that are searched */
#define TRX_FIRST	2		/* first word after its list pointers */
#define LOCK_WORDS	8		/* of a lock_t that are searched, */
#define INDEX_WORDS	16		/* .. of a dict_index_t, */
#define TABLE_WORDS	64		/* .. of a dict_table_t, */
#define TABLE_NAME_WORDS	8	/* .. of which for its name */
#define FAILURES_MAX	64

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
	char name[LOCK_RELATION];
	uint64_t words[INDEX_WORDS];

	if (!lock_reader_bytes(r, index, words, sizeof(words)))
		return false;
	for (size_t i = 1; i < INDEX_WORDS; i++)
		if (reader_name(r, words[i - 1], true, name, sizeof(name)) &&
		    reader_table(r, words[i], info)) {
			memcpy(info->index, name, sizeof(name));
			return true;
		}
	return false;
}

/* Find the lock that transaction @trx waits for and, unless @named, its table and index. */
static void reader_row(const struct lock_reader *r, uint64_t trx, bool named,
		       struct lock_info *info)
{
	uint64_t words[LOCK_WORDS];

	if (!lock_reader_bytes(r, trx + r->places->trx_wait_at - 8, &info->lock, 8) ||
	    !lock_reader_bytes(r, info->lock, words, sizeof(words)) || words[0] != trx || named)
		return;
	for (size_t i = 1; i < LOCK_WORDS; i++)
		if (words[i] != trx && (reader_indexed(r, words[i], info) ||
					reader_table(r, words[i], info)))
			return;
}

/*
 * Return the address of the THD whose transaction the one at @trx, of @session, waits for, or 0.
 *
 * In a trx_t, the pointer to that transaction (offset @wait_at) follows a pointer to the awaited
 * lock, which begins with a pointer to its owner @trx. That distinguishes a trx_t from other
 * structures that point to a THD and to their like, such as an MDL_ticket, and a transaction that
 * waits from one that does not.
 */
static uint64_t reader_trx(struct lock_reader *r, uint64_t trx, uint64_t session, size_t session_at,
			   size_t wait_at)
{
	uint64_t wait[2], other, there;

	if (!lock_reader_bytes(r, trx + session_at, &there, 8) || there != session ||
	    !lock_reader_bytes(r, trx + wait_at - 8, wait, sizeof(wait)) ||
	    !lock_reader_bytes(r, wait[0], &there, 8) || there != trx)
		return 0;
	other = wait[1];
	if (other == trx ||
	    !lock_reader_bytes(r, other + session_at, &there, 8) || there == session ||
	    !lock_reader_is_session(r, there))
		return 0;
	return there;
}

/* The same if the offsets are still unknown: try all of them, and keep those that fit. */
static uint64_t reader_trx_learn(struct lock_reader *r, uint64_t trx, uint64_t session)
{
	uint64_t words[TRX_WORDS], found;

	if (!lock_reader_bytes(r, trx, words, sizeof(words)))
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
static uint64_t reader_session_word(struct lock_reader *r, uint64_t session, size_t i,
				    uint64_t word)
{
	const struct mysql_locks *places = r->places;

	if (places->trx_valid)
		return i == places->trx_at / 8 ? reader_trx(r, word, session,
							    places->trx_session_at,
							    places->trx_wait_at) : 0;
	return word - session >= SESSION_WORDS * 8 ? reader_trx_learn(r, word, session) : 0;
}

int row_lock_read(struct lock_reader *r, uint64_t session, const struct lock_query *query,
		  struct lock_info *info)
{
	struct mysql_locks *places = r->places;
	uint64_t *words, found = 0;
	ssize_t n;

	if (!session || !places->has_waited ||
	    (!places->trx_valid && (!query->again || places->failures >= FAILURES_MAX)))
		return -ENOENT;
	words = malloc(SESSION_WORDS * 8);
	n = words ? process_memory_read(&r->memory, session, words, SESSION_WORDS * 8) : 0;
	for (size_t i = 0; !found && (ssize_t)i < n / 8; i++) {
		found = reader_session_word(r, session, i, words[i]);
		if (!found)
			continue;
		places->trx_at = i * 8;
		reader_row(r, words[i], query->named, info);
	}
	free(words);
	places->trx_valid |= found != 0;
	places->failures += !found;
	if (found)
		lock_reader_keep(r, found, false, true, info);
	info->known = found;
	return found ? 0 : -ENOENT;
}
