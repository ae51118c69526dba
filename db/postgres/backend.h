/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is read from the memory of one backend of PostgreSQL. */
#ifndef DB_POSTGRES_BACKEND_H
#define DB_POSTGRES_BACKEND_H

#include "db/postgres/locks.h"
#include "db/postgres/wait_names.h"
#include "host/process_memory.h"

struct engine;
struct who;

struct postgres_ps {
	struct postgres_locks locks;
	struct wait_names waits;
	bool named;				/* both have the names */
	/* Variables as linked; 0: missing. */
	uint64_t query, transaction;
	uint64_t contexts;			/* TopMemoryContext */
	uint64_t applies;			/* in_remote_transaction */
	uint64_t wait, proc;			/* the wait event: see postgres_wait() */
	unsigned int wait_at;
};

/* Set user, database, client and backend of the process ->pid of a client, with @memory. */
void postgres_backend_who(const struct postgres_ps *ps, const struct process_memory *memory,
			  const struct engine *engine, struct who *who);

/*
 * The same of another process, whose entry of pg_stat_activity begins with the ENTRY_LEAST bytes
 * @entry. Return the PID of the leader of a parallel worker, as the server sees it, or 0.
 */
uint32_t postgres_backend_internal(const struct postgres_ps *ps,
				   const struct process_memory *memory, const char *entry,
				   struct who *who);

/* Return what a process that runs a statement without a text does; NULL: unknown. */
const char *postgres_backend_text(const struct postgres_ps *ps,
				  const struct process_memory *memory);

#endif
