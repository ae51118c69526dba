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
	uint64_t client, replication, query, transaction;
	uint64_t wait, proc;			/* the wait event: see postgres_wait() */
	unsigned int wait_at;
};

/* Return the pointer in @variable, as linked; 0: none, or it cannot be read. */
uint64_t postgres_backend_pointer(const struct process_memory *memory, uint64_t variable);

/* Return whether a process serves a client, other than for replication. */
bool postgres_backend_is_session(const struct postgres_ps *ps, const struct process_memory *memory);

/* Set user, database and client of the process ->pid, whose memory is @memory. */
void postgres_backend_who(const struct postgres_ps *ps, const struct process_memory *memory,
		     const struct engine *engine, struct who *who);

#endif
