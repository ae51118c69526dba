/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turning the records of the programs into statements: add who is connected, the container and the
 * time breakdown, filter, redact, and report or count them.
 */
#ifndef DB_ENRICH_H
#define DB_ENRICH_H

#include "db/breakdown.h"
#include "db/discover.h"
#include "db/histogram.h"
#include "db/identity.h"
#include "db/sessions.h"
#include "db/statement.h"
#include "sql/regex.h"
#include "sql/traceparent.h"

/* All of it is borrowed. */
struct enrich_config {
	const struct runtime *runtime;
	struct discover *discover;	/* the targets of events; their ->trust is updated */
	const struct sessions *sessions;
	uint32_t text_bytes;		/* of a statement, at most */
	bool identify;			/* look user, database, client and container up */
	const char *user, *database, *container;	/* only statements of these; NULL: all */
	const struct regex *match;	/* what the text must match; NULL: anything */
	bool parents;			/* look for a traceparent in the text */
	bool redact;			/* remove literals and comments from texts */
	bool any_dialect;		/* the server's dialect is not known: redact for each */
	bool breakdown;			/* keep time breakdowns for their statements */
	/* Count durations in this unit, or waits, instead of reporting statements; 0: report. */
	uint64_t stat_unit_ns;
	enum stat_by stat_by;
	bool wait;
	/* Called for each statement. Return whether it was shown. */
	bool (*statement)(void *arg, const struct statement *statement);
	void *arg;
};

/* All zero is closed. */
struct enrich {
	struct enrich_config config;
	struct identity_table identities;
	struct breakdown_pending breakdowns;
	struct breakdown_waits waits;
	struct histogram histogram;	/* open if ->stat_unit_ns */
	struct traceparent parent;	/* of the current statement */
	char *redacted;			/* room for a text; NULL: texts are reported as they are */
	uint64_t text_unreadable, text_truncated;
	uint64_t detach_ns;		/* the programs' clock when detaching began; 0: not yet */
	uint64_t unseen;		/* statements that ended after that, which are not reported */
	uint64_t half_seen;		/* of these, those that began before it */
};

/* Return 0, or -errno and the cause in @error. enrich_close() ends it either way. */
int enrich_open(struct enrich *enrich, const struct enrich_config *config, struct error *error);

void enrich_close(struct enrich *enrich);

/* Report or count a statement that has ended. */
void enrich_statement(struct enrich *enrich, const struct event_statement *event);

/* Report a statement that runs at @now_ns of the programs' clock; only @has_text: with its text. */
void enrich_running(struct enrich *enrich, const struct event_statement *event, bool has_text,
		    uint64_t now_ns);

/* Remember who is connected, as the programs read it from the server's memory. */
void enrich_identity(struct enrich *enrich, const struct event_identity *event);

#endif
