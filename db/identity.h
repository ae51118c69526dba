/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is connected to each backend, remembered while it lives. */
#ifndef DB_IDENTITY_H
#define DB_IDENTITY_H

#include <stdint.h>

#include "db/engine.h"

#define IDENTITY_BUCKETS	1024

struct identity_entry {
	struct identity_entry *next;
	uint32_t pid;
	struct identity identity;
};

/* All zero is empty. */
struct identity_table {
	struct identity_entry *bucket[IDENTITY_BUCKETS];
};

/*
 * Who is connected to process @pid: what is remembered, or else what its
 * title says now. Never NULL; valid until the entry is forgotten.
 */
const struct identity *identity_of(struct identity_table *table, const struct engine *engine,
				   uint32_t pid);

/* What the title of process @pid says of it; all "" where it says nothing. */
void identity_read(const struct engine *engine, uint32_t pid, struct identity *identity);

/* Remembers @identity for @pid, whatever was remembered of that PID. */
void identity_set(struct identity_table *table, uint32_t pid, const struct identity *identity);

/* The process has ended. */
void identity_forget(struct identity_table *table, uint32_t pid);

/* Forgets all. */
void identity_clear(struct identity_table *table);

#endif
