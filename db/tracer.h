/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tracer: discover servers, attach probes to them and turn the records of the programs into
 * statements, transactions and lock waits, those of which the sink has a callback. Servers that
 * start later are attached to as well.
 */
#ifndef DB_TRACER_H
#define DB_TRACER_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <sys/types.h>

#include "bpf/event.h"
#include "db/discover/discover.h"
#include "db/locks/locks.h"
#include "db/loss.h"
#include "db/overhead/limit.h"
#include "db/sink.h"
#include "loader/error.h"
#include "loader/feature.h"
#include "loader/sandbox.h"

/* All of it is borrowed, until tracer_close(). */
struct tracer_config {
	struct server_filter servers;
	uint64_t threshold_ns;		/* shorter statements and waits are not reported */
	uint32_t text_bytes;		/* maximum length of a statement's text */
	bool sum_lwlocks;		/* without a filter, sum LWLock waits, report none */
	bool rows;			/* read the number of rows */
	bool query_ids;
	bool prepares;			/* report also what only prepares a statement */
	bool why;			/* record time breakdowns */
	bool use, phases;		/* with ->why: also resource usage, and phases */
	bool events;			/* with ->why: name the server's wait events */
	bool nested;			/* report also statements in routines */
	/*
	 * Report transactions that took ->threshold_ns instead of statements; those whose begin is
	 * unknown, if it was so long ago that they were first seen.
	 */
	bool transactions;
	bool both;			/* with ->transactions: report the statements, too */
	bool identify;			/* resolve servers, containers and sessions */
	/*
	 * What becomes of statements and lock waits; ->owners is the tracer's. To count
	 * statements without a filter or ->records, the programs do that.
	 */
	struct sink_config sink;
	/*
	 * With ->why and ->sink.stat_waits: those of this part of the time or in this system call.
	 * BREAKDOWN_PARTS: no part; BREAKDOWN_NONE: no system call.
	 */
	enum breakdown_part wait_part;
	uint32_t wait_call;
	uint32_t denied;		/* features not to use, see feature_deny() */
	unsigned int needs;		/* SANDBOX_*, of the caller, for tracer_needs() */
	bool measure;			/* for tracer_run_ns() */
	struct ladder_config limit;	/* of the overhead; ->limit 0: none. ->why is ignored */

	/* Callbacks; their strings are borrowed for the call. */
	void *arg;
	/* Called for each server's file that is traced from now on. */
	void (*server)(void *arg, const struct server_info *server);
	/* Called for each server that started later and cannot be traced. */
	void (*error)(void *arg, const struct error *error);
	/* Return whether to attach to no further server; may be NULL. */
	bool (*stopped)(void *arg);
	/* Called for each step of the overhead limit, between records; may be NULL without one. */
	void (*limited)(void *arg, const struct limit_event *event);
	/* Called for each site that is traced; may be NULL. */
	void (*site)(void *arg, const struct target_site *site);
};

struct tracer;

/*
 * Load the programs, attach to the running servers and call config->server for each. Return 0, also
 * if no server runs, or -errno with the cause in @error and *@tracer NULL. tracer_close() frees
 * *@tracer.
 */
int tracer_open(struct tracer **tracer, const struct tracer_config *config, struct error *error);

/*
 * Return the privileges that are needed after tracer_open(), for sandbox_enter(), and drop the
 * others of the process that attaches, if there is one. Those for attaching to later servers are
 * needed unless config->servers.pids selects the processes.
 */
unsigned int tracer_needs(const struct tracer *tracer);

/* Return the kernel features that were probed so far; borrowed. */
const struct features *tracer_features(const struct tracer *tracer);

/* Return the number of servers' files that have probes. */
size_t tracer_targets(const struct tracer *tracer);

/*
 * Handle the records in the buffer, whose events go to config->sink. Return how full it was, in
 * percent.
 */
int tracer_drain(struct tracer *tracer);

/*
 * Request a wake-up. Return the descriptor that becomes readable with the next record, borrowed, or
 * -EAGAIN if tracer_drain() is due now.
 */
int tracer_sleep(struct tracer *tracer);

/* Return after how many ms tracer_drain() is due even without records; 0: any. */
int tracer_interval_ms(const struct tracer *tracer);

/* Return whether holders of locks are to be read within milliseconds, while they hold these. */
bool tracer_resolves(const struct tracer *tracer);

/*
 * Return the histogram since the start in *@rows, which the caller frees: the number of rows, or
 * -errno. It was counted by the programs or, with a filter, by the tracer.
 */
ssize_t tracer_histogram(const struct tracer *tracer, struct histogram_row **rows);

/*
 * As tracer_histogram(), of LWLock waits: with config->sum_lwlocks and ->sink.wait. Several may
 * have the same name.
 */
ssize_t tracer_lwlocks(struct tracer *tracer, struct lwlock_count **sums);

/*
 * Give each running statement, open transaction and lock wait over the threshold to config->sink;
 * after tracer_detach(), statements and transactions that were when it began. The text is missing
 * if it cannot be read from the server's memory.
 */
void tracer_running(struct tracer *tracer);

/* Detach all probes. Records in the buffer remain to be drained. */
void tracer_detach(struct tracer *tracer);

/*
 * Store in *@ns the CPU time that the programs used so far, with config->measure. Return 0, or
 * -ENODATA if the kernel does not measure it at present (bpf_stats_enabled).
 */
int tracer_run_ns(const struct tracer *tracer, uint64_t *ns);

/* Fill @summary with all counters of statements, or of lock @waits; ->printed is the caller's. */
void tracer_summary(const struct tracer *tracer, struct summary *summary, bool waits);

/* Detach all probes and free @tracer, which may be NULL. */
void tracer_close(struct tracer *tracer);

#endif
