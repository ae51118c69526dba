// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/table_lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOCK_WORDS	32		/* of a THR_LOCK that are searched */
#define SHARE_WORDS	128		/* of a TABLE_SHARE */
#define DATA_MAX	1024		/* of one lock */
#define NAME_BYTES	193		/* 64 characters and a NUL */

/*
 * A THR_LOCK_DATA is one use of a table: its owner, the next one in its list, the pointer to it,
 * the lock, and the condition for which it waits, or 0. Behind these, among others, is its TABLE.
 */
enum {
	DATA_OWNER, DATA_NEXT, DATA_PREVIOUS, DATA_LOCK, DATA_CONDITION, DATA_MORE,
	DATA_WORDS = 10
};

#define OWNER_SESSION	16		/* offset of the THD in a THR_LOCK_INFO */

/* Words of the four lists of a THR_LOCK: the first element, or 0, and the end of the last one. */
enum { LIST_READ_WAITS, LIST_READS = 2, LIST_WRITE_WAITS = 4, LIST_WRITES = 6, LIST_WORDS = 8 };

/* Read the THR_LOCK_DATA at @address to @words. Return whether it is in a list of @lock. */
static bool reader_data(const struct lock_reader *r, uint64_t address, uint64_t lock,
			uint64_t words[DATA_WORDS])
{
	uint64_t there;

	return lock_reader_bytes(r, address, words, DATA_WORDS * 8) && words[DATA_LOCK] == lock &&
	       lock_reader_bytes(r, words[DATA_PREVIOUS], &there, 8) && there == address;
}

/* Return the THD of the owner, or 0. */
static uint64_t reader_session(const struct lock_reader *r, const uint64_t words[DATA_WORDS])
{
	uint64_t session;

	if (!lock_reader_bytes(r, words[DATA_OWNER] + OWNER_SESSION, &session, 8) ||
	    !lock_reader_is_session(r, session))
		return 0;
	return session;
}

/* Return the offset in words of the lists in the THR_LOCK at @lock, or 0. */
static size_t reader_lists(const struct lock_reader *r, uint64_t lock,
			   const uint64_t words[LOCK_WORDS])
{
	uint64_t data[DATA_WORDS];

	for (size_t at = 1; at + LIST_WORDS <= LOCK_WORDS; at++) {
		size_t i = at;

		/* Each is empty, or begins with an element that points back. */
		while (i < at + LIST_WORDS &&
		       (words[i] ? reader_data(r, words[i], lock, data) &&
				   data[DATA_PREVIOUS] == lock + i * 8 :
				   words[i + 1] == lock + i * 8))
			i += 2;
		if (i == at + LIST_WORDS)
			return at;
	}
	return 0;
}

/* A walk through the lists of a lock. */
struct walk {
	const struct lock_reader *r;
	struct lock_info *info;
	bool keep;			/* add the sessions to the holders */
	uint64_t sum;			/* of what was found */
};

/*
 * Walk the list that begins with @data, up to @until, of those who wait or of those who do not.
 * Return whether @until, or the end of the list, was found.
 */
static bool walk_list(struct walk *walk, uint64_t data, uint64_t until, bool waits)
{
	uint64_t words[DATA_WORDS], session;

	for (int n = 0; data && data != until; data = words[DATA_NEXT]) {
		if (n++ == DATA_MAX || !reader_data(walk->r, data, walk->info->lock, words) ||
		    !words[DATA_CONDITION] == waits)
			return false;
		session = reader_session(walk->r, words);
		if (!session)
			return false;
		walk->sum = walk->sum * 31 + (data ^ session);
		if (walk->keep && session != walk->info->session)
			lock_reader_keep(walk->r, session, waits, false, walk->info);
	}
	return true;
}

/*
 * Walk the lists of those for whom the use of the table at @data waits. A read waits for those who
 * write, and lets those go first who wait to. Return whether these were all.
 */
static bool walk_lock(struct walk *walk, uint64_t data)
{
	uint64_t words[LOCK_WORDS], *lists;
	size_t at = 0;

	if (lock_reader_bytes(walk->r, walk->info->lock, words, sizeof(words)))
		at = reader_lists(walk->r, walk->info->lock, words);
	lists = words + at;
	walk->sum = 0;
	return at && walk_list(walk, lists[LIST_WRITES], 0, false) &&
	       walk_list(walk, lists[LIST_READS], 0, false) &&
	       walk_list(walk, lists[LIST_WRITE_WAITS], data, true);
}

/* Return whether @share is a TABLE_SHARE's address: it has three names, pointer and length each. */
static bool reader_name(const struct lock_reader *r, uint64_t share, struct lock_info *info)
{
	char names[2 * NAME_BYTES];
	uint64_t words[SHARE_WORDS];

	if (!lock_reader_bytes(r, share, words, sizeof(words)))
		return false;
	for (size_t i = 0; i + 5 < SHARE_WORDS; i++) {
		uint64_t db = words[i + 3], table = words[i + 5];

		/* The key consists of both: that of the database and that of the table. */
		if (!words[i] || words[i + 2] != words[i] || db >= NAME_BYTES ||
		    table >= NAME_BYTES || words[i + 4] != words[i] + db + 1 ||
		    words[i + 1] != db + table + 2 || !*r->reads)
			continue;
		--*r->reads;
		if (process_memory_read(&r->memory, words[i], names, words[i + 1]) !=
		    (ssize_t)words[i + 1] || strnlen(names, db + 1) != db ||
		    strnlen(names + db + 1, table + 1) != table)
			continue;
		names[db] = '.';
		snprintf(info->object, sizeof(info->object), "%.*s",
			 (int)sizeof(info->object) - 1, names);
		return true;
	}
	return false;
}

int table_lock_read(const struct lock_reader *r, uint64_t data, uint64_t session,
		    struct lock_info *info)
{
	struct walk walk = { .r = r, .info = info, .keep = true }, again = { .r = r, .info = info };
	uint64_t words[DATA_WORDS], lock, share;

	if (!lock_reader_bytes(r, data + DATA_LOCK * 8, &lock, 8) ||
	    !reader_data(r, data, lock, words) || !words[DATA_CONDITION] ||
	    reader_session(r, words) != session)
		return -ENOENT;
	info->lock = lock;
	info->session = session;
	for (size_t i = DATA_MORE; i < DATA_WORDS && !*info->object; i++)
		if (lock_reader_bytes(r, words[i], &share, 8))
			reader_name(r, share, info);
	info->known = walk_lock(&walk, data);
	/* What one runs now is not what it ran when it had the lock. */
	walk_lock(&again, data);
	if (walk.sum != again.sum) {
		lock_info_drop(info);
		info->known = false;
	}
	if (reader_data(r, data, lock, words) && words[DATA_CONDITION])
		return 0;
	lock_info_drop(info);
	*info->object = '\0';
	return -ENOENT;
}
