/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/plan/: plans of statements, as data that outlives the server it was read from.
 * It reads no memory and knows no engine: an engine's directory writes a plan, and names its nodes.
 */

/*
 * A plan: items one behind another, each a key and a value. A statement's items are followed by
 * those of its nodes, each node before what is below it; and these by the next statement. As it may
 * come from a hostile process or file, it is read with bounds checks, and its strings are foreign
 * bytes.
 */
#ifndef DB_PLAN_PLAN_H
#define DB_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sql/fingerprint.h"

#define PLAN_BYTES	(128u << 10)	/* of a plan at most */
#define PLAN_DEPTH	64		/* of its nodes, and of its statements */
#define PLAN_STRING	1024		/* bytes of a string at most, and .. */
#define PLAN_TEXT_BYTES	(PLAN_BYTES / 4)	/* .. of the text of a statement */

/* The keys, and what their values are. The numbers are those of recordings. */
enum plan_key {
	PLAN_STATEMENT = 1,	/* number: how many statements called it; begins a statement */
	PLAN_TEXT = 2,		/* string */
	PLAN_CURSOR = 3,	/* string: name of the cursor that it is of, if that is only open */
	PLAN_PROCESSED = 4,	/* number: rows that it returned or changed so far */
	PLAN_CUT = 5,		/* number, 1: the plan has further nodes */
	PLAN_MISSED = 6,	/* number: statements that were not read; an element of its own */

	PLAN_NODE = 16,		/* number: the depth, 0 of the root; begins a node */
	PLAN_RELATIONSHIP,	/* string: to the node above it */
	PLAN_SUBPLAN,		/* string: name of the subplan of which it is the root */
	PLAN_TITLE,		/* string: the node's kind, in words that tell all variants apart */
	PLAN_TYPE,		/* string: the kind only */
	PLAN_STRATEGY,		/* string */
	PLAN_PARTIAL,		/* string */
	PLAN_OPERATION,		/* string */
	PLAN_JOIN,		/* string */
	PLAN_DIRECTION,		/* string */
	PLAN_COMMAND,		/* string */
	PLAN_PARALLEL,		/* number, 0 or 1 */
	PLAN_ASYNC,		/* the same */
	PLAN_INDEX,		/* string */
	PLAN_SCHEMA,		/* string: of the relation */
	PLAN_RELATION,		/* string */
	PLAN_CTE,		/* string: instead of a relation .. */
	PLAN_PROVIDER,		/* .. or this, a string */
	PLAN_ALIAS,		/* string */
	PLAN_STARTUP_COST,	/* real */
	PLAN_TOTAL_COST,	/* real */
	PLAN_ROWS,		/* real: what the planner expects */
	PLAN_WIDTH,		/* number: bytes of a row */
	PLAN_DISABLED,		/* number, 0 or 1 */

	/* What it has done so far: numbers, but for two. */
	PLAN_BLOCKS = 64,
	PLAN_BLOCKS_TOTAL,
	PLAN_BLOCKS_EXACT,
	PLAN_BLOCKS_LOSSY,
	PLAN_WORKERS_PLANNED,
	PLAN_WORKERS_LAUNCHED,
	PLAN_CHILD,		/* that is read now, from 1 on */
	PLAN_CHILDREN,
	PLAN_HASH_BUCKETS,
	PLAN_HASH_BATCHES,
	PLAN_HASH_BATCH,
	PLAN_HASH_TUPLES,
	PLAN_GROUPS,
	PLAN_AGG_BATCHES,
	PLAN_SORT_METHOD,	/* string */
	PLAN_SORT_TUPLES,
	PLAN_SPACE_TYPE,	/* string */
	PLAN_SPACE,		/* bytes */
	PLAN_PEAK,		/* bytes */
	PLAN_HITS,
	PLAN_MISSES,
	PLAN_KEYS
};

/* A plan that is written. ->bytes has room for PLAN_BYTES; all is zero but that at first. */
struct plan_writer {
	char *bytes;
	size_t len;
	bool full;		/* an item did not fit; nothing was written from it on */
};

/* Append an item: a number, a real, or a string, which is cut. */
void plan_put(struct plan_writer *writer, enum plan_key key, uint64_t number);
void plan_put_real(struct plan_writer *writer, enum plan_key key, double real);
void plan_put_string(struct plan_writer *writer, enum plan_key key, const char *text, size_t len);

/* A value. ->text is borrowed from the plan, and NULL for one that was absent. */
struct plan_item {
	const char *text;
	size_t len;
};

/* A statement, a node, or PLAN_MISSED: its values by key. Those of others are absent. */
struct plan_element {
	bool is_node;
	struct plan_item value[PLAN_KEYS];
};

/* The position in a plan. All zero but the bytes at first. */
struct plan_reader {
	const char *bytes;
	size_t len;
	size_t at;
};

/* Read the next element. Return false: there is none, or the plan is malformed there. */
bool plan_next(struct plan_reader *reader, struct plan_element *element);

/* Return the number, or the real, with this key; 0 if it is absent or of another size. */
uint64_t plan_number(const struct plan_element *element, enum plan_key key);
double plan_real(const struct plan_element *element, enum plan_key key);

/*
 * Remove the literals and comments of @dialect from the texts in the @len bytes of @plan. Return
 * how many bytes are left.
 */
size_t plan_redact(char *plan, size_t len, enum fingerprint_dialect dialect);

static inline bool plan_has(const struct plan_element *element, enum plan_key key)
{
	return element->value[key].text;
}

#endif
