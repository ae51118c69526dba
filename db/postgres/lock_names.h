/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of lock types and of LWLock tranches, from the memory of a PostgreSQL server. */
#ifndef DB_POSTGRES_LOCK_NAMES_H
#define DB_POSTGRES_LOCK_NAMES_H

#include "db/postgres/locks.h"
#include "host/process_memory.h"

/* Find in @elf what lock_names_read() needs; after postgres_locks_find(). */
void lock_names_find(const struct elf *elf, struct postgres_locks *places);

/* Read ->kind and ->tranche from the memory of a process of release @version ("15.14"). */
void lock_names_read(struct postgres_locks *places, const struct process_memory *memory,
		     const char *version);

#endif
