/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who sessions are, cached by thread ID until the thread exits. */
#ifndef DB_SESSION_IDENTITY_H
#define DB_SESSION_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "db/engine.h"
#include "db/event.h"

#define IDENTITY_BUCKETS	1024

struct event_application;
struct event_statement;

struct identity_entry {
	struct identity_entry *next;
	struct who who;			/* ->tid is the key; ->application see identity_settle() */
	char renamed[64];		/* the next value of ->application */
	uint64_t renamed_in;		/* start of the statement; 0: none is next */
	bool renamed_failed;
	/* The rest is the caller's: */
	const struct server *server;	/* borrowed; NULL: not searched yet */
	uint32_t target_id;		/* of its file */
	uint32_t owner;			/* 1 + its number, by which the server was found; or 0 */
	uint64_t again_ns;		/* CLOCK_MONOTONIC: one that was not found is searched */
};

/* Empty if all zero. */
struct identity_table {
	struct identity_entry *bucket[IDENTITY_BUCKETS];
};

/*
 * Return the entry of the session of thread @tid. A new one has the names in the process title.
 * Valid until it is dropped; NULL if there is no memory.
 */
struct identity_entry *identity_of(struct identity_table *table, const struct engine *engine,
				   uint32_t tid);

/*
 * Set user, database and client to those in the process title of thread @tid, or to ""; and the
 * kind of backend. Without titles, all sessions are those of clients.
 */
void identity_read(const struct engine *engine, uint32_t tid, struct who *who);

/* Set user, database, client and backend of the session of thread @tid. */
void identity_set(struct identity_table *table, uint32_t tid, const struct who *who);

/* Change the name of the application of the session that sent @event. */
void identity_rename(struct identity_table *table, const struct event_application *event);

/* Make ->application of @entry the name that the client had as it sent statement @event. */
void identity_settle(struct identity_entry *entry, const struct event_statement *event);

/* Set the servers of all entries to NULL. */
void identity_forget_servers(struct identity_table *table);

/* Drop the entry of thread @tid. */
void identity_forget(struct identity_table *table, uint32_t tid);

/* Drop all entries. */
void identity_clear(struct identity_table *table);

#endif
