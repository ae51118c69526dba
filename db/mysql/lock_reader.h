/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bounded reads of a server's sessions, for its metadata and row locks. */
#ifndef DB_MYSQL_LOCK_READER_H
#define DB_MYSQL_LOCK_READER_H

#include "db/locks/info.h"
#include "db/mysql/lock_places.h"
#include "db/session/backend_state.h"
#include "host/process_memory.h"

/* A server process whose memory is read. */
struct lock_reader {
	struct mysql_locks *places;
	const struct backend_places *backend;
	struct process_memory memory;
	struct object_owner owner;
	size_t size;			/* of a text */
	uint64_t session_class;		/* first word of a THD: the address of its vtable */
	unsigned int *reads;		/* left: a hostile process cannot cause endless reading */
	/*
	 * Metadata locks whose holders are not read again: they are kept for all sessions, so that
	 * they include who waits itself. NULL: the holders are for one wait.
	 */
	const uint64_t *known;
	size_t nknown;
	size_t context_at, lock_at;	/* offsets in an MDL_ticket */
};

/* Read @size bytes at an address that must be aligned to 8. Return whether all could be read. */
bool lock_reader_bytes(const struct lock_reader *r, uint64_t address, void *buf, size_t size);

/* Read the string at @address. Return whether it has an end within @size bytes. */
bool lock_reader_string(const struct lock_reader *r, uint64_t address, char *text, size_t size);

bool lock_reader_is_session(const struct lock_reader *r, uint64_t address);

/* Return whether @lock is one of ->known. */
bool lock_reader_knows(const struct lock_reader *r, uint64_t lock);

/* Return the address of the THD that contains MDL_context @context; 0: unknown. */
uint64_t lock_reader_owner(const struct lock_reader *r, uint64_t context);

/*
 * Call @each for the sessions of the server's Global_THD_manager (MySQL), which has them in arrays
 * of its own or, if they are too many for these, in arrays that it points to. Return whether these
 * were all.
 */
bool lock_reader_sessions(const struct lock_reader *r, void (*each)(void *arg, uint64_t session),
			  void *arg);

/*
 * Read the connection id and the statement of the THD at @session, which may be 0. @backend owns
 * the text.
 */
void lock_reader_backend(const struct lock_reader *r, uint64_t session,
			 struct lock_backend *backend);

/*
 * Add the session to the lock holders or, if @queued, to those ahead in the queue, once. @in_trx:
 * it holds the lock until the end of a transaction.
 */
void lock_reader_keep(const struct lock_reader *r, uint64_t session, bool queued, bool in_trx,
		      struct lock_info *info);

#endif
