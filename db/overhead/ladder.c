// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/overhead/ladder.h"

#define WAIT_MAX	20	/* periods before a step back, at most */
#define PAUSE		3	/* .. and how many times longer there are no probes */
#define RELAPSE		10	/* periods within which a step back may prove wrong */
#define TRIAL		4	/* part of a period for which probes are tried */
#define ROOM(limit)	((limit) / 5 * 4)	/* of the limit, for the step before */

/* Return the step before @step. */
static enum ladder_step ladder_before(const struct ladder_config *config, enum ladder_step step)
{
	if (step == LADDER_NO_TEXT && !config->why)
		return LADDER_ALL;
	return step == LADDER_ALL ? LADDER_ALL : (enum ladder_step)(step - 1);
}

static enum ladder_step ladder_next(const struct ladder_config *config, enum ladder_step step)
{
	return step == LADDER_ALL && !config->why ? LADDER_NO_TEXT : (enum ladder_step)(step + 1);
}

static uint64_t ladder_share(uint64_t ns, uint64_t elapsed_ns)
{
	return (uint64_t)((double)ns * LADDER_WHOLE / (double)elapsed_ns);
}

/* Return whether there would be room for the step before, at the present rate of hits. */
static bool ladder_has_room(const struct ladder *ladder, const struct ladder_config *config,
			    const struct ladder_sample *sample)
{
	uint64_t before_ns = ladder->hit_ns[ladder_before(config, ladder->step)];
	uint64_t hit_ns = ladder->hit_ns[ladder->step];

	hit_ns = before_ns > hit_ns ? before_ns : hit_ns;
	return ladder_share(sample->hits * hit_ns, sample->elapsed_ns) <= ROOM(config->limit);
}

/* Return how long the overhead must be above the limit: less if the probes are tried. */
static uint64_t ladder_patience(const struct ladder *ladder, const struct ladder_config *config)
{
	bool trial = ladder->step == LADDER_NO_TEXT && ladder->back_ns &&
		     ladder->back_ns <= config->period_ns;

	return trial ? config->period_ns / TRIAL : config->period_ns;
}

enum ladder_step ladder_add(struct ladder *ladder, const struct ladder_config *config,
			    const struct ladder_sample *sample)
{
	bool above = ladder_share(sample->cost_ns, sample->elapsed_ns) > config->limit;
	uint64_t before_ns = above ? ladder->above_ns : ladder->room_ns;

	if (ladder->step == LADDER_DETACHED)
		return LADDER_DETACHED;
	ladder->cost_ns = sample->cost_ns + (before_ns ? ladder->cost_ns : 0);
	ladder->overhead = ladder_share(ladder->cost_ns, before_ns + sample->elapsed_ns);
	if (sample->hits)
		ladder->hit_ns[ladder->step] = sample->cost_ns / sample->hits;
	if (ladder->back_ns)
		ladder->back_ns += sample->elapsed_ns;
	if (ladder->back_ns > RELAPSE * config->period_ns) {
		ladder->back_ns = 0;
		ladder->wait_ns = config->period_ns;
	}
	ladder->above_ns = above ? ladder->above_ns + sample->elapsed_ns : 0;
	if (above) {
		ladder->room_ns = 0;
		return ladder->above_ns >= ladder_patience(ladder, config) ?
		       ladder_next(config, ladder->step) : ladder->step;
	}
	if (ladder->step == LADDER_ALL || !ladder_has_room(ladder, config, sample)) {
		ladder->room_ns = 0;
		return ladder->step;
	}
	ladder->room_ns += sample->elapsed_ns;
	return ladder->room_ns >= (ladder->wait_ns ? ladder->wait_ns : config->period_ns) ?
	       ladder_before(config, ladder->step) : ladder->step;
}

void ladder_move(struct ladder *ladder, const struct ladder_config *config, enum ladder_step step)
{
	if (!ladder->wait_ns)
		ladder->wait_ns = config->period_ns;
	/* The step back was wrong: wait longer before the next one. */
	if (step > ladder->step && ladder->back_ns)
		ladder->wait_ns *= 2;
	if (ladder->wait_ns > WAIT_MAX * config->period_ns)
		ladder->wait_ns = WAIT_MAX * config->period_ns;
	/* Not 0, which is none; the time is added with the samples. */
	ladder->back_ns = step < ladder->step;
	ladder->above_ns = ladder->room_ns = 0;
	ladder->step = step;
}

uint64_t ladder_pause_ns(const struct ladder *ladder, const struct ladder_config *config)
{
	return PAUSE * (ladder->wait_ns ? ladder->wait_ns : config->period_ns);
}
