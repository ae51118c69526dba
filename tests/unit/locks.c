// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of bpf/locks.bpf.c in the kernel: waits of threads whose ID becomes free. */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "bpf/embed.h"
#include "bpf/lock_event.h"
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
	static const struct runtime_tracepoint exec = { "waiter_exec", "sched_process_exec", 0 };
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

int main(void)
{
	RUN(exec_ends_own_wait);
	return check_done();
}
