/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was seen, and what was lost of it. A loss is one row of LOSS_ROWS(): the summary, JSON,
 * metrics, recordings, the report and the check of the manual go by it.
 */
#ifndef DB_LOSS_H
#define DB_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/event.h"
#include "loader/owners.h"

struct runtime;

/* Groups of losses that a command has, beside those of the buffer and the tables. */
#define LOSSES_OF_SESSIONS	0x1	/* sessions, and starts and ends of statements */
#define LOSSES_OF_TEXTS		0x2
#define LOSSES_OF_VALUES	0x4	/* values and conditions of probes */
#define LOSSES_OF_LIMIT		0x8	/* left out for an overhead limit */
#define LOSSES_OF_BREAKDOWNS	0x10	/* of a statement that was not lost */
#define LOSSES_OF_SAMPLES	0x20	/* of sessions, instead of probes */

/*
 * One row each, in the order of the output: the name in enum loss; in JSON and metrics; the words
 * in messages, unit and reason; the groups, 0: of each command; enum counter of the programs, 0:
 * counted in user space. The manual explains them.
 */
#define LOSS_ROWS(ROW)								\
	ROW(RING_FULL, "ring_full", "events (buffer full)", 0, LOST_RING_FULL)	\
	ROW(TABLE_FULL, "table_full", "probe hits (table full)", 0, LOST_TABLE_FULL) \
	ROW(WHO_UNKNOWN, "who_unknown", "session records", LOSSES_OF_SESSIONS, LOST_WHO) \
	ROW(START_WITHOUT_END, "start_without_end", "starts without an end",	\
	    LOSSES_OF_SESSIONS, LOST_START_WITHOUT_END)				\
	ROW(END_WITHOUT_START, "end_without_start", "ends without a start",	\
	    LOSSES_OF_SESSIONS, LOST_END_WITHOUT_START)				\
	ROW(TEXT_UNREADABLE, "text_unreadable", "unreadable texts", LOSSES_OF_TEXTS, 0) \
	ROW(TEXT_TRUNCATED, "text_truncated", "truncated texts", LOSSES_OF_TEXTS, 0) \
	ROW(VALUE_UNREADABLE, "value_unreadable", "unknown values", LOSSES_OF_VALUES, 0) \
	ROW(UNDECIDED, "undecided", "hits (unknown values in the filter)",	\
	    LOSSES_OF_VALUES, LOST_UNDECIDED)					\
	ROW(TEXT_DROPPED, "text_dropped", "texts (overhead limit)", LOSSES_OF_LIMIT, 0) \
	ROW(WHY_DROPPED, "why_dropped", "time breakdowns",			\
	    LOSSES_OF_LIMIT | LOSSES_OF_BREAKDOWNS, 0)				\
	ROW(LATE_SAMPLES, "late_samples", "samples (too late)", LOSSES_OF_SAMPLES, 0) \
	ROW(NOT_SAMPLED, "not_sampled", "sessions (track_activities is off)",	\
	    LOSSES_OF_SAMPLES, 0)

#define LOSS_OF_ROW(loss, ...) LOSS_ ## loss,
enum loss { LOSS_ROWS(LOSS_OF_ROW) LOSSES };
#undef LOSS_OF_ROW

struct loss_row {
	const char *name, *words;
	unsigned int group, counter;
};

extern const struct loss_row loss_rows[LOSSES];

/* Counts since the start of statements and losses. */
struct summary {
	uint64_t statements, printed;
	uint64_t lost[LOSSES];
	uint64_t untraced_ns;	/* time without probes, for the overhead limit */
	uint64_t unseen_ns;	/* statements shorter than this are not sampled; 0: there is none */
	uint64_t boundary;	/* statements that ran when tracing began or ended: not a loss */
	const char *printed_noun;	/* unit of ->printed, "waits"; NULL: as ->statements */
	struct owners_report users;	/* losses by the user of the traced process */
	struct owners_report servers;	/* by this and by its file; not of the command trace */
	struct server files[OWNERS_REPORTED];	/* of the rows of ->servers; no engine: unknown */
};

/* Add what the programs of @rt count from counter @first on: 0 or LOCK_COUNTERS. */
void loss_count(struct summary *summary, const struct runtime *rt, uint32_t first);

/* Add what is counted in user space. */
void loss_add(struct summary *summary, const struct owners *owners);

/* Add those of statements and what is counted in user space, and by whom all is. */
void loss_read(struct summary *summary, const struct runtime *rt);

/* Add up the rows of ->servers that are of one user and of files with one path. */
void loss_merge(struct summary *summary);

/* Return whether @loss is one of a command with the groups @groups. */
bool loss_is_of(enum loss loss, unsigned int groups);

/* Return whether anything was lost. */
bool loss_any(const struct summary *summary);

/* Return the number of losses other than those of texts and values. */
uint64_t loss_events(const struct summary *summary);

/* Return the name of enum counter @counter in the losses of a user, or NULL if it has none. */
const char *loss_of_counter(unsigned int counter);

#endif
