/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time breakdown of a statement: names of its parts, phases and resources, the part that
 * waiting in a system call counts for, and the matching of breakdown records to statements.
 */
#ifndef DB_SESSION_BREAKDOWN_H
#define DB_SESSION_BREAKDOWN_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"
#include "host/syscall.h"
#include "loader/owners.h"

/* Return the value of map "calls" for system call @call of this architecture. */
uint32_t breakdown_call_value(uint32_t call);

/* Fill map "calls", a descriptor. */
void breakdown_calls(int map);

/*
 * Resolve @name: a part, a system call or "page_fault"; "futex" is a part and a call. *@part is
 * BREAKDOWN_PARTS if it is not a part, *@call BREAKDOWN_NONE if it is not a call. Return 0, or
 * -ENOENT if it is neither.
 */
int breakdown_by_name(const char *name, enum breakdown_part *part, uint32_t *call);

/* Write "pread64", "page_fault", or "syscall_999" if @call has no name, to @name. */
void breakdown_call_name(uint32_t call, char name[SYSCALL_NAME]);

/*
 * Return the number whose name is @name. Those that this architecture lacks, in a recording of
 * another one, have numbers of their own; BREAKDOWN_OTHERS if it is unknown.
 */
uint32_t breakdown_call_number(const char *name);

/* Names in the output; static. */
const char *breakdown_part_name(enum breakdown_part part);	/* "runqueue" */
const char *breakdown_phase_name(enum phase phase);		/* "parse" */
const char *breakdown_use_name(enum use use);			/* "shared_blks_hit" */

/* Add @value to *@sum; of memory, which does not add up, keep the largest. */
void breakdown_use_add(__u64 *sum, __u64 value, enum use use);

/*
 * Breakdown records precede those of their statements, with records of other CPUs between them:
 * the last BREAKDOWN_PENDING are kept. All zero: none are kept.
 */
#define BREAKDOWN_PENDING	256

struct breakdown_pending {
	struct event_breakdown *rows;		/* BREAKDOWN_PENDING, the owner's; or NULL */
	uint32_t next;
};

/* Keep a copy of @event in place of the oldest. @has are TARGET_HAS_* of its server. */
void breakdown_put(struct breakdown_pending *pending, const struct event_breakdown *event,
		   uint32_t has);

/*
 * Return the record of the statement of thread @tid that began at @start_ns, with its parts made to
 * add up to @duration_ns and its waits sorted, the longest first; or NULL. Valid until the next
 * breakdown_put().
 */
const struct event_breakdown *breakdown_take(struct breakdown_pending *pending, uint32_t tid,
					     uint64_t start_ns, uint64_t duration_ns);

/* Durations of waits in one statement that has not ended. */
struct breakdown_open {
	uint64_t start_ns;		/* of the statement; 0: unused */
	uint64_t used;			/* ->puts at the last wait */
	uint32_t pid, count, room;
	uint16_t owner;			/* for whom it is counted */
	uint64_t *ns;			/* ->room of them, owned */
};

/* The same of all statements. All zero: none are kept. Each owner has a share of both limits. */
struct breakdown_waits {
	struct breakdown_open *rows;		/* BREAKDOWN_OPEN, owned; or NULL */
	uint32_t nrows;			/* largest number in use so far */
	uint64_t puts, room;
	struct breakdown_open *taken;	/* to be freed; or NULL */
	/* Borrowed; waits without room, or whose statement did not end, are their losses. */
	struct owners *owners;
};

#define BREAKDOWN_OPEN	1024
#define BREAKDOWN_ROOM	(1u << 20)	/* waits in total */

/* Keep the duration of @event; if there is no room, count it as lost. */
void breakdown_wait_put(struct breakdown_waits *waits, const struct event_wait *event);

/*
 * Return the durations in ns of the *@count waits in the statement of process @pid that began at
 * @start_ns, and drop them. Valid until the next call.
 */
const uint64_t *breakdown_wait_take(struct breakdown_waits *waits, uint32_t pid, uint64_t start_ns,
				    size_t *count);

/* Free what @waits owns. */
void breakdown_waits_free(struct breakdown_waits *waits);

#endif
