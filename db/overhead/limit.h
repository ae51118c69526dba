/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/overhead/: the limit of what tracing takes from a server: its measurement, the steps, and the
 * cost of a trap.
 * It prints nothing: cli/overhead.c words the steps.
 */

/*
 * The overhead limit: measure what the probes take from each server, and leave out parts of the
 * work, see db/overhead/ladder.h, while it is more than permitted.
 *
 * The overhead is the time in the programs, which they measure themselves, and the trap of each
 * hit, by db/overhead/trap.h. A server is the processes of one user that run one file: one user's
 * processes thus have no effect on what is traced of another's. But probes are on the file, so they
 * are removed only if all of its servers are above the limit, and then for all of them.
 */
#ifndef DB_OVERHEAD_LIMIT_H
#define DB_OVERHEAD_LIMIT_H

#include "bpf/cost.h"
#include "db/discover/discover.h"
#include "db/overhead/ladder.h"
#include "db/session/sessions.h"

/* A step, or that it cannot be taken. Borrowed for the call. */
struct limit_event {
	const struct target *target;
	uint32_t uid;			/* of the server's processes */
	enum ladder_step before, step;	/* if equal: others' servers of the file prevent it */
	uint64_t overhead, limit;	/* in units of LADDER_WHOLE */
	uint64_t ago_ns;		/* when the step was taken */
	uint64_t pause_ns;		/* on LADDER_DETACHED: until probes are tried again */
	uint64_t untraced_ns;		/* back from it: how long there were none */
};

/* Everything is borrowed. */
struct limit_config {
	struct ladder_config ladder;	/* ->limit 0: there is no limit */
	struct runtime *runtime;
	struct discover *discover;
	struct sessions *sessions;
	void *arg;
	void (*event)(void *arg, const struct limit_event *event);
};

/* All zero has no limit. */
struct limit {
	struct limit_config config;
	uint64_t trap_ns;		/* of a hit */
	uint64_t last_ns, next_ns;	/* of the samples; CLOCK_MONOTONIC */
	uint64_t find_ns, found;	/* of limit_find(): when again; hits at the last */
	uint64_t untraced_ns;		/* of files that were without probes; ended */
	bool paused;			/* the tracepoints of breakdowns are detached .. */
	bool failed;			/* .. and could not be attached again */
	bool finding;			/* limit_look() adds servers */
	int map;			/* "costs", borrowed */
	struct cost *cpus;		/* a value of it, owned */
	struct limit_entry *entries;	/* COSTS_MAX, owned */
	size_t nentries;
	struct process_file resumed;	/* that limit_resume() handles */
};

/* Create the map of the programs, if @limited for use. Return as runtime_maps(). */
int limit_maps(struct runtime *rt, bool limited, struct error *error);

/*
 * Begin, before files are attached to. Return 0, or -errno with the cause in @error. limit_close()
 * ends it in both cases.
 */
int limit_open(struct limit *limit, const struct limit_config *config, struct error *error);

/* Called before the probes of file @target_id are attached. */
void limit_attaching(void *limit, uint32_t target_id);

/* Limit the processes of user @uid that run @target; does nothing if they are. */
void limit_add(struct limit *limit, const struct target *target, uint32_t uid);

/* Measure, if it is time, and take steps. */
void limit_tick(struct limit *limit);

/* Return the time between two measurements in ms; 0: there are none. */
int limit_interval_ms(const struct limit *limit);

/* Return for how long files were without probes, in ns, those that are included. */
uint64_t limit_untraced_ns(const struct limit *limit);

void limit_close(struct limit *limit);

#endif
