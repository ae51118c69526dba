// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cli/format/json.h"
#include "cli/format/summary.h"
#include "cli/message.h"
#include "cli/source.h"
#include "host/clock.h"

#define NAP_MAX_MS	20
#define SLEEP_MAX_MS	5000	/* how long a loss may remain unreported */
#define REPORT_NS	1000000000u
#define DRAIN_NS	1000000000u	/* after detaching, at least */
#define FILL_MAX	12	/* percent of the buffer filled in one nap: make naps shorter */

uint64_t loop_now(const struct loop *loop)
{
	return loop->source->now(loop);
}

uint64_t loop_wall(const struct loop *loop)
{
	return loop->source->wall(loop);
}

unsigned int loop_losses(const struct loop *loop)
{
	const struct options *options = &loop->options;

	if (options->sample_ns)
		return LOSSES_OF_SAMPLES | (loop->ops->losses & LOSSES_OF_TEXTS);
	return loop->ops->losses | (options->max_overhead ? LOSSES_OF_LIMIT : 0) |
	       (options->why || options->use || options->phases ? LOSSES_OF_BREAKDOWNS : 0);
}

void loop_wake(struct loop *loop, uint64_t ns)
{
	if (ns && (!loop->wake_ns || ns < loop->wake_ns))
		loop->wake_ns = ns;
}

int loop_command(const struct command *command, int argc, char *argv[])
{
	const struct loop_ops *ops = command->loop;
	struct loop *loop = calloc(1, ops->size);
	int status;

	if (!loop)
		return message_no_memory();
	loop->ops = ops;
	loop->command = command;
	loop->source = command->source ? command->source : &source_live;
	loop->terminal = isatty(STDOUT_FILENO);
	loop->start_ns = clock_ns(CLOCK_MONOTONIC);
	status = start_command(command, argc, argv, &loop->options, &loop->out, &loop->err);
	if (loop->options.sample_ns)
		loop->source = &source_sampled;
	if (status == START_GO)
		status = loop->source->open(loop);
	if (status == START_GO) {
		status = ops->run(loop);
		loop->source->close(loop);
		if (ops->close)
			ops->close(loop);
	}
	free(loop);
	return status;
}

/*
 * Block @signals, a list that ends in 0, and return a descriptor that reports them. On failure
 * return -1 and leave them as they were.
 */
static int loop_signals(const int *signals)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (; *signals; signals++)
		sigaddset(&set, *signals);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd >= 0)
		sigprocmask(SIG_BLOCK, &set, NULL);
	return fd;
}

static int loop_timer(uint64_t end_ns)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(end_ns / 1000000000u),
					       .tv_nsec = (long)(end_ns % 1000000000u) } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd >= 0 && timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Make @stop readable when @fd is. @fd stays open until the process ends. */
static bool loop_stop_add(int stop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return fd >= 0 && !epoll_ctl(stop, EPOLL_CTL_ADD, fd, &event);
}

/* SIGHUP, or 0 where it is ignored: under nohup the loop survives its terminal. */
static int loop_hangup(void)
{
	struct sigaction before;

	return !sigaction(SIGHUP, NULL, &before) && before.sa_handler == SIG_IGN ? 0 : SIGHUP;
}

/* Open ->stop and ->usr1. The signals come last, as they stay blocked after a failure. */
static bool loop_stop(struct loop *loop)
{
	loop->stop = epoll_create1(EPOLL_CLOEXEC);
	if (loop->stop < 0)
		return false;
	if (loop->options.duration_ns &&
	    !loop_stop_add(loop->stop, loop_timer(loop->start_ns + loop->options.duration_ns)))
		return false;
	loop->usr1 = loop_signals((const int[]){ SIGUSR1, loop->ops->triggered ? SIGUSR2 : 0, 0 });
	if (loop->usr1 < 0)
		return false;
	loop->signals = loop_signals((const int[]){ SIGINT, SIGTERM, loop_hangup(), 0 });
	return loop_stop_add(loop->stop, loop->signals);
}

bool loop_interrupted(void *arg)
{
	struct loop *loop = arg;
	struct pollfd signals = { .fd = loop->signals, .events = POLLIN };

	if (poll(&signals, 1, 0) > 0)
		loop->interrupted = true;
	return loop->interrupted;
}

int loop_refuse(struct loop *loop, struct error *error)
{
	message_error(&loop->err, error);
	output_flush(&loop->err);
	error_clear(error);
	return EXIT_FAILED;
}

int loop_ready(struct loop *loop)
{
	struct error error = { .kind = ERROR_NONE };

	if (!loop_stop(loop)) {
		error_set(&error, ERROR_WAIT, -errno, NULL, NULL);
		return loop_refuse(loop, &error);
	}
	output_stoppable(&loop->out, loop->stop);
	output_stoppable(&loop->err, loop->stop);
	return EXIT_OK;
}

void loop_json(struct loop *loop)
{
	if (loop->options.json)
		json_start(&loop->out, loop_wall(loop), loop->host, loop->command->name);
}

void loop_count(struct loop *loop)
{
	if (++loop->counted == loop->options.count)
		loop->done = true;
}

void loop_begin_event(struct loop *loop, bool ended)
{
	if (!ended && !loop->unfinished && !loop->options.json)
		output_string(&loop->out, loop->ops->unfinished);
	loop->unfinished = !ended;
}

void loop_end_event(struct loop *loop, bool ended)
{
	if (loop->terminal)
		output_flush(&loop->out);
	if (ended)
		loop_count(loop);
}

/* Return whether the limit of -n was reached. */
static bool loop_counted(const struct loop *loop)
{
	return loop->options.count && loop->counted >= loop->options.count;
}

bool loop_interval(struct loop *loop)
{
	uint64_t interval_ns = loop->options.interval_ns, now = loop_now(loop);
	bool first = !loop->next_ns, ended = now >= loop->next_ns;

	if (!interval_ns)
		return false;
	/* Intervals that passed while the output was blocked, or before --since, are one. */
	if (ended)
		loop->next_ns = now + interval_ns - (now - loop->start_ns) % interval_ns;
	loop_wake(loop, loop->next_ns);
	return ended && !first;
}

void loop_stamp(struct loop *loop, uint64_t wall_ns)
{
	char clock[OUTPUT_NUMBER];
	size_t len = output_clock(clock, wall_ns, 3);

	if (loop->options.interval_ns && !loop->options.json)
		output_printf(&loop->out, "\n%.*s\n", (int)len, clock);
}

/*
 * Wait for ->stop, for @fd (-1: none), for SIGUSR1, which sets ->asked, or for @timeout_ms. Return
 * true if the loop is to end.
 */
static bool loop_wait(struct loop *loop, int fd, int timeout_ms)
{
	struct signalfd_siginfo signal;
	struct pollfd fds[] = {
		{ .fd = loop->stop, .events = POLLIN },
		{ .fd = loop->usr1, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	if (poll(fds, 3, timeout_ms) <= 0)
		return false;
	if (fds[1].revents && read(loop->usr1, &signal, sizeof(signal)) > 0) {
		if (signal.ssi_signo == SIGUSR2)
			loop->ops->triggered(loop);
		else
			loop->asked = true;
	}
	return fds[0].revents;
}

/* Return the length of the next nap in ms, after one of @nap_ms that @filled percent came in. */
static int loop_nap(const struct loop *loop, int nap_ms, int filled)
{
	if (loop->nap_ms)
		return loop->nap_ms;
	nap_ms = filled > FILL_MAX ? nap_ms / 2 : nap_ms * 2 + 1;
	return nap_ms > NAP_MAX_MS ? NAP_MAX_MS : nap_ms;
}

/* Report new losses, at most once a second. */
static void loop_report(struct loop *loop)
{
	const struct loop_ops *ops = loop->ops;
	uint64_t now = loop_now(loop), lost;
	struct summary summary;

	if (ops->report == LOOP_REPORT_NONE || now - loop->reported_ns < REPORT_NS)
		return;
	loop->reported_ns = now;
	ops->summary(loop, &summary);
	lost = loss_events(&summary);
	if (ops->report == LOOP_REPORT_TEXTS)
		lost += summary.lost[LOSS_TEXT_UNREADABLE];
	if (lost == loop->reported)
		return;
	loop->reported = lost;
	summary_message(&loop->err, ops->noun, &summary);
	output_flush(&loop->err);
}

/* Trace until the end. Return 0, or -errno of the output. */
static int loop_trace(struct loop *loop)
{
	const struct loop_ops *ops = loop->ops;
	int nap_ms = 1, sleep_ms, filled, fd, err = 0;

	loop->reported_ns = loop_now(loop);
	while (!loop->done) {
		filled = ops->drain(loop);
		if (loop->asked && ops->running)
			ops->running(loop);
		loop->asked = false;
		err = output_flush(&loop->out);
		if (!err && ops->tick)
			err = ops->tick(loop);
		loop_report(loop);
		if (loop->done || err)
			break;
		fd = filled || !ops->sleep ? -EAGAIN : ops->sleep(loop);
		nap_ms = fd >= 0 ? 1 : loop_nap(loop, nap_ms, filled);
		sleep_ms = loop->sleep_ms && loop->sleep_ms < SLEEP_MAX_MS ? loop->sleep_ms :
									     SLEEP_MAX_MS;
		loop->done = loop_wait(loop, fd >= 0 ? fd : -1, fd >= 0 ? sleep_ms : nap_ms);
	}
	return err;
}

/*
 * Read what was sent before detaching. A record that does not become readable, such as one with a
 * time to come, is lost.
 */
static void loop_drain(struct loop *loop)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + DRAIN_NS;

	while (loop->ops->drain(loop) > 0 && clock_ns(CLOCK_MONOTONIC) < end_ns)
		continue;
}

/* Print the summary, unless @err: that is the output's error. Return the exit status. */
static int loop_summary(struct loop *loop, int err)
{
	const struct loop_ops *ops = loop->ops;
	struct summary summary;
	int status;

	ops->summary(loop, &summary);
	if (!err && loop->options.json)
		summary_json(&loop->out, loop_wall(loop), ops->noun, loop_losses(loop), &summary);
	if (!err)
		err = output_flush(&loop->out);
	status = message_output(&loop->err, err);
	if (err != -EPIPE)
		summary_message(&loop->err, ops->noun, &summary);
	output_flush(&loop->err);
	/* The option asks for texts that are cut. */
	if (loop->options.has_text)
		summary.lost[LOSS_TEXT_TRUNCATED] = 0;
	if (status == EXIT_OK && loop->options.strict && loss_any(&summary))
		status = EXIT_FAILED;
	return status;
}

int loop_run(struct loop *loop)
{
	const struct loop_ops *ops = loop->ops;
	int err = loop_trace(loop), other = EXIT_OK, status;

	ops->detach(loop);
	loop->done = err || loop->failed || loop_counted(loop);
	loop_drain(loop);
	loop->ending = true;
	if (ops->running)
		ops->running(loop);
	if (ops->finish)
		other = ops->finish(loop, &err);
	status = loop_summary(loop, err);
	if (status == EXIT_OK)
		status = other;
	return status == EXIT_OK && loop->failed ? EXIT_FAILED : status;
}
