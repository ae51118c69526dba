/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* User, database, client and container of sessions, cached by thread id until the thread exits. */
#ifndef DB_IDENTITY_H
#define DB_IDENTITY_H

#include <stdint.h>

#include "db/engine.h"

#define IDENTITY_BUCKETS	1024

struct server;

struct identity_entry {
	struct identity_entry *next;
	uint32_t tid;
	struct identity identity;
	char container[64];
	const struct server *server;	/* borrowed; NULL: unknown */
};

/* Empty if all zero. */
struct identity_table {
	struct identity_entry *bucket[IDENTITY_BUCKETS];
};

/*
 * Return the identity of the session of thread @tid: cached, or else from its process title. Never
 * NULL; valid until the entry is dropped.
 */
const struct identity *identity_of(struct identity_table *table, const struct engine *engine,
				   uint32_t tid);

/* Parse the process title of thread @tid; all "" if it has no identity. */
void identity_read(const struct engine *engine, uint32_t tid, struct identity *identity);

/* Cache @identity for @tid in place of a former one. */
void identity_set(struct identity_table *table, uint32_t tid, const struct identity *identity);

/* Return the container that thread @tid runs in, "" if none. Valid as above. */
const char *identity_container(struct identity_table *table, uint32_t tid);

/* Return where the server of thread @tid is kept, or NULL. Valid as above. */
const struct server **identity_server(struct identity_table *table, uint32_t tid);

/* Set the servers of all entries to NULL. */
void identity_forget_servers(struct identity_table *table);

/* Drop the entry of thread @tid. */
void identity_forget(struct identity_table *table, uint32_t tid);

/* Drop all entries. */
void identity_clear(struct identity_table *table);

#endif
