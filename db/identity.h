/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is connected, by the thread that serves it, remembered while that lives. */
#ifndef DB_IDENTITY_H
#define DB_IDENTITY_H

#include <stdint.h>

#include "db/engine.h"

#define IDENTITY_BUCKETS	1024

struct identity_entry {
	struct identity_entry *next;
	uint32_t tid;
	struct identity identity;
	char container[64];
};

/* All zero is empty. */
struct identity_table {
	struct identity_entry *bucket[IDENTITY_BUCKETS];
};

/*
 * Who is connected to thread @tid: what is remembered, or else what its
 * title says now. Never NULL; valid until the entry is forgotten.
 */
const struct identity *identity_of(struct identity_table *table, const struct engine *engine,
				   uint32_t tid);

/* What the title of thread @tid says of it; all "" where it says nothing. */
void identity_read(const struct engine *engine, uint32_t tid, struct identity *identity);

/* Remembers @identity for @tid, whatever was remembered of that TID. */
void identity_set(struct identity_table *table, uint32_t tid, const struct identity *identity);

/* The container that thread @tid runs in, "" where it is in none. Valid as above. */
const char *identity_container(struct identity_table *table, uint32_t tid);

/* The thread has ended. */
void identity_forget(struct identity_table *table, uint32_t tid);

/* Forgets all. */
void identity_clear(struct identity_table *table);

#endif
