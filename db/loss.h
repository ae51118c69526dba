/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What was seen, and what was lost of it. A loss is one row of loss_rows[] in loss.c: the summary,
 * JSON, metrics, the report and the check of the manual go by it.
 */
#ifndef DB_LOSS_H
#define DB_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/owners.h"

struct runtime;
struct target;

/* In the order of the output. */
enum loss {
	LOSS_RING_FULL, LOSS_TABLE_FULL, LOSS_WHO_UNKNOWN, LOSS_START_WITHOUT_END,
	LOSS_END_WITHOUT_START, LOSS_TEXT_UNREADABLE, LOSS_TEXT_TRUNCATED, LOSS_VALUE_UNREADABLE,
	LOSS_UNDECIDED, LOSS_TEXT_DROPPED, LOSS_WHY_DROPPED,
	LOSSES
};

/* Groups of losses that a command has, beside those of the buffer and the tables. */
#define LOSSES_OF_SESSIONS	0x1	/* sessions, and starts and ends of statements */
#define LOSSES_OF_TEXTS		0x2
#define LOSSES_OF_VALUES	0x4	/* values and conditions of probes */
#define LOSSES_OF_LIMIT		0x8	/* left out for an overhead limit */

struct loss_row {
	const char *name;	/* in JSON and metrics */
	const char *words;	/* in messages: unit and reason, "events (buffer full)" */
	const char *help;	/* what is counted */
	unsigned int group;	/* LOSSES_OF_*; 0: of each command */
	unsigned int counter;	/* enum counter of the programs; 0: counted in user space */
};

extern const struct loss_row loss_rows[LOSSES];

/* Counts since the start of statements and losses. */
struct summary {
	uint64_t statements, printed;
	uint64_t lost[LOSSES];
	uint64_t untraced_ns;	/* time without probes, for the overhead limit */
	uint64_t boundary;	/* statements that ran when tracing began or ended: not a loss */
	const char *printed_noun;	/* unit of ->printed, "waits"; NULL: as ->statements */
	struct owners_report users;	/* losses by the user of the traced process */
	struct owners_report servers;	/* by this and by its file; not of the command trace */
	struct target *targets;	/* for target_by_id(), borrowed; NULL: ->servers is empty */
	size_t ntargets;
};

/* Add what the programs of @rt count from counter @first on: 0 or LOCK_COUNTERS. */
void loss_count(struct summary *summary, const struct runtime *rt, uint32_t first);

/* Add those of statements and what is counted in user space, and by whom all is. */
void loss_read(struct summary *summary, const struct runtime *rt);

/* Return whether @loss is one of a command with the groups @groups. */
bool loss_is_of(enum loss loss, unsigned int groups);

/* Return whether anything was lost. */
bool loss_any(const struct summary *summary);

/* Return the number of losses other than those of texts and values. */
uint64_t loss_events(const struct summary *summary);

/* Return the name of enum counter @counter in the losses of a user, or NULL if it has none. */
const char *loss_of_counter(unsigned int counter);

#endif
