/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User, database, client, application and container of sessions, cached by thread ID until the
 * thread exits.
 */
#ifndef DB_SESSION_IDENTITY_H
#define DB_SESSION_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "db/engine.h"

#define IDENTITY_BUCKETS	1024

struct event_application;
struct event_statement;
struct server;

struct identity_entry {
	struct identity_entry *next;
	uint32_t tid;
	struct identity identity;
	char container[64];
	char application[64];
	/* The next value of ->application, see identity_settle(). */
	char renamed[64];
	uint64_t renamed_in;		/* start of the statement; 0: none is next */
	bool renamed_failed;
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

/* Change the name of the application of a session that has an entry. */
void identity_rename(struct identity_table *table, const struct event_application *event);

/* Return the name of the application that sent statement @event, "" if unknown. Valid as above. */
const char *identity_application(struct identity_table *table, const struct event_statement *event);

/* Set the servers of all entries to NULL. */
void identity_forget_servers(struct identity_table *table);

/* Drop the entry of thread @tid. */
void identity_forget(struct identity_table *table, uint32_t tid);

/* Drop all entries. */
void identity_clear(struct identity_table *table);

#endif
