/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of lock types and of LWLock tranches, from the memory of a PostgreSQL server. */
#ifndef DB_POSTGRES_LOCK_NAMES_H
#define DB_POSTGRES_LOCK_NAMES_H

#include "db/postgres/locks.h"

/* Find in @elf what lock_names_read() needs; after postgres_locks_find(). */
void lock_names_find(const struct elf *elf, struct postgres_locks *places);

/* Read ->kind and ->tranche from process @pid, a server of release @version ("15.14"). */
void lock_names_read(struct postgres_locks *places, uint32_t pid, const char *version);

#endif
