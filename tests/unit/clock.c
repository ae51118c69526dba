/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host/clock: the offset between two clocks, read by a process that is preempted. */
#include <stdint.h>
#include <time.h>

static int fake_gettime(clockid_t clock, struct timespec *ts);

/* The module under test, beside the one of the library. */
#define clock_ahead		tested_ahead
#define clock_wall_offset	tested_offset
#define clock_gettime		fake_gettime
#include "host/clock.c"

#include "tests/unit/check.h"

#define OFFSET	1000000000000000000u	/* of CLOCK_REALTIME */
#define PAUSE	200000000u

static uint64_t now_ns;
static unsigned int readings, paused;	/* the first readings are each followed by a pause */

static int fake_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns = now_ns + (clock == CLOCK_REALTIME ? OFFSET : 0);

	ts->tv_sec = (time_t)(ns / 1000000000u);
	ts->tv_nsec = (long)(ns % 1000000000u);
	now_ns += readings++ < paused ? PAUSE : 30;
	return 0;
}

static uint64_t error_of(unsigned int pauses, int64_t ahead)
{
	uint64_t offset;

	now_ns = 5000000000u;
	readings = 0;
	paused = pauses;
	offset = clock_wall_offset(ahead) - (uint64_t)ahead;
	return offset > OFFSET ? offset - OFFSET : OFFSET - offset;
}

/* It is right if one of the tries is not interrupted, and else as near as can be. */
static void preempted(void)
{
	for (unsigned int pauses = 0; pauses <= 3 * (OFFSET_TRIES - 1); pauses++)
		CHECK(error_of(pauses, 0) < 100, "%u", pauses);
	CHECK(error_of(5, 123456789) < 100 && error_of(5, -123456789) < 100);
	CHECK(error_of(3 * OFFSET_TRIES, 0) <= PAUSE && readings == 3 * OFFSET_TRIES);
}

int main(void)
{
	RUN(preempted);
	return check_done();
}
