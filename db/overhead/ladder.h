/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ladder of an overhead limit: what is left out while tracing a server takes more than it may.
 * Pure functions of measurements; db/overhead/limit.h applies the steps.
 */
#ifndef DB_OVERHEAD_LADDER_H
#define DB_OVERHEAD_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#define LADDER_WHOLE	1000000		/* one CPU, in the unit of ->limit and ->overhead */

enum ladder_step {
	LADDER_ALL,		/* nothing is left out */
	LADDER_NO_WHY,		/* no time breakdowns */
	LADDER_NO_TEXT,		/* nor texts */
	LADDER_DETACHED,	/* there are no probes */
	LADDER_STEPS,
};

struct ladder_config {
	uint64_t limit;		/* of the overhead; not 0 */
	uint64_t period_ns;	/* for this long above the limit: a step is taken; not 0 */
	bool why;		/* there are time breakdowns; without, their step is left out */
};

/* A measurement: the time since the last one. */
struct ladder_sample {
	uint64_t elapsed_ns;	/* not 0 */
	uint64_t hits;		/* of probes */
	uint64_t cost_ns;	/* the time that these took */
};

/* All zero begins on LADDER_ALL. */
struct ladder {
	enum ladder_step step;
	uint64_t above_ns;	/* how long the overhead has been above the limit .. */
	uint64_t room_ns;	/* .. or there has been room for the step before this one */
	uint64_t cost_ns;	/* of that time; of the last sample if it is neither */
	uint64_t overhead;	/* its mean */
	uint64_t wait_ns;	/* how long there must be; 0: the period */
	uint64_t back_ns;	/* since a step back, while that may prove wrong; 0: none */
	uint64_t hit_ns[LADDER_STEPS];	/* mean cost of a hit when last on the step */
};

/*
 * Add @sample. Return the step to take: the present one, the next one or the one before; from
 * LADDER_DETACHED none. ladder_move() takes it; without, it is returned again.
 */
enum ladder_step ladder_add(struct ladder *ladder, const struct ladder_config *config,
			    const struct ladder_sample *sample);

/* Take the step to @step, which ladder_add() has returned, or back from LADDER_DETACHED. */
void ladder_move(struct ladder *ladder, const struct ladder_config *config, enum ladder_step step);

/* Return how long there are to be no probes on LADDER_DETACHED before they are tried again. */
uint64_t ladder_pause_ns(const struct ladder *ladder, const struct ladder_config *config);

#endif
