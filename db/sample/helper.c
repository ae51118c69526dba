// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/sample/helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "host/child.h"
#include "host/clock.h"
#include "host/process.h"

#define HELPER_TOTAL_MS	1000		/* as HELPER_MS, with pauses, in one process */
#define LOOK_MS		20		/* between looks at a child that is silent */
#define REAP_MS		20		/* in which a killed child ends, unless it cannot */
#define RETRY_NS	10000000000u	/* until a user's processes are read again, .. */
#define RETRIES		10		/* .. twice as long each time, up to this power of 2 */

int helper_open(struct helper *helper)
{
	void *shared = mmap(NULL, sizeof(*helper->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return -ENOMEM;
	helper->shared = shared;
	return 0;
}

void helper_bind(void)
{
	/* It may be in a read that does not see that the socket is closed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void helper_run(void *arg, int socket)
{
	struct helper *helper = arg;

	helper_bind();
	helper->socket = socket;
	helper->run(helper->arg, socket);
}

int helper_start(struct helper *helper)
{
	if (helper->child)
		return 0;
	helper->shared->pid = 0;
	helper->seen_section = 0;
	helper->child = child_start(helper->name, helper_run, helper, &helper->socket);
	return helper->child ? 0 : -EAGAIN;
}

/* Return whether the child waits for a CPU, or uses one. */
static bool child_runs(pid_t child)
{
	char stat[512];
	ssize_t n = process_read_file((uint32_t)child, "stat", stat, sizeof(stat) - 1);
	const char *end;

	if (n <= 0)
		return false;
	stat[n] = '\0';
	end = strrchr(stat, ')');
	return end && !strncmp(end, ") R", 3);
}

/* Set what @child has run so far, and waited for a CPU, in ns. Return false: it is not known. */
static bool child_times(pid_t child, uint64_t *ns)
{
	char text[96], *second;
	ssize_t n = process_read_file((uint32_t)child, "schedstat", text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	*ns = strtoull(text, &second, 10);
	*ns += strtoull(second, NULL, 10);
	return *second == ' ';
}

/* The second time it is long, as a thread that gets no CPU may hold the lock of the memory. */
uint64_t helper_wait_ns(const struct helper_shared *shared)
{
	uint64_t ms = HELPER_MS, stalled = 0;

	for (size_t i = 0; i < shared->nusers; i++) {
		const struct helper_user *user = &shared->users[i];

		stalled += user->stalled;
		if (user->uid == shared->uid && user->stalls == 1)
			ms = HELPER_TOTAL_MS;
	}
	ms /= 1 + stalled;
	return (ms > HELPER_MS ? ms : HELPER_MS) * NS_PER_MS;
}

/*
 * Return whether the child has waited for as long as is permitted while it read a process, at once
 * or in all. That it waits for a CPU does not count: the kernel tells how long when it has got one.
 */
static bool helper_waits(struct helper *helper)
{
	struct helper_shared *shared = helper->shared;
	uint32_t section = __atomic_load_n(&shared->section, __ATOMIC_ACQUIRE);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), ns = 0, again;

	if (!__atomic_load_n(&shared->pid, __ATOMIC_ACQUIRE))
		section = 0;
	if (section && !child_times(helper->child, &ns) && child_runs(helper->child))
		section = 0;
	if (!section || section != helper->seen_section) {
		helper->seen_section = section;
		helper->begin_ns = now_ns - ns;
		helper->seen_run_ns = ns;
		helper->seen_ns = now_ns;
		return false;
	}
	if (ns != helper->seen_run_ns) {
		helper->seen_run_ns = ns;
		helper->seen_ns = now_ns;
	}
	if ((now_ns - helper->seen_ns < helper_wait_ns(shared) &&
	     now_ns - ns - helper->begin_ns < HELPER_TOTAL_MS * NS_PER_MS) ||
	    child_runs(helper->child))
		return false;
	/* It may have got a CPU since the first look, and wait only now. */
	return !child_times(helper->child, &again) || again == ns;
}

/* Return whether the child ends. Where a read cannot be killed, it does when that ends. */
static bool helper_reap(pid_t child)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	for (int i = 0; i < REAP_MS; i++) {
		if (waitpid(child, NULL, WNOHANG))
			return true;
		nanosleep(&ms, NULL);
	}
	return false;
}

/* Return for how long a user is left out after @stalls stalls and one more, in ns. */
static uint64_t left_out_ns(unsigned int stalls)
{
	return (RETRY_NS << stalls) / 2;
}

void helper_user_stalls(struct helper_user *user, uint32_t pid, bool ended, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - user->until_ns;

	/* To have answered for as long as it was left out makes up for a stall. */
	while (user->stalls > 2 && now_ns > user->until_ns &&
	       since_ns > left_out_ns(user->stalls - 1))
		since_ns -= left_out_ns(--user->stalls);
	user->pid = pid;
	user->stalled = !ended || user->stalls;
	user->until_ns = ended ? now_ns + left_out_ns(user->stalls) : UINT64_MAX;
	user->stalls += user->stalls < RETRIES;
}

int helper_watch(struct helper *helper, uint32_t *pid)
{
	struct helper_shared *shared = helper->shared;
	bool ended;

	if (!helper->child || !helper_waits(helper))
		return 0;
	*pid = shared->pid;
	kill(helper->child, SIGKILL);
	close(helper->socket);
	ended = helper_reap(helper->child);
	helper->child = 0;
	helper->stuck += !ended;
	helper_user_stalls(helper_user(shared, shared->uid), *pid, ended,
			   clock_ns(CLOCK_MONOTONIC));
	return -ETIMEDOUT;
}

int helper_receive(struct helper *helper, void *data, size_t size, uint32_t *pid)
{
	struct pollfd message = { .fd = helper->socket, .events = POLLIN };
	char *to = data;
	ssize_t n;
	int err;

	/* A message may come in parts, between which the child reads processes. */
	for (; size; to += n, size -= (size_t)n) {
		while (poll(&message, 1, LOOK_MS) <= 0) {
			err = helper_watch(helper, pid);
			if (err)
				return err;
			if (helper->until_ns && clock_ns(CLOCK_MONOTONIC) > helper->until_ns) {
				helper_stop(helper);
				return -ECHILD;
			}
		}
		n = read(helper->socket, to, size);
		if (n <= 0) {
			helper_stop(helper);
			return -ECHILD;
		}
	}
	return 0;
}

int helper_error(struct helper *helper, struct error *error, uint32_t *pid)
{
	int err = helper_receive(helper, error, sizeof(*error), pid);

	error->log = NULL;
	return err;
}

uint32_t helper_uid_of(const struct helper *helper, uint32_t pid)
{
	for (size_t i = 0; i < helper->shared->nusers; i++)
		if (helper->shared->users[i].stalled && helper->shared->users[i].pid == pid)
			return helper->shared->users[i].uid;
	return UINT32_MAX;
}

void helper_begin(struct helper_shared *shared)
{
	shared->matches = shared->sessions = shared->more = 0;
	for (size_t i = 0; i < shared->nusers; i++) {
		struct helper_user *user = &shared->users[i];

		*user = (struct helper_user){ .uid = user->uid, .stalled = user->stalled,
					      .pid = user->pid, .stalls = user->stalls,
					      .until_ns = user->until_ns };
	}
}

struct helper_user *helper_user(struct helper_shared *shared, uint32_t uid)
{
	struct helper_user *user = shared->users;

	for (size_t i = 0; i < shared->nusers; i++, user++)
		if (user->uid == uid)
			return user;
	if (shared->nusers == HELPER_USERS)
		return user - 1;
	*user = (struct helper_user){ .uid = uid };
	shared->nusers++;
	return user;
}

void helper_enter(struct helper_shared *shared, uint32_t pid, uint32_t uid)
{
	shared->uid = uid;
	__atomic_store_n(&shared->section, shared->section + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&shared->pid, pid, __ATOMIC_RELEASE);
}

void helper_leave(struct helper_shared *shared)
{
	__atomic_store_n(&shared->pid, 0, __ATOMIC_RELEASE);
}

bool helper_excludes(struct helper_user *user)
{
	if (user->stalled && clock_ns(CLOCK_MONOTONIC) >= user->until_ns)
		user->stalled = false;
	return user->stalled;
}

bool helper_has_stalled(const struct helper_shared *shared)
{
	for (size_t i = 0; i < shared->nusers; i++)
		if (shared->users[i].stalled)
			return true;
	return false;
}

void helper_stop(struct helper *helper)
{
	if (!helper->child)
		return;
	kill(helper->child, SIGKILL);
	close(helper->socket);
	helper_reap(helper->child);
	helper->child = 0;
}

void helper_close(struct helper *helper)
{
	helper_stop(helper);
	if (helper->shared)
		munmap(helper->shared, sizeof(*helper->shared));
	helper->shared = NULL;
}
