// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cli/escape.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/site_print.h"
#include "host/clock.h"
#include "host/privileges.h"
#include "usdt/disasm.h"

#define NAP_MAX_MS	20
#define FULL_ENOUGH	12	/* percent of the buffer in one nap: make naps shorter */

uint64_t loop_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* -v: what cannot be read where probes are. */
static void loop_site(void *arg, const struct target_site *site)
{
	struct loop *loop = arg;

	site_absent(&loop->err, site);
}

static bool loop_phases(const struct options *options)
{
	return options->phases || column_wants_phases(&options->columns);
}

static void loop_server(void *arg, const struct server_info *server)
{
	struct loop *loop = arg;
	bool later = loop->opened;

	for (size_t i = 0; i < server->npids && loop->npids < LOOP_PIDS; i++)
		loop->pids[loop->npids++] = server->pids[i];
	if (later && !loop->begun) {
		loop->begun = true;
		loop->begin(loop);
	}
	output_string(&loop->err, "dbslower: tracing ");
	output_string(&loop->err, server->title);
	if (*server->version) {
		output_string(&loop->err, " ");
		escape_terminal(&loop->err, server->version, strlen(server->version), false);
	}
	for (size_t i = 0; i < server->npids; i++) {
		output_string(&loop->err, i ? " " : ", pid ");
		output_u64(&loop->err, server->pids[i]);
	}
	output_string(&loop->err, ", ");
	escape_terminal(&loop->err, server->path, strlen(server->path), false);
	output_string(&loop->err, server->usdt ? ", by its USDT probes and symbols (" :
						 ", by its symbols (");
	output_string(&loop->err, server->method);
	output_string(&loop->err, ")");
	site_lacks(&loop->err, server->engine, server->has, ", which does not show ");
	if (loop_phases(&loop->options) && !(server->has & TARGET_HAS_PHASES))
		output_string(&loop->err, "; it has no USDT probes that tell of phases");
	if (server->nested)
		output_string(&loop->err, "; it runs in a PID namespace inside of this one, and "
					   "its statements cannot be seen from here: run dbslower "
					   "in that one, or on the host");
	output_string(&loop->err, "\n");
	/* Who reads this takes it that all is attached: those of the start are told together. */
	if (later)
		output_flush(&loop->err);
}

static void watch_error(void *arg, const struct error *error)
{
	struct loop *loop = arg;

	message_error(&loop->err, error);
	output_flush(&loop->err);
}

void loop_program(void *arg, const char *name, const struct bpf_insn *insns, size_t count)
{
	struct loop *loop = arg;
	char line[128];

	output_printf(&loop->err, "program %s, %zu instructions:\n", name, count);
	for (size_t i = 0; i < count;) {
		int used = disasm_insn(&insns[i], i + 1 < count ? &insns[i + 1] : NULL, line,
				       sizeof(line));

		output_printf(&loop->err, "%5zu: %s\n", i, line);
		i += (size_t)used;
	}
	output_flush(&loop->err);
}

void loop_features(struct loop *loop, const struct features *features)
{
	for (int i = 0; i < FEATURES; i++)
		if (features->row[i].asked)
			output_printf(&loop->err, "kernel: %s: %s (%s)\n", feature_name(i),
				      features->row[i].has ? "yes" : "no", feature_since(i));
}

void loop_sandbox(struct loop *loop, const struct sandbox *sandbox)
{
	struct output *err = &loop->err;
	const char *before = " ";

	if (!loop->options.verbose)
		return;
	output_string(err, "dbslower: capabilities kept:");
	for (size_t i = 0; i < PRIVILEGES_CAPABILITIES; i++) {
		if (!(sandbox->capabilities >> privileges_capabilities[i].bit & 1))
			continue;
		output_printf(err, "%s%s", before, privileges_capabilities[i].name);
		before = ", ";
	}
	output_string(err, *before == ',' ? "" : " none");
	output_string(err, sandbox->nobody ? "; user: nobody" : "");
	if (sandbox->filter)
		output_string(err, "; seccomp filter: on\n");
	else
		output_printf(err, "; seccomp filter: refused by the kernel (%s)\n",
			      strerror(-sandbox->filter_error));
}

/*
 * A descriptor that tells of @signals, a list that ends in 0, which do nothing else from now on. Or
 * -1: they do what they did.
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

/* @fd is ready when @stop is, to our end. Whether it could be done. */
static bool loop_stop_add(int stop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return fd >= 0 && !epoll_ctl(stop, EPOLL_CTL_ADD, fd, &event);
}

/* Under nohup it goes on when its terminal is gone. */
static int loop_hangup(void)
{
	struct sigaction before;

	return !sigaction(SIGHUP, NULL, &before) && before.sa_handler == SIG_IGN ? 0 : SIGHUP;
}

/* All in one descriptor, so that whoever waits needs to look at one. Signals come last. */
static bool loop_stop(struct loop *loop)
{
	loop->stop = epoll_create1(EPOLL_CLOEXEC);
	if (loop->stop < 0)
		return false;
	if (loop->options.duration_ns &&
	    !loop_stop_add(loop->stop, loop_timer(loop->start_ns +
						  loop->options.duration_ns)))
		return false;
	loop->usr1 = loop_signals((const int[]){ SIGUSR1, 0 });
	return loop->usr1 >= 0 &&
	       loop_stop_add(loop->stop,
			     loop_signals((const int[]){ SIGINT, SIGTERM, loop_hangup(), 0 }));
}

int loop_arm(struct loop *loop)
{
	if (loop->signals)
		return 0;
	if (!loop_stop(loop))
		return -errno;
	loop->signals = true;
	output_stoppable(&loop->out, loop->stop);
	output_stoppable(&loop->err, loop->stop);
	return 0;
}

/* There is something now that does not go with the process. */
static int loop_lasting(void *arg)
{
	return loop_arm(arg);
}

bool loop_wait(struct loop *loop, int fd, int timeout_ms)
{
	struct signalfd_siginfo signal;
	struct pollfd fds[] = {
		{ .fd = loop->stop, .events = POLLIN },
		{ .fd = loop->usr1, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	if (poll(fds, 3, timeout_ms) <= 0)
		return false;
	if (fds[1].revents && read(loop->usr1, &signal, sizeof(signal)) > 0)
		loop->asked = true;
	return fds[0].revents;
}

void loop_headline(struct loop *loop)
{
	char number[OUTPUT_NUMBER];
	size_t len = output_format(number, loop->options.threshold_ns, 6);

	while (len && number[len - 1] == '0')
		len--;
	if (len && number[len - 1] == '.')
		len--;
	output_string(&loop->out, "Tracing ");
	output_string(&loop->out, loop->subject ? loop->subject : "database queries");
	output_string(&loop->out, loop->npids ? " for pids " : "");
	for (size_t i = 0; i < loop->npids; i++) {
		output_string(&loop->out, i ? " " : "");
		output_u64(&loop->out, loop->pids[i]);
	}
	output_string(&loop->out, loop->than ? loop->than : " slower than ");
	output_bytes(&loop->out, number, len);
	output_string(&loop->out, " ms...\n");
}

static bool loop_identifies(const struct options *options)
{
	return options->json || options->otlp || options->user || options->database || options->container ||
	       column_wants_identity(&options->columns);
}

void loop_config(struct loop *loop, struct tracer_config *config)
{
	const struct options *options = &loop->options;

	*config = (struct tracer_config){
		.servers = {
			.engine = options->engine,
			.pids = options->pids, .npids = options->pid_count,
			.paths = options->paths, .npaths = options->path_count,
			.start = options->start, .done = options->done,
			.text_arg = options->text_arg,
		},
		.threshold_ns = options->threshold_ns,
		.text_bytes = options->text_bytes,
		.identify = loop_identifies(options),
		.rows = options->json || options->otlp || column_wants_rows(&options->columns),
		.why = options->why || options->use || options->phases ||
		       column_wants_why(&options->columns),
		.use = options->use, .phases = loop_phases(options),
		.user = options->user, .database = options->database,
		.container = options->container,
		.match = options->has_match ? &options->match : NULL, .redact = options->redact,
		.parents = options->otlp,
		.force_perf = options->force_perf, .force_prealloc = options->force_prealloc,
		.force_perfbuf = options->force_perfbuf,
		.force_probe_read = options->force_probe_read,
		.force_tracefs = options->force_tracefs,
		.force_semaphore = options->force_semaphore,
		.force_pids = options->force_pids, .lasting = loop_lasting,
		.arg = loop, .statement = loop->statement, .server = loop_server,
		.error = watch_error, .program = options->verbose ? loop_program : NULL,
		.site = options->verbose ? loop_site : NULL,
	};
}

static int loop_refuse(struct loop *loop, struct error *error)
{
	message_error(&loop->err, error);
	output_flush(&loop->err);
	error_clear(error);
	return EXIT_FAILED;
}

int loop_ready(struct loop *loop)
{
	struct error error = { .kind = ERROR_NONE };
	int err = loop_arm(loop);

	if (!err)
		return EXIT_OK;
	error_set(&error, ERROR_WAIT, err, NULL, NULL);
	return loop_refuse(loop, &error);
}

int loop_open(struct loop *loop, const struct tracer_config *config)
{
	struct error error = { .kind = ERROR_NONE };
	struct sandbox sandbox;
	struct tracer *tracer;
	int status;

	if (tracer_open(&tracer, config, &error))
		return loop_refuse(loop, &error);
	loop->tracer = tracer;
	status = loop_ready(loop);
	if (status != EXIT_OK)
		return status;
	if (!loop->options.keep_privileges) {
		tracer_sandbox(tracer, &sandbox);
		loop_sandbox(loop, &sandbox);
	}
	loop_started(loop, tracer_features(tracer), tracer_targets(tracer));
	return EXIT_OK;
}

void loop_started(struct loop *loop, const struct features *features, size_t targets)
{
	const struct options *options = &loop->options;

	loop->opened = true;
	if (options->verbose)
		loop_features(loop, features);
	if (options->pid_count) {
		loop->npids = options->pid_count;
		memcpy(loop->pids, options->pids, options->pid_count * sizeof(*loop->pids));
	}
	output_flush(&loop->err);
	if (targets) {
		loop->begun = true;
		loop->begin(loop);
	} else {
		message_waiting(&loop->err);
		output_flush(&loop->err);
	}
}

bool loop_options(struct loop *loop, const struct command *command, int argc, char *argv[],
		  int *status)
{
	loop->start_ns = loop_now();
	return command_options(command, argc, argv, &loop->options, &loop->out, &loop->err,
			       status);
}

int loop_nap(int nap_ms, int filled)
{
	nap_ms = filled > FULL_ENOUGH ? nap_ms / 2 : nap_ms * 2 + 1;
	return nap_ms > NAP_MAX_MS ? NAP_MAX_MS : nap_ms;
}

int loop_finish(struct loop *loop, int err, const struct summary *summary)
{
	int status;

	if (!err && loop->options.json)
		json_summary(&loop->out, summary);
	if (!err)
		err = output_flush(&loop->out);
	status = message_output(&loop->err, err);
	if (err != -EPIPE)
		message_summary(&loop->err, summary);
	output_flush(&loop->err);
	if (status == EXIT_OK && loop->options.strict && message_lost(summary))
		status = EXIT_FAILED;
	return status;
}
