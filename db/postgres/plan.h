/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The plans of the statements that a backend of PostgreSQL executes, from its memory. */
#ifndef DB_POSTGRES_PLAN_H
#define DB_POSTGRES_PLAN_H

#include "db/plan/plan.h"
#include "host/process_memory.h"

/* All is borrowed. */
struct postgres_plan_query {
	const struct process_memory *memory;
	uint32_t pid;
	unsigned int release;		/* 10 .. 19 */
	uint64_t top;			/* address of the variable TopMemoryContext, as linked */
	uint32_t database;		/* OID; 0: unknown */
	uint64_t deadline_ns;	/* CLOCK_MONOTONIC: read no further statement from then on */
};

/*
 * Append the plans to @writer, the outermost statement first. Return 0, also if there is none;
 * -ENOTSUP: those of this release are not known; or -ENOMEM.
 */
int postgres_plan_read(const struct postgres_plan_query *query, struct plan_writer *writer);

#endif
