// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of bpf/locks.bpf.c in the kernel: waits of threads whose ID becomes free; of db/locks/info:
 * holders that change during a wait; of db/locks/poll; and of what db/sink redacts of a wait.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "bpf/embed.h"
#include "bpf/lock_event.h"
#include "db/locks/poll.h"
#include "db/sink.h"
#include "loader/runtime.h"
#include "tests/unit/check.h"
#include "tests/unit/load.h"

static bool no_program(const char *name)
{
	(void)name;
	return false;
}

static void fail_error(void *arg, const struct error *error)
{
	(void)arg;
	CHECK(false, "error %d", error->kind);
}

static int any_record(void *arg, const void *data, size_t size)
{
	const struct event_lock *event = data;

	if (size >= sizeof(*event) && event->head.type == EVENT_LOCK_END)
		++*(unsigned int *)arg;
	return 0;
}

/* Trace executions with an empty map of waits. */
static int open_locks(struct runtime *rt, struct error *error)
{
	static const struct runtime_config config = {
		.objects = { { bpf_locks, bpf_locks_end } }, .is_program = no_program,
		.error = fail_error,
	};
	static const struct map_def maps[] = {
		{ "waits", BPF_MAP_TYPE_HASH, 8, sizeof(struct event_lock), 8, 0 },
		{ "rows", BPF_MAP_TYPE_LRU_HASH, 8, sizeof(struct lock_row), 8, 0 },
	};
	static const struct runtime_tracepoint exec = {
		.program = "waiter_exec", .name = "sched_process_exec",
	};
	int err = runtime_open(rt, &config, error);

	err = err ? err : runtime_maps(rt, maps, 2, error);
	err = err ? err : runtime_stream(rt, 1u << 20, sizeof(struct event_lock), error);
	err = err ? err : runtime_tracepoint(rt, &exec, error);
	return err ? err : runtime_listen(rt, error);
}

static int report[2], proceed[2];	/* pipes */

/* A second thread that executes a program. */
static void *execute(void *arg)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	if (write(report[1], &tid, sizeof(tid)) == sizeof(tid) && read(proceed[0], &tid, 1) == 1)
		execl("/bin/true", "true", NULL);
	_exit(1);
	return arg;
}

/*
 * Put a wait of the second thread of a process into the map, as one of process @pid or, if that is
 * 0, of that process itself; then have it execute a program. Return whether the wait is kept.
 */
static bool kept_after_exec(int waits, uint32_t pid)
{
	struct event_lock wait = { .head.type = EVENT_LOCK_WAIT };
	pthread_t thread;
	pid_t child, tid = 0;
	uint64_t key;
	int status = 0;

	CHECK(!pipe(report) && !pipe(proceed));
	child = fork();
	if (!child) {
		pthread_create(&thread, NULL, execute, NULL);
		pthread_join(thread, NULL);
		_exit(1);
	}
	CHECK(read(report[0], &tid, sizeof(tid)) == sizeof(tid) && tid != child, "%d", tid);
	wait.pid = pid ? pid : (uint32_t)child;
	wait.tid = (uint32_t)tid;
	key = (uint64_t)tid;
	CHECK(!sys_map_update(waits, &key, &wait));
	CHECK(write(proceed[1], "", 1) == 1 && waitpid(child, &status, 0) == child && !status,
	      "%d", status);
	for (int i = 0; i < 2; i++) {
		close(report[i]);
		close(proceed[i]);
	}
	return !sys_map_lookup(waits, &key, &wait);
}

/* The ID of the executing thread may be another process's already, which waits by then. */
static void exec_ends_own_wait(void)
{
	const char *why = load_forbidden();
	static struct runtime rt;
	struct error error = { .kind = ERROR_NONE };
	unsigned int ended = 0;
	int waits;

	if (why) {
		SKIP(why);
		return;
	}
	CHECK(!open_locks(&rt, &error), "%d %s", error.kind, error.subject);
	waits = runtime_map(&rt, "waits");
	if (waits < 0 || rt.pid_ns_ino) {
		SKIP("thread IDs of the initial PID namespace are required");
	} else {
		CHECK(!kept_after_exec(waits, 0));
		runtime_drain(&rt, any_record, &ended);
		CHECK(ended == 1, "%u", ended);
		CHECK(kept_after_exec(waits, (uint32_t)getpid()));
		runtime_drain(&rt, any_record, &ended);
		CHECK(ended == 1, "%u", ended);
	}
	runtime_close(&rt);
}

/* Update @info by a read at @now that found @n holders, whose PIDs are @pids. */
static void read_holders(struct lock_info *info, uint64_t now, const uint32_t *pids, unsigned int n)
{
	struct lock_info fresh = { .known = true, .self.pid = 9 };

	for (unsigned int i = 0; i < n; i++) {
		struct lock_backend backend = { .pid = pids[i], .valid = true, .running = true };

		backend.text = strdup("select");
		backend.len = 6;
		lock_info_add(&fresh, &backend);
	}
	lock_info_update(info, &fresh, 0, now, false);
}

#define READ(info, now, ...)                                                         \
	read_holders(info, now, (const uint32_t[]){ __VA_ARGS__ },                   \
		     sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static uint64_t blocked_by(const struct lock_info *info, uint32_t pid)
{
	for (unsigned int i = 0; i < info->nholders; i++)
		if (info->holders[i].pid == pid)
			return info->holders[i].blocked_ns;
	return UINT64_MAX;
}

/* The time between two reads counts for the holders of the first one. */
static void holders_are_credited(void)
{
	struct lock_info info = { .credited_ns = 1000 }, none = { .known = true, .self.pid = 9 };

	none.known = false;
	lock_info_update(&info, &none, -ENOENT, 1010, false);
	CHECK(!info.known && !info.nholders);
	READ(&info, 1020, 7);
	CHECK(info.known && blocked_by(&info, 7) == 0);
	READ(&info, 1100, 7, 8);
	none = (struct lock_info){ .known = true, .self.pid = 9 };
	lock_info_update(&info, &none, 0, 1150, false);
	lock_info_update(&info, &none, -ESTALE, 1160, false);
	READ(&info, 1200, 8);
	lock_info_credit(&info, 1500);
	lock_info_credit(&info, 1400);
	CHECK(info.nholders == 2 && info.known && !info.more);
	CHECK(blocked_by(&info, 7) == 200 && blocked_by(&info, 8) == 400, "%llu %llu",
	      (unsigned long long)blocked_by(&info, 7), (unsigned long long)blocked_by(&info, 8));
	CHECK(!info.holders[0].current && info.holders[1].current);
	/* The session waits for another lock already. */
	info.lock = 0x1000;
	none = (struct lock_info){ .lock = 0x2000, .nholders = 1, .self.pid = 9 };
	none.holders[0].pid = 5;
	lock_info_update(&info, &none, 0, 1600, false);
	CHECK(info.nholders == 2 && info.lock == 0x1000);
	lock_info_clear(&info);
}

/* A backend that is ahead in the queue and then gets the lock is both, for a time each. */
static void queued_is_not_held(void)
{
	struct lock_info info = { .credited_ns = 0 };
	struct lock_info ahead = { .self.pid = 9, .nholders = 1, .known = true };

	ahead.holders[0] = (struct lock_backend){ .pid = 7, .queued = true };
	lock_info_update(&info, &ahead, 0, 10, false);
	READ(&info, 30, 7);
	lock_info_credit(&info, 100);
	CHECK(info.nholders == 2 && info.holders[0].queued && !info.holders[1].queued);
	CHECK(info.holders[0].blocked_ns == 30 && info.holders[1].blocked_ns == 70);
	lock_info_clear(&info);
}

/* Of more than are kept, the one that held the lock for the shortest time is only counted. */
static void holders_are_replaced(void)
{
	struct lock_info info = { .credited_ns = 0 };

	for (uint32_t pid = 1; pid <= LOCK_HOLDERS_KEPT; pid++)
		READ(&info, pid == 4 ? 3 * 100 + 1 : pid * 100, pid);
	/* PIDs 1 to 8 held it for 200, 100, 1, 199, 100, 100 and 100 ns, and 8 still does. */
	CHECK(info.nholders == LOCK_HOLDERS_KEPT && !info.more && blocked_by(&info, 3) == 1);
	READ(&info, 900, 100, 2);
	CHECK(info.nholders == LOCK_HOLDERS_KEPT && info.more == 1 && info.dropped == 1);
	CHECK(blocked_by(&info, 3) == UINT64_MAX && blocked_by(&info, 2) == 100);
	READ(&info, 1000, 1, 2, 4, 5, 6, 7, 8, 100);
	READ(&info, 1100, 1, 2, 4, 5, 6, 7, 8, 200);
	CHECK(blocked_by(&info, 2) == 300 && blocked_by(&info, 200) == 0 && info.more == 2);
	lock_info_clear(&info);
}

/* A holder that was idle is not shown with the statement that ended its transaction. */
static void idle_holders_stay_idle(void)
{
	struct lock_info info = { .credited_ns = 0 };
	struct lock_info fresh = { .nholders = 1, .known = true, .self.pid = 9 };

	READ(&info, 10, 7);
	fresh.holders[0] = (struct lock_backend){ .pid = 7, .valid = true, .idle = true,
						  .idle_ns = 5 };
	lock_info_update(&info, &fresh, 0, 20, false);
	CHECK(info.holders[0].idle && !info.holders[0].text);
	READ(&info, 30, 7);
	CHECK(info.holders[0].idle && info.holders[0].idle_ns == 5 && !info.holders[0].text);
	CHECK(info.holders[0].blocked_ns == 30 && info.holders[0].current);
	fresh = (struct lock_info){ .nholders = 1, .known = true, .self.pid = 9 };
	fresh.holders[0] = (struct lock_backend){ .pid = 7, .valid = true, .running = true };
	lock_info_update(&info, &fresh, 0, 40, true);
	CHECK(!info.holders[0].idle && info.holders[0].running && info.nholders == 1);
	lock_info_clear(&info);
}

static bool has_text(const struct lock_backend *backend, const char *text)
{
	return backend->text && backend->len == strlen(text) &&
	       !memcmp(backend->text, text, backend->len);
}

static unsigned int shown;

/* Check a wait that is shown; @arg: the name of its object. */
static bool show_redacted(void *arg, const struct lock_wait *wait)
{
	const struct lock_info *info = wait->info;

	shown++;
	CHECK(!strcmp(info->object, arg), "%s", info->object);
	CHECK(has_text(&info->self, "update t set a = ?") && info->nholders == 3);
	CHECK(has_text(&info->holders[0], "select ?, ?"), "%.*s", (int)info->holders[0].len,
	      info->holders[0].text);
	CHECK(!info->holders[1].text && !info->holders[1].len);
	/* It has ended, and may have failed as a string had no end. */
	CHECK(has_text(&info->holders[2], "select ?"), "%.*s", (int)info->holders[2].len,
	      info->holders[2].text);
	return true;
}

/* The name of a user lock is a literal. What is redacted is a copy. */
static void user_locks_are_redacted(void)
{
	static const struct engine mysql = { .name = "mysql", .dialect = FINGERPRINT_MYSQL };
	static const struct server server = { .engine = &mysql };
	static const struct who who = { .pid = 9 };
	char waits[] = "update t set a = 'x'", holds[] = "select 'a', 12";
	char held[] = "select 'a\\', 'b', c";
	char acc[] = "shop.acc", unknown[] = "?";
	struct lock_info info = {
		.event = { .flags = LOCK_SESSION, .kind = LOCK_WAITS_METADATA },
		.object = "shop.acc", .nholders = 3,
		.self = { .text = waits, .len = strlen(waits), .running = true },
		.holders = { { .text = holds, .len = strlen(holds), .running = true },
			     { .pid = 7 }, { .text = held, .len = strlen(held) } },
	}, before = info;
	const struct lock_wait wait = { .server = &server, .who = &who, .info = &info };
	struct sink_config config = { .redact = true, .arg = acc, .wait = show_redacted };
	struct sink sink;

	for (int user = 0; user < 2; user++) {
		CHECK(!sink_open(&sink, &config));
		sink_wait(&sink, &wait);
		sink_close(&sink);
		CHECK(!memcmp(&info, &before, sizeof(info)));
		CHECK(!strcmp(waits, "update t set a = 'x'") && !strcmp(holds, "select 'a', 12") &&
		      !strcmp(held, "select 'a\\', 'b', c"));
		config.arg = unknown;
		info.event.kind = before.event.kind = LOCK_WAITS_USER;
	}
	CHECK(shown == 2, "%u", shown);
}

#define MS	1000000ull

/* Have a pass at @at read @w if it is due, which takes @ns. Return whether it was read. */
static bool pass(struct lock_poll *poll, uint64_t at, struct lock_waiter *w, uint64_t ns)
{
	bool due;

	CHECK(lock_poll_begin(poll, at));
	due = lock_poll_due(poll, w);
	if (due)
		lock_poll_read(poll, w, at + ns, MS);
	lock_poll_end(poll, at + (due ? ns : 0));
	return due;
}

/* Waits are due after the interval or a share of their age, or when their lock has changed. */
static void polls_are_due(void)
{
	static struct lock_poll poll;
	struct lock_waiter w = { .event.field = { 1, 2, 3, 4 } }, old = { .event.field = { 9 } };

	CHECK(!pass(&poll, 90 * MS, &w, 0) && !pass(&poll, 90 * MS, &old, 0));
	CHECK(w.due_ns == 100 * MS && old.due_ns == 100 * MS && poll.wake_ns == 100 * MS);
	CHECK(lock_poll_begin(&poll, 100 * MS) && lock_poll_due(&poll, &w) &&
	      lock_poll_due(&poll, &old));
	lock_poll_read(&poll, &w, 100 * MS, 5 * MS);
	lock_poll_read(&poll, &old, 101 * MS, 6400 * MS);
	lock_poll_end(&poll, 101 * MS);
	CHECK(w.due_ns == 110 * MS && old.due_ns == 200 * MS);
	/* It rests, so that this is at most a 17th of the time. */
	CHECK(poll.wake_ns == 117 * MS && !lock_poll_begin(&poll, 116 * MS));
	CHECK(pass(&poll, 117 * MS, &w, 0) && poll.wake_ns == 127 * MS);
	CHECK(!pass(&poll, 118 * MS, &w, 0) && poll.wake_ns == 127 * MS);
	lock_poll_changed(&poll, &w.event);
	CHECK(poll.wake_ns == 118 * MS && !pass(&poll, 119 * MS, &old, 0));
	lock_poll_changed(&poll, &w.event);
	CHECK(pass(&poll, 119 * MS, &w, 0) && w.due_ns == 129 * MS);
	CHECK(lock_poll_begin(&poll, 130 * MS) && lock_poll_due(&poll, &w));
	lock_poll_read(&poll, &w, 130 * MS, UINT64_MAX);
	CHECK(w.due_ns == 1130 * MS);
}

/* Each user has a share of a pass. What it has no time for is read less often. */
static void polls_are_shared(void)
{
	static struct lock_poll poll;
	struct lock_waiter a = { .event.head.owner = 1 }, b = a, c = a;
	struct lock_waiter other = { .event.head.owner = 2 };
	uint64_t now = 1000 * MS;

	a.due_ns = b.due_ns = c.due_ns = other.due_ns = 1;
	for (int i = 0; i < 20; i++, now = poll.next_ns) {
		CHECK(lock_poll_begin(&poll, now));
		if (lock_poll_due(&poll, &a))
			lock_poll_read(&poll, &a, now + 3 * MS, MS);
		if (lock_poll_due(&poll, &b))
			lock_poll_read(&poll, &b, now + 6 * MS, MS);
		if (lock_poll_due(&poll, &c))
			lock_poll_read(&poll, &c, now + 9 * MS, MS);
		CHECK(lock_poll_due(&poll, &other));
		lock_poll_read(&poll, &other, now + 9 * MS, MS);
		lock_poll_end(&poll, now + 9 * MS);
	}
	CHECK(a.due_ns > 1 && b.due_ns > 1 && c.due_ns > 1);
	CHECK(poll.owner[1].interval_ms > LOCK_POLL_MS &&
	      poll.owner[2].interval_ms == LOCK_POLL_MS);
}

int main(void)
{
	RUN(holders_are_credited);
	RUN(queued_is_not_held);
	RUN(holders_are_replaced);
	RUN(idle_holders_stay_idle);
	RUN(user_locks_are_redacted);
	RUN(polls_are_due);
	RUN(polls_are_shared);
	RUN(exec_ends_own_wait);
	return check_done();
}
