// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/interval.h"

#include <time.h>

#include "base/base.h"
#include "cli/command.h"
#include "cli/message.h"
#include "host/clock.h"

int interval_flush(struct output *out, struct output *err)
{
	int status = message_output(err, output_flush(out));

	return status != EXIT_OK ? status : out->error ? INTERVAL_ENDED : INTERVAL_GO;
}

int interval_repeat(const struct options *options, int (*once)(void *arg), void *arg)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), next_ns = start_ns;
	struct timespec at;
	int status = once(arg);

	for (uint64_t n = 1; status == INTERVAL_GO && options->interval_ns &&
			     (!options->count || n < options->count); n++) {
		next_ns += options->interval_ns;
		if (options->duration_ns && next_ns - start_ns >= options->duration_ns)
			break;
		at = (struct timespec){ .tv_sec = (time_t)(next_ns / NS_PER_S),
					.tv_nsec = (long)(next_ns % NS_PER_S) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		status = once(arg);
	}
	return status == INTERVAL_GO || status == INTERVAL_ENDED ? EXIT_OK : status;
}
