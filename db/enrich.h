/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Statement enrichment: turn the records of the programs into statements; add user, database,
 * client, container and time breakdown; filter, redact, and report or count them.
 */
#ifndef DB_ENRICH_H
#define DB_ENRICH_H

#include "db/count/histogram.h"
#include "db/discover/discover.h"
#include "db/discover/servers.h"
#include "db/filter.h"
#include "db/session/breakdown.h"
#include "db/session/identity.h"
#include "db/session/sessions.h"
#include "db/statement.h"
#include "db/texts.h"

/* All of it is borrowed. */
struct enrich_config {
	const struct runtime *runtime;
	struct discover *discover;	/* the targets of events; their trust is updated */
	const struct sessions *sessions;
	struct texts_config texts;
	bool identify;			/* resolve user, database, client and container */
	struct filter filter;		/* only these statements */
	bool find_server;
	bool breakdown;			/* match time breakdowns to statements */
	/* Count durations in this unit, or waits, instead of reporting statements; 0: report. */
	uint64_t stat_unit_ns;
	enum stat_by stat_by;
	bool records;			/* with ->stat_unit_ns: report statements as well */
	bool wait;			/* with ->stat_unit_ns: count waits within statements */
	/* Called for each statement. Return whether it was shown. */
	bool (*statement)(void *arg, const struct statement *statement);
	void *arg;
};

/* Closed if all zero. */
struct enrich {
	struct enrich_config config;
	struct identity_table identities;
	struct breakdown_pending breakdowns;
	struct breakdown_waits waits;
	struct servers servers;
	struct histogram histogram;	/* open if ->stat_unit_ns */
	struct texts texts;
	uint64_t text_unreadable, text_truncated, text_dropped, why_dropped;
	uint64_t detach_ns;		/* programs' clock when detaching began; 0: not yet */
	uint64_t unseen;		/* statements that ended later and are not reported */
	uint64_t half_seen;		/* those of them that began earlier */
};

/* Return 0, or -errno with the cause in @error. Call enrich_close() in both cases. */
int enrich_open(struct enrich *enrich, const struct enrich_config *config, struct error *error);

/* Free what @enrich owns. */
void enrich_close(struct enrich *enrich);

/* Report or count a statement that has ended. */
void enrich_statement(struct enrich *enrich, const struct event_statement *event);

/*
 * Report a statement that is running, or was suspended, at @now_ns of the programs' clock. Its text
 * is valid only with @has_text.
 */
void enrich_running(struct enrich *enrich, const struct event_statement *event, bool has_text,
		    uint64_t now_ns);

/* Report a transaction that has ended. */
void enrich_transaction(struct enrich *enrich, const struct event_transaction *event);

/*
 * Report the transaction @event that @session has open at @now_ns of the programs' clock. The text
 * of its current statement is valid only with @has_text.
 */
void enrich_open_transaction(struct enrich *enrich, const struct event_transaction *event,
			     const struct session *session, bool has_text, uint64_t now_ns);

/* Keep the identity of a session, as the programs read it from the server's memory. */
void enrich_identity(struct enrich *enrich, const struct event_identity *event);

/* Keep the name of a session's application. */
void enrich_application(struct enrich *enrich, const struct event_application *event);

#endif
