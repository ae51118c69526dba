/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses and offsets of the locks of a MySQL or MariaDB server. */
#ifndef DB_MYSQL_LOCK_PLACES_H
#define DB_MYSQL_LOCK_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/mysql/kind.h"

#define MYSQL_NAMESPACE_WORDS	256	/* limit of ->namespace_words */

/* Addresses and offsets for a server's file. */
struct mysql_locks {
	bool (*is_program)(const char *name);	/* for process_read(); the caller sets it */
	uint64_t lowest;	/* lowest address of its segments, as linked */
	uint64_t sessions;	/* first word of a THD, as linked; 0: unknown */
	int64_t options;	/* offset of the option bits in a THD; -1: unknown */
	struct mysql_kinds kinds;
	/* Names of the namespaces of metadata locks, as linked; 0: unknown. */
	uint64_t namespaces;
	unsigned int namespace_words;
	/* MySQL from 5.7: most metadata locks are not in the lock's list, but only counted. */
	bool fast_path;
	/* Variables of its Global_THD_manager and the number of sessions, as linked; 0: unknown. */
	uint64_t manager, session_count;
	int64_t own_context;	/* learned: see object_context() */
	/*
	 * Learned: offset of the trx_t in a THD; in a trx_t of its THD, of the awaited lock, of the
	 * trx_t that has it, and of the list of its locks, 0 if that is unknown.
	 */
	size_t trx_at, trx_session_at, trx_lock_at, trx_wait_at, trx_locks_at;
	size_t context_at;	/* learned: offset of the MDL_context in a THD; 0: unknown */
	unsigned int failures;	/* attempts to learn where a trx_t is that failed */
	bool trx_valid;		/* they were learned */
	bool trx_behind;	/* MySQL: the THD points to a pointer to the trx_t */
};

#endif
