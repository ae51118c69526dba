/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a statement's time went and what it used: what bpf/wait.h needs to know of the kernel, and
 * what it says.
 */
#ifndef DB_BREAKDOWN_H
#define DB_BREAKDOWN_H

#include <stdbool.h>

#include "bpf/event.h"
#include "loader/feature.h"
#include "loader/linker.h"

#define BREAKDOWN_NUMBERS	21	/* constants that the programs take */

/*
 * Fills @numbers with what the running kernel's types say; or, where it does not describe them, what
 * it says of the records of sched_switch and sched_wakeup, which the programs are to be given then:
 * @events are their numbers, else 0. 0, or -errno where there is neither.
 */
int breakdown_numbers(struct features *features, struct object_value numbers[BREAKDOWN_NUMBERS],
		      int events[2]);

/* The same without a kernel to ask, for programs that will not look: all 0. */
void breakdown_no_numbers(struct object_value numbers[BREAKDOWN_NUMBERS]);

/* What waiting in system call @call of this architecture means. */
enum breakdown_part breakdown_call_part(uint32_t call);

/*
 * What is meant by @name: a part, a system call, or "page_fault"; "futex" is both. BREAKDOWN_PARTS and
 * BREAKDOWN_NONE for what it is not. 0 or -ENOENT.
 */
int breakdown_by_name(const char *name, enum breakdown_part *part, uint32_t *call);

/* "pread64"; NULL where the number has no name here. Static. */
const char *breakdown_call_name(uint32_t call);

/* "runqueue", as JSON has it. Static. */
const char *breakdown_part_name(enum breakdown_part part);

/* "parse", as JSON has it. Static. */
const char *breakdown_phase_name(enum phase phase);

/* "shared_hit", as JSON has it. Static. */
const char *breakdown_use_name(enum use use);

/* Adds @value to @sum; of memory, that is not added up, the largest is kept. */
void breakdown_use_add(__u64 *sum, __u64 value, enum use use);

/* Breakdowns wait here for their statements: other CPUs' records come between. All zero: none. */
#define BREAKDOWN_PENDING	256

struct breakdown_pending {
	struct event_breakdown *rows;		/* BREAKDOWN_PENDING, allocated; NULL: none are kept */
	uint32_t next;
};

/* Keeps a copy of @event, of a server that @shows TARGET_SHOWS_…; the oldest one goes. */
void breakdown_put(struct breakdown_pending *pending, const struct event_breakdown *event,
		   uint32_t has);

/*
 * That of the statement of thread @tid that began at @start_ns and lasted @duration_ns, whose parts
 * now add up to that. NULL: there is none. Valid until the next call of breakdown_put().
 */
const struct event_breakdown *breakdown_take(struct breakdown_pending *pending, uint32_t tid,
					     uint64_t start_ns,
					     uint64_t duration_ns);

/* Waits of statements that have not ended, for those of which the text is asked. All zero: none. */
struct breakdown_open {
	uint64_t start_ns;		/* 0: free */
	uint64_t used;			/* when a wait came last, by ->puts */
	uint32_t pid, count, room;
	uint64_t *ns;
};

struct breakdown_waits {
	struct breakdown_open *rows;		/* BREAKDOWN_OPEN, allocated; NULL: none are kept */
	uint32_t nrows;			/* that were ever in use at once */
	uint64_t puts, room;
	uint64_t lost;			/* waits for which there was no room or no end of a statement */
};

#define BREAKDOWN_OPEN	1024
#define BREAKDOWN_ROOM	(1u << 20)	/* waits in all */

/* Keeps it. */
void breakdown_wait_put(struct breakdown_waits *waits, const struct event_wait *event);

/*
 * How long those took, in ns, in the statement of process @pid that began at @start_ns; *@count of
 * them. Valid until the next call of breakdown_wait_put().
 */
const uint64_t *breakdown_wait_take(struct breakdown_waits *waits, uint32_t pid, uint64_t start_ns,
				    size_t *count);

/* Frees what it keeps, not @waits. */
void breakdown_waits_free(struct breakdown_waits *waits);

#endif
