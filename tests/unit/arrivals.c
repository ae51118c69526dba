/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* db/discover/arrivals: programs that were executed and wait to be checked. */
#include "db/discover/discover.h"
#include "host/clock.h"

/* The module under test, beside the one of the library. */
#define arrivals_open		tested_open
#define arrivals_put		tested_put
#define arrivals_check		tested_check

#define discover_executed	fake_executed
#define discover_running	fake_running
#define discover_waits		fake_waits
#define young_due		fake_due
#define share_make_room		fake_make_room
#define process_each		fake_each
#define clock_ns		fake_clock_ns
void fake_executed(struct discover *d, const struct event_exec *exec);
void fake_running(struct discover *d, const struct process *process);
bool fake_waits(const struct discover *d);
bool fake_due(struct young *young);
void fake_make_room(const struct share *share, struct target *targets, size_t ntargets,
		    const struct elf_pause *pause);
int fake_each(bool (*is_program)(const char *name),
	      int (*each)(void *arg, const struct process *process), void *arg);
uint64_t fake_clock_ns(clockid_t clock);
#include "db/discover/arrivals.c"

#include "tests/unit/check.h"

#define MS	1000000u

static uint64_t now_ns, check_ns;		/* the time, and how long a check takes */
static unsigned int drains, scans, pauses, running;
static uint32_t users_last;		/* processes up to this PID are of an ordinary user */
static uint32_t seen[4 * ARRIVALS_MAX];
static size_t nseen;
static bool stop, reads;			/* the tool is to end; a check reads a file */
static bool waits, due;				/* for a file to be attached to */
static struct arrivals arrivals;
static struct discover discover;
static struct server_filter filter;
static struct runtime runtime;

uint64_t fake_clock_ns(clockid_t clock)
{
	CHECK(clock == CLOCK_MONOTONIC);
	return now_ns;
}

void fake_executed(struct discover *d, const struct event_exec *exec)
{
	uint64_t end = now_ns + check_ns;

	CHECK(d == &discover);
	seen[nseen++ % (4 * ARRIVALS_MAX)] = exec->session.pid;
	while (reads && now_ns < end) {
		now_ns += MS;
		pauses++;
		if (d->common.pause.pause(d->common.pause.arg))
			return;
	}
	now_ns = end;
}

int fake_each(bool (*is_program)(const char *name),
	      int (*each)(void *arg, const struct process *process), void *arg)
{
	struct process process = { .pid = 0 };
	int ret = 0;

	CHECK(is_program == engine_is_executable);
	scans++;
	while (!ret && ++process.pid <= 10) {
		process.uid = process.pid <= users_last ? 1001 : 0;
		ret = each(arg, &process);
	}
	return ret;
}

void fake_running(struct discover *d, const struct process *process)
{
	CHECK(d == &discover && process->pid <= 10);
	running++;
	now_ns += check_ns;
}

bool fake_waits(const struct discover *d)
{
	CHECK(d == &discover);
	return waits;
}

bool fake_due(struct young *young)
{
	CHECK(young == &discover.young);
	return due;
}

void fake_make_room(const struct share *share, struct target *targets, size_t ntargets,
		    const struct elf_pause *pause)
{
	CHECK(share == &discover.share && targets == discover.targets && !ntargets);
	CHECK(pause == &discover.common.pause);
}

static void on_drain(void *arg)
{
	CHECK(arg == &now_ns);
	drains++;
	now_ns += MS;
}

static bool on_stopped(void *arg)
{
	CHECK(arg == &now_ns);
	return stop;
}

static void begin(void)
{
	drains = scans = pauses = running = 0;
	nseen = 0;
	stop = reads = false;
	now_ns = 1000000000000u;
	check_ns = 0;
	runtime.config.stopped = on_stopped;
	runtime.config.arg = &now_ns;
	discover.runtime = &runtime;
	filter = (struct server_filter){ .engine = NULL };
	discover.filter = &filter;
	arrivals_open(&arrivals, &discover, on_drain, &now_ns);
}

static void put(uint32_t pid)
{
	arrivals_put(&arrivals, &(struct event_exec){ .session.pid = pid });
}

/* In order, all of them, also around the end of the array. */
static void in_order(void)
{
	uint32_t pid = 0, expect = 0;

	begin();
	CHECK(!arrivals_check(&arrivals) && !nseen);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < ARRIVALS_MAX * 2 / 3; i++)
			put(++pid);
		nseen = 0;
		CHECK(!arrivals_check(&arrivals));
		for (size_t i = 0; i < nseen; i++)
			CHECK(seen[i] == ++expect, "%u", seen[i]);
	}
	CHECK(expect == pid && !scans && !drains);
}

/* Checks that take long are spread over several calls. */
static void in_slices(void)
{
	unsigned int calls = 0;

	begin();
	check_ns = 8 * MS;
	for (uint32_t i = 0; i < 30; i++)
		put(i);
	while (arrivals_check(&arrivals) && calls < 100) {
		CHECK(now_ns <= 1000000000000u + (calls + 1) * 28 * (uint64_t)MS);
		calls++;
	}
	CHECK(nseen == 30 && calls == 9, "%zu %u", nseen, calls);
}

/* A file that takes a second to read: records are handled meanwhile, and the end is not delayed. */
static void drained(void)
{
	begin();
	reads = true;
	check_ns = 1000 * MS;
	put(7);
	CHECK(!arrivals_check(&arrivals));
	CHECK(drains >= 100 && drains <= 250, "%u", drains);
	put(8);
	stop = true;
	drains = pauses = 0;
	arrivals_check(&arrivals);
	CHECK(drains == 1 && pauses < 10, "%u %u", drains, pauses);
}

/* Without room, all processes are checked instead, but not all the time. */
static void missed(void)
{
	begin();
	for (uint32_t i = 0; i < ARRIVALS_MAX + 10; i++)
		put(100 + i);
	CHECK(arrivals_check(&arrivals) && nseen == ARRIVALS_MAX && !scans);
	now_ns += 1000 * MS;
	CHECK(!arrivals_check(&arrivals) && nseen == ARRIVALS_MAX + 10 && scans == 1 && !running);
	for (uint32_t i = 0; i < ARRIVALS_MAX + 1; i++)
		put(100 + i);
	CHECK(arrivals_check(&arrivals) && scans == 1);
	now_ns += 500 * MS;
	CHECK(arrivals_check(&arrivals) && scans == 1);
	now_ns += 600 * MS;
	CHECK(!arrivals_check(&arrivals) && scans == 2);
	for (uint32_t i = 0; i < ARRIVALS_MAX + 1; i++)
		put(100 + i);
	now_ns += 2000 * MS;
	check_ns = 5 * MS;
	stop = true;
	nseen = 0;
	while (arrivals.count)
		arrivals_check(&arrivals);
	CHECK(scans == 3 && nseen < ARRIVALS_MAX + 5, "%zu", nseen);
}

/* All processes are checked now and then, in a small part of the time; records are handled. */
static void all_processes(void)
{
	static const uint32_t pid = 1;

	begin();
	check_ns = 20 * MS;
	CHECK(!arrivals_check(&arrivals) && !scans);
	now_ns += SCAN_NS - MS;
	CHECK(!arrivals_check(&arrivals) && !scans, "not yet");
	now_ns += MS;
	CHECK(!arrivals_check(&arrivals) && scans == 1 && running == 10 && drains == 10, "%u %u",
	      running, drains);
	now_ns += SCAN_NS;
	CHECK(!arrivals_check(&arrivals) && scans == 1, "it took 0.2 s");
	now_ns += 20 * (uint64_t)SCAN_NS;
	stop = true;
	CHECK(!arrivals_check(&arrivals) && scans == 2 && running == 11, "%u", running);
	stop = false;
	users_last = 5;
	now_ns += 100 * (uint64_t)SCAN_NS;
	CHECK(!arrivals_check(&arrivals) && scans == 3 && running == 11 + 8, "%u", running);
	users_last = 0;
	filter = (struct server_filter){ .pids = &pid, .npids = 1 };
	now_ns += 100 * (uint64_t)SCAN_NS;
	CHECK(!arrivals_check(&arrivals) && scans == 3, "all servers are known");
	waits = true;
	CHECK(!arrivals_check(&arrivals) && scans == 4, "but one that is not traced yet");
	CHECK(!arrivals_check(&arrivals) && scans == 4);
	due = true;
	CHECK(!arrivals_check(&arrivals) && scans == 5, "its time has come");
	waits = due = false;
}

int main(void)
{
	RUN(in_order);
	RUN(in_slices);
	RUN(drained);
	RUN(missed);
	RUN(all_processes);
	return check_done();
}
