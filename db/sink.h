/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way of an event, whatever its kind and whether it was traced or is read from a recording:
 * select it, redact its texts or find what is in them, count it, show it.
 */
#ifndef DB_SINK_H
#define DB_SINK_H

#include "db/count/histogram.h"
#include "db/event.h"
#include "db/filter.h"
#include "db/locks/info.h"
#include "db/loss.h"
#include "sql/tags.h"
#include "sql/traceparent.h"

struct ps_session;

/* All of it is borrowed. */
struct sink_config {
	struct filter filter;		/* only these events */
	bool tags;			/* set ->tags of statements, unless ->redact */
	bool spans;			/* set ->parent of statements */
	bool nested;			/* also statements in routines */
	bool redact;			/* remove literals and comments from texts */
	bool redact_spans;		/* only from ->span_text of statements */
	/* Count durations of statements in this unit instead of showing them; 0: show. */
	uint64_t stat_unit_ns;
	enum stat_by stat_by;
	bool stat_waits;		/* count those of ->waits of statements instead */
	bool records;			/* with ->stat_unit_ns: show statements as well */
	struct owners *owners;		/* what has no room is their loss */
	void *arg;
	/* Called for each statement or transaction. Return whether it was shown. */
	bool (*statement)(void *arg, const struct statement *statement);
	/* Called for each lock wait; NULL if there are none. Return false if there is no room. */
	bool (*wait)(void *arg, const struct lock_wait *wait);
};

/* Closed if all zero. */
struct sink {
	struct sink_config config;
	struct histogram histogram;	/* open if ->stat_unit_ns */
	uint64_t lost[LOSSES];		/* of what was shown */
	/* Of the current event. */
	struct traceparent parent;
	struct tags tags;
	struct lock_info info;		/* redacted; its texts are in ->text */
	char *text;			/* of ->text_size, owned */
	size_t text_size;
};

/* Return 0 or -ENOMEM. sink_close() ends it in both cases. */
int sink_open(struct sink *sink, const struct sink_config *config);

void sink_close(struct sink *sink);

/*
 * Take a statement or transaction, whose members that depend on its text are set. @owner: whose
 * share of the histogram it takes. Return whether it was shown.
 */
bool sink_statement(struct sink *sink, struct statement *s, uint16_t owner);

void sink_wait(struct sink *sink, const struct lock_wait *wait);

/* Redact the text of a session in place. Return whether the session is selected. */
bool sink_session(const struct sink_config *config, struct ps_session *session);

#endif
