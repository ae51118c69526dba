// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/arrivals.h"

#include "db/discover/await.h"
#include "db/engines.h"
#include "host/clock.h"

#define DRAIN_NS	5000000u	/* between two drains while a file is read */
#define CHECK_NS	20000000u	/* of one call of arrivals_check(), without its last file */
#define SCAN_NS		3000000000u	/* least time between two scans of all processes */
#define SCAN_SHARE	100		/* they take at most 1/SCAN_SHARE of the time */
#define MISSED_NS	1000000000u	/* the same if a process is known to be missing */
#define MISSED_SHARE	4
#define USER_NS		50000000u	/* of reading files of one user in a scan */

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
	*arrivals = (struct arrivals){ .discover = discover, .drain = drain, .arg = arg,
				       .scanned_ns = clock_ns(CLOCK_MONOTONIC) };
	discover->common.pause = (struct elf_pause){ arrivals_pause, arrivals };
	discover->runtime->attacher.pause = discover->common.pause;
}

void arrivals_put(struct arrivals *arrivals, const struct event_exec *exec)
{
	arrivals->discover->names += exec->name.uid != EXEC_ANY_USER;
	if (arrivals->count == ARRIVALS_MAX)
		arrivals->missed = true;
	else
		arrivals->execs[(arrivals->first + arrivals->count++) % ARRIVALS_MAX] = *exec;
}

static int arrivals_process(void *arg, const struct process *process)
{
	struct arrivals *arrivals = arg;
	struct discover *d = arrivals->discover;
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);

	if (!share_has_time(&d->share, process))
		return 0;
	if (arrivals->all)
		discover_executed(d, &(struct event_exec){ .session.pid = process->pid });
	else
		discover_running(d, process);
	share_spend(&d->share, process, clock_ns(CLOCK_MONOTONIC) - begin_ns);
	return arrivals_pause(arrivals);
}

/*
 * Check all processes, now and then, for servers whose exec was not reported: because another
 * program of the same name was executed before, or because the buffer or ->execs was full.
 */
static void arrivals_scan(struct arrivals *arrivals, uint64_t begin_ns)
{
	struct discover *d = arrivals->discover;
	const struct server_filter *filter = d->filter;
	bool missed = arrivals->missed, due = young_due(&d->young);
	uint64_t least_ns = missed ? MISSED_NS : SCAN_NS;
	uint64_t rest_ns = arrivals->took_ns * (missed ? MISSED_SHARE : SCAN_SHARE);

	if (!missed && (filter->npids || filter->npaths) && !discover_waits(d))
		return;
	if (!due && begin_ns - arrivals->scanned_ns < (rest_ns > least_ns ? rest_ns : least_ns))
		return;
	arrivals->all = missed;
	arrivals->missed = false;
	share_make_room(&d->share, d->targets, d->ntargets, &d->common.pause);
	share_begin(&d->share, USER_NS);
	process_each(engine_is_executable, arrivals_process, arrivals);
	arrivals->scanned_ns = clock_ns(CLOCK_MONOTONIC);
	arrivals->took_ns = arrivals->scanned_ns - begin_ns;
}

/* Keep the map of names from filling up, from when on each execution would be reported. */
static void arrivals_names(struct discover *d)
{
	if (d->names < AWAIT_NAMES_RENEW || d->filter->npids || d->filter->npaths)
		return;
	await_renew(d->comms, d->targets, d->ntargets);
	d->names = 0;
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
	arrivals_names(arrivals->discover);
	arrivals_scan(arrivals, now);
	return arrivals->count || arrivals->missed;
}
