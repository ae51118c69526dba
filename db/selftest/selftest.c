// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/selftest/selftest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "db/selftest/selfprobe.h"
#include "db/tracer.h"
#include "host/privileges.h"
#include "host/process.h"
#include "loader/feature.h"

#define TEXT_BYTES	4096		/* of a statement; about 500 of them fill the buffer */
#define BURST		600		/* statements, to overflow the buffer */
#define SPAN_NS		1000000		/* minimum duration of a statement */
#define WAKE_MS		500		/* maximum wait for a wake-up */
#define SPANS		8		/* statements with a known duration */
#define COUNT_TRIES	3		/* readings of the semaphores */

static const char self_path[] = "/proc/self/exe";

/* A method of attaching and reading. */
struct method {
	const char *name;
	uint32_t denied;	/* features not to use, see feature_deny() */
	unsigned int text_arg;	/* SELFPROBE_TEXT or SELFPROBE_TEXT_IN */
};

/* State of the self-test. */
struct selftest {
	void (*step)(void *arg, const struct selftest_step *step);
	void *arg;
	const struct method *method, *used;	/* ->used: by tracing on this host */
	struct tracer *tracer;
	struct error error;
	struct selftest_step current;
	uint64_t begun_ns;		/* start of the step, CLOCK_MONOTONIC */
	uint32_t pid;			/* of this process, as in /proc */
	bool failed, burst_done;
	uint64_t seen, wrong;		/* statements received, and unexpected ones of these */
	uint64_t low_ns, high_ns;	/* bounds of an expected duration */
	const char *expected;		/* text of a statement; NULL: any */
};

static uint64_t selftest_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void step_begin(struct selftest *test, const char *what)
{
	test->current = (struct selftest_step){ .method = test->method->name, .what = what };
	test->begun_ns = selftest_now();
}

/* End the step and report its result, @format. Return @ok. */
__attribute__((format(printf, 3, 4)))
static bool step_end(struct selftest *test, bool ok, const char *format, ...)
{
	va_list args;

	test->current.ns = selftest_now() - test->begun_ns;
	test->current.ok = ok;
	test->current.error = test->error.kind != ERROR_NONE ? &test->error : NULL;
	va_start(args, format);
	vsnprintf(test->current.found, sizeof(test->current.found), format, args);
	va_end(args);
	test->step(test->arg, &test->current);
	test->failed |= !ok && !test->current.instead;
	return ok;
}

static bool selftest_statement(void *arg, const struct statement *s)
{
	struct selftest *test = arg;
	bool right = s->who->pid == test->pid && s->duration_ns >= test->low_ns &&
		     s->duration_ns <= test->high_ns;

	if (test->expected)
		right &= s->text && s->text_len == strlen(test->expected) &&
			 !memcmp(s->text, test->expected, s->text_len);
	test->seen++;
	test->wrong += !right;
	return true;
}

static void selftest_server(void *arg, const struct server_info *server)
{
	(void)arg;
	(void)server;
}

static void selftest_error(void *arg, const struct error *error)
{
	(void)arg;
	(void)error;
}

/* Return whether the kernel refused to attach for lack of a permission, or of a resource. */
static bool selftest_refused(const struct error *error)
{
	return !error->log && (error->code == -EPERM || error->code == -EACCES ||
			       error->code == -ENOSYS || error->code == -ENOMEM ||
			       error->code == -EMFILE);
}

static bool selftest_attach(struct selftest *test)
{
	static const char *const paths[] = { self_path };
	struct tracer_config config = {
		.servers = {
			.pids = &test->pid, .npids = 1, .paths = paths, .npaths = 1,
			.start = "dbslower:self__start", .done = "dbslower:self__done",
			.text_arg = test->method->text_arg,
		},
		.text_bytes = TEXT_BYTES,
		.denied = test->method->denied,
		.sink = { .arg = test, .statement = selftest_statement },
		.arg = test, .server = selftest_server, .error = selftest_error,
	};
	struct privileges host;
	int err;

	step_begin(test, "loading and attaching");
	privileges_read(&host);
	/* Under lockdown the kernel denies the helper that the fallback uses. */
	if (privileges_locked_down(&host))
		config.denied &= ~FEATURE_BIT(FEATURE_READ_USER);
	err = tracer_open(&test->tracer, &config, &test->error);
	if (err && test->method != test->used && selftest_refused(&test->error))
		test->current.instead = test->used->name;
	return step_end(test, !err, err ? "it failed" : "on %s", self_path);
}

static int other_each(void *arg, const struct process *process)
{
	const struct process *self = arg;

	/* Its child attaches the probes, see loader/attacher.h. */
	return process->pid != self->pid && process->ppid != self->pid &&
	       process_file_same(&process->file, &self->file);
}

/* Return whether another process runs this program: its probes are in the same file. */
static bool selftest_others(const struct selftest *test)
{
	struct process self;

	return !process_read(test->pid, NULL, &self) && process_each(NULL, other_each, &self) > 0;
}

/*
 * Read the semaphores. If they are not @expected, that may be due to another process, set *@others
 * then: it runs, or it ended before it was searched for, after which the semaphores are read again.
 * Return whether they are.
 */
static bool selftest_counts(const struct selftest *test, unsigned int expected,
			    unsigned int *start, unsigned int *done, bool *others)
{
	*others = false;
	for (int i = 0; i < COUNT_TRIES && !*others; i++) {
		*start = selfprobe_start_traced();
		*done = selfprobe_done_traced();
		if (*start == expected && *done == expected)
			return true;
		*others = selftest_others(test);
	}
	return false;
}

/* Check that the kernel increments the semaphores of the probes. */
static void selftest_semaphores(struct selftest *test)
{
	unsigned int start, done;
	bool ok, others;

	step_begin(test, "semaphores");
	ok = selftest_counts(test, 1, &start, &done, &others);
	if (others && start && done)
		step_end(test, true, "%u and %u: another dbslower is at it, too", start, done);
	else
		step_end(test, ok, ok ? "the kernel counts them" : "%u and %u, not 1 and 1", start,
			 done);
}

/* Execute a statement, and expect its text and the bounds of its duration from now on. */
static void selftest_span(struct selftest *test, const char *text)
{
	uint64_t before = selftest_now(), started, ending, after;

	selfprobe_start(text, 1);
	started = selftest_now();
	while (selftest_now() - started < SPAN_NS)
		;
	ending = selftest_now();
	selfprobe_done(0);
	after = selftest_now();
	test->low_ns = ending - started;
	test->high_ns = after - before;
	test->expected = text;
	tracer_drain(test->tracer);
}

/* Check the arguments, durations and PIDs of statements. */
static void selftest_arguments(struct selftest *test)
{
	char text[48];

	step_begin(test, "argument reading");
	test->seen = test->wrong = 0;
	for (int i = 0; i < SPANS; i++) {
		snprintf(text, sizeof(text), "self-test %u, statement %d", test->pid, i);
		selftest_span(test, text);
	}
	step_end(test, test->seen == SPANS && !test->wrong,
		 "%llu of %d statements came, %llu of them with another text, duration or pid",
		 (unsigned long long)test->seen, SPANS, (unsigned long long)test->wrong);
}

/*
 * Return the descriptor that wakes the tracer, or -errno. The tracer does not sleep while it waits
 * for programs that other processes execute, which takes a moment.
 */
static int selftest_sleep(struct selftest *test)
{
	int fd = tracer_sleep(test->tracer);

	for (int ms = 0; fd == -EAGAIN && ms < WAKE_MS; ms++) {
		usleep(1000);
		tracer_drain(test->tracer);
		fd = tracer_sleep(test->tracer);
	}
	return fd;
}

/*
 * Check that a statement wakes a tracer that sleeps. poll(2) would report the record even without a
 * wake-up; epoll does not, if the descriptor was added before.
 */
static void selftest_wake(struct selftest *test)
{
	struct epoll_event event = { .events = EPOLLIN };
	int woken = 0, epoll = epoll_create1(EPOLL_CLOEXEC), fd;

	step_begin(test, "waking up");
	test->seen = test->wrong = 0;
	fd = selftest_sleep(test);
	if (fd >= 0)
		epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	test->low_ns = 0;
	test->high_ns = UINT64_MAX;
	test->expected = NULL;
	selfprobe_start("self-test", 1);
	selfprobe_done(0);
	if (fd >= 0)
		woken = epoll_wait(epoll, &event, 1, WAKE_MS);
	close(epoll);
	tracer_drain(test->tracer);
	step_end(test, woken == 1 && test->seen == 1,
		 woken == 1 ? "%llu statement came" : "no wake-up within half a second",
		 (unsigned long long)test->seen);
}

/* Check that statements beyond the capacity of the buffer are counted as dropped. */
static void selftest_burst(struct selftest *test)
{
	char *text = malloc(TEXT_BYTES);
	struct summary before, after;
	uint64_t lost;

	step_begin(test, "counting what is lost");
	if (!text) {
		step_end(test, false, "out of memory");
		return;
	}
	memset(text, 'x', TEXT_BYTES - 1);
	text[TEXT_BYTES - 1] = '\0';
	test->seen = test->wrong = 0;
	test->expected = text;
	tracer_summary(test->tracer, &before, false);
	for (int i = 0; i < BURST; i++) {
		selfprobe_start(text, i);
		selfprobe_done(0);
	}
	tracer_drain(test->tracer);
	tracer_summary(test->tracer, &after, false);
	lost = after.lost[LOSS_RING_FULL] - before.lost[LOSS_RING_FULL];
	step_end(test, lost && test->seen && test->seen + lost == BURST && !test->wrong,
		 "of %d statements %llu came, %llu of them damaged, and %llu were counted as lost",
		 BURST, (unsigned long long)test->seen, (unsigned long long)test->wrong,
		 (unsigned long long)lost);
	free(text);
}

/* Check that detaching leaves no probe and no semaphore behind. */
static void selftest_detach(struct selftest *test)
{
	unsigned int start, done;
	bool ok, others;

	step_begin(test, "detaching");
	tracer_detach(test->tracer);
	ok = selftest_counts(test, 0, &start, &done, &others);
	test->seen = 0;
	selfprobe_start("self-test", 1);
	selfprobe_done(0);
	tracer_drain(test->tracer);
	ok &= !test->seen;
	if (others && !test->seen)
		step_end(test, true, "another dbslower holds the semaphores");
	else
		step_end(test, ok, ok ? "nothing is left" : "semaphores are %u and %u, and %llu "
			 "statements came", start, done, (unsigned long long)test->seen);
}

/* Run all steps with @method. */
static void selftest_method(struct selftest *test, const struct method *method)
{
	test->method = method;
	if (!test->used)
		test->used = method;
	if (!selftest_attach(test))
		goto cleanup;
	selftest_semaphores(test);
	selftest_arguments(test);
	selftest_wake(test);
	if (!test->burst_done)
		selftest_burst(test);
	test->burst_done = true;
	selftest_detach(test);
cleanup:
	tracer_close(test->tracer);
	test->tracer = NULL;
	error_clear(&test->error);
}

/* Return this process's PID in the PID namespace of /proc, which may differ from getpid(). */
static uint32_t selftest_pid(void)
{
	char link[16] = "";

	if (readlink("/proc/self", link, sizeof(link) - 1) < 0)
		return (uint32_t)getpid();
	return (uint32_t)strtoull(link, NULL, 10);
}

bool selftest_run(void (*step)(void *arg, const struct selftest_step *step), void *arg)
{
	static const struct method methods[] = {
		{ "uprobe_multi", .text_arg = SELFPROBE_TEXT },
		{ "perf uprobe", FEATURE_BIT(FEATURE_UPROBE_MULTI), SELFPROBE_TEXT_IN },
		{ "preallocated maps", FEATURE_BIT(FEATURE_TRACING_ALLOC), SELFPROBE_TEXT },
		{ "perf buffers", FEATURE_BIT(FEATURE_RINGBUF) | FEATURE_BIT(FEATURE_READ_USER),
		  SELFPROBE_TEXT_IN },
	};
	struct selftest test = { .step = step, .arg = arg, .pid = selftest_pid() };
	struct features features = { .uprobe_pmu = 0 };
	bool multi = feature_has(&features, FEATURE_UPROBE_MULTI);
	bool perf = feature_has(&features, FEATURE_UPROBE_PMU);

	/* Also try if the kernel has neither or forbids the probe, to report the error. */
	if (multi || !perf || feature_allowed(&features))
		selftest_method(&test, &methods[0]);
	if (perf && !test.failed)
		selftest_method(&test, &methods[1]);
	for (size_t i = 2; !test.failed && i < sizeof(methods) / sizeof(methods[0]); i++)
		selftest_method(&test, &methods[i]);
	return !test.failed;
}
