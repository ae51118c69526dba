/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The members of recorded events. A row is all that writing and reading one takes: the layout at
 * the begin of a recording lists the rows of its writer, so that a reader goes by their names,
 * whatever their order is, and skips what it does not know. docs/recording.md describes each.
 */
#ifndef DB_RECORDING_MEMBER_H
#define DB_RECORDING_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/lock_event.h"
#include "db/event.h"
#include "db/locks/info.h"
#include "sql/traceparent.h"

/* How a value follows the flags; the letters are those of the layout. */
enum member_type {
	MEMBER_FLAG = ' ',		/* it does not: the flag is the value */
	MEMBER_NUMBER = 'n',		/* of ->size bytes */
	MEMBER_STRING = 's',		/* in ->size bytes, with a NUL unless it fills them */
	MEMBER_BYTES = 'x',		/* a pointer; their length is a size_t at ->known */
	MEMBER_LIST = 'l',		/* of numbers of 32 bits */
	MEMBER_TEXT = 't',		/* the same of a statement, in the dictionary of texts */
	MEMBER_BREAKDOWN = 'b',		/* the time breakdown of a statement */
	MEMBER_BACKENDS = 'h',		/* of struct lock_backend, with the members of that */
};

/* Offsets are those in struct recorded_statement, struct recorded_wait or struct lock_backend. */
struct member {
	const char *name;
	enum member_type type;
	uint16_t at, size;
	/*
	 * Of a number: a bool which says whether it is known; without it, 0 is unknown. Of a list
	 * and of backends: an unsigned int with their number; without it, all are there.
	 */
	uint16_t known;
	uint32_t bit;			/* of a flag that is one of several in a number; or 0 */
};

/* A statement or a transaction as it is recorded. */
struct recorded_statement {
	struct statement s;		/* first */
	bool is_transaction;
	struct transaction t;		/* ->s.transaction */
	bool whole;			/* ->s.query_bytes is ->s.text_len; else, if known: */
	bool has_bytes;
	uint64_t query;			/* 1 + entry of ->s.query_id; 0: none */
	uint64_t plan;			/* ->s.plan */
	char parent[TRACEPARENT];	/* ->s.parent of a redacted text */
};

/* A lock wait as it is recorded. */
struct recorded_wait {
	struct lock_wait w;
	struct event_lock lock;		/* ->w.event */
	char kind[32];			/* ->w.kind */
	unsigned int has_info;
	struct lock_info info;		/* ->w.info, if it has */
};

#define MEMBERS_MAX	64		/* of an event: bits of the flags */

extern const struct member statement_members[], wait_members[], backend_members[];

/* Return the value of a flag, of a number, or of a pointer, of the event @of. */
uint64_t member_value(const struct member *member, const void *of);

/* Return whether the event @of has a value for @member. */
bool member_has(const struct member *member, const void *of);

/* Set a flag or a number of the event @of, which is all zero at first; also that it is known. */
void member_set(const struct member *member, void *of, uint64_t value);

/* Return the number of elements of a list of @of, each of @size bytes. */
size_t member_count(const struct member *member, const void *of, size_t size);

#endif
