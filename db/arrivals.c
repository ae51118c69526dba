// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/arrivals.h"

#include "db/engines.h"
#include "host/clock.h"

#define DRAIN_NS	5000000u	/* between two drains while a file is read */
#define CHECK_NS	20000000u	/* of one call of arrivals_check(), without its last file */
#define SCAN_NS		1000000000u	/* between two scans of all processes */

/* Called while a file is read: handle the records that have come. Return whether to stop. */
static bool arrivals_pause(void *arg)
{
	struct arrivals *arrivals = arg;

	if (clock_ns(CLOCK_MONOTONIC) - arrivals->drained_ns < DRAIN_NS)
		return false;
	arrivals->drain(arrivals->arg);
	arrivals->drained_ns = clock_ns(CLOCK_MONOTONIC);
	return runtime_stopped(arrivals->discover->runtime);
}

void arrivals_open(struct arrivals *arrivals, struct discover *discover, void (*drain)(void *arg),
		   void *arg)
{
	*arrivals = (struct arrivals){ .discover = discover, .drain = drain, .arg = arg };
	discover->common.pause = (struct elf_pause){ arrivals_pause, arrivals };
	discover->runtime->attacher.pause = discover->common.pause;
}

void arrivals_put(struct arrivals *arrivals, const struct event_exec *exec)
{
	if (arrivals->count == ARRIVALS_MAX)
		arrivals->missed = true;
	else
		arrivals->execs[(arrivals->first + arrivals->count++) % ARRIVALS_MAX] = *exec;
}

/* Check a process as if it had just been started. Return whether the tool is to end. */
static int arrivals_process(void *arg, const struct process *process)
{
	struct arrivals *arrivals = arg;

	discover_executed(arrivals->discover,
			  &(struct event_exec){ .session.pid = process->pid });
	return arrivals_pause(arrivals);
}

/* Return whether all processes are to be checked now. */
static bool arrivals_scan_due(struct arrivals *arrivals, uint64_t now)
{
	return arrivals->missed && !arrivals->count && now - arrivals->scanned_ns >= SCAN_NS;
}

bool arrivals_check(struct arrivals *arrivals)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), now = start;

	arrivals->drained_ns = start;
	while (arrivals->count && now - start < CHECK_NS) {
		struct event_exec exec = arrivals->execs[arrivals->first];

		arrivals->first = (arrivals->first + 1) % ARRIVALS_MAX;
		arrivals->count--;
		discover_executed(arrivals->discover, &exec);
		now = clock_ns(CLOCK_MONOTONIC);
	}
	if (arrivals_scan_due(arrivals, now)) {
		arrivals->missed = false;
		process_each(engine_is_executable, arrivals_process, arrivals);
		arrivals->scanned_ns = clock_ns(CLOCK_MONOTONIC);
	}
	return arrivals->count || arrivals->missed;
}
