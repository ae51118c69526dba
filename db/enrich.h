/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Statement enrichment: turn the records of the programs into statements and transactions, with
 * their server, session and time breakdown.
 */
#ifndef DB_ENRICH_H
#define DB_ENRICH_H

#include "db/discover/discover.h"
#include "db/discover/servers.h"
#include "db/discover/states.h"
#include "db/session/breakdown.h"
#include "db/session/identity.h"
#include "db/session/sessions.h"
#include "db/sink.h"

/* All of it is borrowed. */
struct enrich_config {
	const struct runtime *runtime;
	struct discover *discover;	/* the targets of events; their trust is updated */
	const struct sessions *sessions;
	bool identify;			/* resolve servers and sessions */
	bool breakdown;			/* match time breakdowns to statements */
	bool events;			/* .. and name the wait events in them */
	bool transactions;		/* count them, not statements */
	struct sink *sink;		/* open */
};

/* Closed if all zero. */
struct enrich {
	struct enrich_config config;
	struct identity_table identities;
	struct breakdown_pending breakdowns;
	struct breakdown_waits waits;
	struct states states;		/* of struct ps_ops, for the names of wait events */
	char event[BREAKDOWN_WAITS][WAIT_EVENT];	/* of the current statement */
	uint64_t names_ns;		/* CLOCK_MONOTONIC: the time to read these is used .. */
	uint64_t names_owner_ns[OWNERS];	/* .. up until then, for all and for each owner */
	struct servers servers;
	struct who who;			/* of the current event, if it differs from its session */
	uint64_t text_dropped, why_dropped;
	uint64_t detach_ns;		/* programs' clock when detaching began; 0: not yet */
	uint64_t unseen;		/* those counted that ended later and are not reported */
	uint64_t half_seen;		/* those of them that began earlier */
};

/* Return 0, or -errno with the cause in @error. Call enrich_close() in both cases. */
int enrich_open(struct enrich *enrich, const struct enrich_config *config, struct error *error);

/* Free what @enrich owns. */
void enrich_close(struct enrich *enrich);

/*
 * Each of the following gives its event to the sink. First, a statement that has ended, which is
 * that of @nested unless this is NULL.
 */
void enrich_statement(struct enrich *enrich, const struct event_statement *event,
		      const struct event_nested *nested);

/*
 * The statement of @session that is running, or was suspended, at @now_ns of the programs' clock.
 * Its text is valid only with @has_text.
 */
void enrich_running(struct enrich *enrich, const struct session *session, bool has_text,
		    uint64_t now_ns);

/* A transaction that has ended. */
void enrich_transaction(struct enrich *enrich, const struct event_transaction *event);

/*
 * The transaction @event that @session has open at @now_ns of the programs' clock. The text
 * of its current statement is valid only with @has_text.
 */
void enrich_open_transaction(struct enrich *enrich, const struct event_transaction *event,
			     const struct session *session, bool has_text, uint64_t now_ns);

/* Keep the identity of a session, as the programs read it from the server's memory. */
void enrich_identity(struct enrich *enrich, const struct event_identity *event);

/*
 * Keep who the session of process @process of @target is, and its server: the process may exit
 * after a statement.
 */
void enrich_process(struct enrich *enrich, const struct target *target,
		    const struct process *process);

/* Keep the name of a session's application. */
void enrich_application(struct enrich *enrich, const struct event_application *event);

#endif
