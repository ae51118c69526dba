/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The statements that a backend of PostgreSQL executes, 10 to 19: the client's, and those that
 * functions and procedures execute in it. Each has an EState (nodes/execnodes.h) in a memory
 * context of its own, called "ExecutorState", which is found among all from TopMemoryContext on.
 *
 * All of it changes while it is read. Each pointer is verified by what it points to; and of a
 * context, whose statement may end and be followed by another at the same addresses, there is a
 * copy that takes a microsecond.
 */
#ifndef DB_POSTGRES_EXECUTOR_H
#define DB_POSTGRES_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/postgres/plan_table.h"
#include "host/process_memory.h"

#define EXECUTORS_MAX	32	/* statements of a backend; further ones are left out */
#define EXECUTOR_BLOCKS	32	/* of a context that are copied .. */
#define EXECUTOR_BYTES	(1u << 20)	/* .. up to this size */
#define EXECUTOR_READS	200000	/* of a backend at most: they take 50 ms */

/* The memory of a backend, some of which is copied. */
struct executor_memory {
	const struct process_memory *memory;	/* borrowed */
	uint16_t value[PLAN_VALUES];		/* of the release */
	struct executor_block {
		uint64_t address;
		size_t size, at;	/* bytes; and where they are in ->copy */
	} block[EXECUTOR_BLOCKS];
	unsigned int nblocks;
	char *copy;			/* of EXECUTOR_BYTES, owned */
	unsigned int *left;	/* reads, or KiB, until no further one succeeds; borrowed */
	bool missed;		/* some statement was not found, or left out */
};

/* What tells a statement from all others, as far as memory does: addresses and numbers. */
struct executor_id {
	uint64_t context, estate;
	uint64_t statement;		/* PlannedStmt */
	uint64_t tree, state;		/* the root of its plan, and PlanState of that */
	uint64_t text, query_id;
	uint32_t location, length;	/* of the statement in its text; 0xffffffff, 0: all */
};

struct executor {
	struct executor_id id;
	uint64_t on_stack;		/* the highest address on the stack with ->id.estate; 0 */
	uint64_t portal_context;	/* of its portal, if it is a direct one; or 0 .. */
	uint64_t portal;		/* .. and that itself */
	bool open;			/* a cursor from which nothing is fetched now .. */
	bool ended;			/* .. and has no further row */
};

/* Return the member of the structure at @address; 0: it has none, or cannot be read. */
uint64_t executor_pointer(const struct executor_memory *m, uint64_t address,
			  enum plan_value member);
uint32_t executor_number(const struct executor_memory *m, uint64_t address,
			 enum plan_value member);
double executor_real(const struct executor_memory *m, uint64_t address, enum plan_value member);

/* Read @size bytes at @address, also from the copy. Return success. */
bool executor_get(const struct executor_memory *m, uint64_t address, void *to, size_t size);

/* Return whether the node at @address has this tag. */
bool executor_is(const struct executor_memory *m, uint64_t address, enum plan_value tag);

/* The same of those that a PlanState has, TAG_RESULTSTATE to TAG_LIMITSTATE. */
bool executor_is_state(const struct executor_memory *m, uint64_t address);

/* Return which of TAG_RESULT to TAG_LIMIT the Plan at @address has; PLAN_VALUES: none. */
enum plan_value executor_plan(const struct executor_memory *m, uint64_t address);

/*
 * Read the elements of the List at @list, pointers, to @elements, at most @most. Return how many it
 * has, which may be more; 0: it is none, or cannot be read.
 */
uint32_t executor_list(const struct executor_memory *m, uint64_t list, uint64_t elements[],
		       uint32_t most);

/*
 * Find the statements of process @pid, whose variable TopMemoryContext has the value @top: those
 * that are executed from the outermost on, then open cursors. Return how many, in @found.
 */
unsigned int executors_find(struct executor_memory *m, uint32_t pid, uint64_t top,
			    struct executor found[EXECUTORS_MAX]);

/* Copy the context of @executor. Return whether the statement is still the same. */
bool executor_copy(struct executor_memory *m, const struct executor *executor);

#endif
