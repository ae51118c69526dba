// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ladder of the overhead limit: every sequence of loads, and what it may do with them. */
#include "db/overhead/ladder.h"
#include "tests/unit/check.h"

#define SAMPLE_NS	250u		/* four in a period */
#define PERIOD_NS	1000u
#define LIMIT		10000u		/* 1 % */
#define LONG		12		/* samples of a sequence */

/* The cost of a hit on each step. */
static const uint64_t hit_ns[LADDER_STEPS] = { 4, 2, 1, 0 };

static const struct ladder_config configs[2] = {
	{ .limit = LIMIT, .period_ns = PERIOD_NS }, { LIMIT, PERIOD_NS, true },
};

static enum ladder_step add(struct ladder *ladder, const struct ladder_config *config,
			    uint64_t hits)
{
	struct ladder_sample sample = { .elapsed_ns = SAMPLE_NS, .hits = hits };

	sample.cost_ns = hits * hit_ns[ladder->step];
	return ladder_add(ladder, config, &sample);
}

/* The overhead of a sample, computed here. */
static bool is_above(uint64_t hits, enum ladder_step step)
{
	return hits * hit_ns[step] * 100 > SAMPLE_NS;
}

/* Each of 3^LONG sequences of loads: one step at a time, and none before a whole period. */
static void sequences_of(const struct ladder_config *config)
{
	static const uint64_t loads[3] = { 0, 1, 3 };	/* below; above on the first; on all */
	unsigned long sequences = 1, early = 0, wide = 0, late = 0, wrong = 0;

	for (int i = 0; i < LONG; i++)
		sequences *= 3;
	for (unsigned long number = 0; number < sequences; number++) {
		struct ladder ladder = { 0 };
		unsigned int above = 0, below = 0;
		unsigned long rest = number;

		for (int i = 0; i < LONG; i++, rest /= 3) {
			enum ladder_step step = ladder.step, next;
			uint64_t hits = loads[rest % 3];

			if (step == LADDER_DETACHED)
				break;
			above = is_above(hits, step) ? above + 1 : 0;
			below = above ? 0 : below + 1;
			next = add(&ladder, config, hits);
			wide += next > step + 1u + (!config->why && step == LADDER_ALL) ||
				next + 1u + (!config->why && next == LADDER_ALL) < step;
			wrong += !config->why && next == LADDER_NO_WHY;
			early += (next > step && above < 1 + 3 * !ladder.back_ns) ||
				 (next < step && below < PERIOD_NS / SAMPLE_NS);
			late += next == step && above >= PERIOD_NS / SAMPLE_NS;
			if (next == step)
				continue;
			ladder_move(&ladder, config, next);
			above = below = 0;
		}
	}
	CHECK(!wide);
	CHECK(!wrong);
	CHECK(!early);
	CHECK(!late);
}

static void all_sequences(void)
{
	sequences_of(&configs[0]);
	sequences_of(&configs[1]);
}

/* Add samples of @hits until a step is taken, and return after how many. */
static unsigned int until(struct ladder *ladder, const struct ladder_config *config, uint64_t hits)
{
	for (unsigned int n = 1; n < 1000; n++) {
		enum ladder_step next = add(ladder, config, hits);

		if (next == ladder->step)
			continue;
		ladder_move(ladder, config, next);
		return n;
	}
	return 0;
}

/* Down all steps under load, and back without, in the times of the manual. */
static void down_and_up(void)
{
	const struct ladder_config *config = &configs[1];
	struct ladder ladder = { 0 };

	CHECK(until(&ladder, config, 100) == 4 && ladder.step == LADDER_NO_WHY);
	CHECK(until(&ladder, config, 100) == 4 && ladder.step == LADDER_NO_TEXT);
	CHECK(until(&ladder, config, 100) == 4 && ladder.step == LADDER_DETACHED);
	CHECK(ladder_pause_ns(&ladder, config) == 3 * PERIOD_NS);
	CHECK(!until(&ladder, config, 100));
	ladder_move(&ladder, config, LADDER_NO_TEXT);
	CHECK(until(&ladder, config, 0) == 4 && ladder.step == LADDER_NO_WHY);
	CHECK(until(&ladder, config, 0) == 4 && ladder.step == LADDER_ALL);
	CHECK(!until(&ladder, config, 0));
}

/* Probes are tried for a quarter of a period; each time that is too much, the pause doubles. */
static void back_off(void)
{
	const struct ladder_config *config = &configs[0];
	struct ladder ladder = { 0 };
	uint64_t pause_ns = 3 * PERIOD_NS;

	CHECK(until(&ladder, config, 100) == 4 && ladder.step == LADDER_NO_TEXT);
	CHECK(until(&ladder, config, 100) == 4 && ladder.step == LADDER_DETACHED);
	for (int i = 0; i < 10; i++) {
		CHECK(ladder_pause_ns(&ladder, config) == pause_ns);
		ladder_move(&ladder, config, LADDER_NO_TEXT);
		CHECK(until(&ladder, config, 100) == 1 && ladder.step == LADDER_DETACHED);
		pause_ns = pause_ns * 2 > 60 * PERIOD_NS ? 60 * PERIOD_NS : pause_ns * 2;
	}
	CHECK(pause_ns == 60 * PERIOD_NS);
	/* Ten periods without a relapse end it. */
	ladder_move(&ladder, config, LADDER_NO_TEXT);
	for (int i = 0; i < 41; i++)
		CHECK(add(&ladder, config, 2) == LADDER_NO_TEXT);
	CHECK(until(&ladder, config, 0) == 4 && ladder.step == LADDER_ALL);
}

/* A step back is taken only if the cost that was measured there has room below the limit. */
static void remembered_cost(void)
{
	const struct ladder_config *config = &configs[1];
	struct ladder ladder = { 0 };

	/* 1 hit costs 1.6 % on the first step, 0.8 % on the second one. */
	CHECK(until(&ladder, config, 1) == 4 && ladder.step == LADDER_NO_WHY);
	CHECK(!until(&ladder, config, 1));
	CHECK(ladder.step == LADDER_NO_WHY && ladder.overhead == 8000);
	CHECK(until(&ladder, config, 0) == 4 && ladder.step == LADDER_ALL);
	/* It proves wrong: the next one needs twice the time, and so on. */
	CHECK(until(&ladder, config, 1) == 4 && ladder.step == LADDER_NO_WHY);
	CHECK(until(&ladder, config, 0) == 8 && ladder.step == LADDER_ALL);
	CHECK(until(&ladder, config, 1) == 4);
	CHECK(until(&ladder, config, 0) == 16);
}

/* At the limit is not above it; a step that is not taken is asked for again. */
static void edges(void)
{
	const struct ladder_config config = { .limit = 40000, .period_ns = PERIOD_NS };
	struct ladder ladder = { 0 };
	struct ladder_sample sample = { .elapsed_ns = 100, .hits = 1, .cost_ns = 4 };

	for (int i = 0; i < 100; i++)
		CHECK(ladder_add(&ladder, &config, &sample) == LADDER_ALL);
	CHECK(ladder.overhead == 40000);
	sample.cost_ns = 5;
	for (int i = 0; i < 9; i++)
		CHECK(ladder_add(&ladder, &config, &sample) == LADDER_ALL);
	for (int i = 0; i < 3; i++)
		CHECK(ladder_add(&ladder, &config, &sample) == LADDER_NO_TEXT);
	/* What is reported is the mean of the time above the limit. */
	sample.cost_ns = 5 + 2 * 13;
	CHECK(ladder_add(&ladder, &config, &sample) == LADDER_NO_TEXT);
	CHECK(ladder.above_ns == 1300 && ladder.overhead == 70000);
	/* A long sample is a period by itself; large numbers do not overflow. */
	ladder = (struct ladder){ 0 };
	sample = (struct ladder_sample){ UINT64_MAX / 2, UINT32_MAX, UINT64_MAX / 2 };
	CHECK(ladder_add(&ladder, &config, &sample) == LADDER_NO_TEXT);
	CHECK(ladder.overhead > 999999 && ladder.overhead <= LADDER_WHOLE);
}

int main(void)
{
	RUN(all_sequences);
	RUN(down_and_up);
	RUN(back_off);
	RUN(remembered_cost);
	RUN(edges);
	return check_done();
}
