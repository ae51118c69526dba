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

uint64_t watch_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* -v: what cannot be read where probes are. */
static void watch_site(void *arg, const struct target_site *site)
{
	struct watch *watch = arg;

	site_absent(&watch->err, site);
}

static bool watch_phases(const struct options *options)
{
	return options->phases || column_wants_phases(&options->columns);
}

static void watch_server(void *arg, const struct tracer_server *server)
{
	struct watch *watch = arg;
	bool later = watch->opened;

	for (size_t i = 0; i < server->npids && watch->npids < WATCH_PIDS; i++)
		watch->pids[watch->npids++] = server->pids[i];
	if (later && !watch->begun) {
		watch->begun = true;
		watch->begin(watch);
	}
	output_string(&watch->err, "dbslower: tracing ");
	output_string(&watch->err, server->title);
	if (*server->version) {
		output_string(&watch->err, " ");
		escape_terminal(&watch->err, server->version, strlen(server->version), false);
	}
	for (size_t i = 0; i < server->npids; i++) {
		output_string(&watch->err, i ? " " : ", pid ");
		output_u64(&watch->err, server->pids[i]);
	}
	output_string(&watch->err, ", ");
	escape_terminal(&watch->err, server->path, strlen(server->path), false);
	output_string(&watch->err, server->usdt ? ", by its USDT probes and symbols (" :
						 ", by its symbols (");
	output_string(&watch->err, server->way);
	output_string(&watch->err, ")");
	site_lacks(&watch->err, server->engine, server->shows, ", which does not show ");
	if (watch_phases(&watch->options) && !(server->shows & TARGET_SHOWS_PHASES))
		output_string(&watch->err, "; it has no USDT probes that tell of phases");
	if (server->nested)
		output_string(&watch->err, "; it runs in a PID namespace inside of this one, and "
					   "its statements cannot be seen from here: run dbslower "
					   "in that one, or on the host");
	output_string(&watch->err, "\n");
	/* Who reads this takes it that all is attached: those of the start are told together. */
	if (later)
		output_flush(&watch->err);
}

static void watch_fault(void *arg, const struct fault *fault)
{
	struct watch *watch = arg;

	message_fault(&watch->err, fault);
	output_flush(&watch->err);
}

void watch_program(void *arg, const char *name, const struct bpf_insn *insns, size_t count)
{
	struct watch *watch = arg;
	char line[128];

	output_printf(&watch->err, "program %s, %zu instructions:\n", name, count);
	for (size_t i = 0; i < count;) {
		int used = disasm_insn(&insns[i], i + 1 < count ? &insns[i + 1] : NULL, line,
				       sizeof(line));

		output_printf(&watch->err, "%5zu: %s\n", i, line);
		i += (size_t)used;
	}
	output_flush(&watch->err);
}

void watch_features(struct watch *watch, const struct features *features)
{
	for (int i = 0; i < FEATURES; i++)
		if (features->row[i].asked)
			output_printf(&watch->err, "kernel: %s: %s (%s)\n", feature_name(i),
				      features->row[i].has ? "yes" : "no", feature_since(i));
}

void watch_confined(struct watch *watch, const struct confined *confined)
{
	struct output *err = &watch->err;
	const char *before = " ";

	if (!watch->options.verbose)
		return;
	output_string(err, "dbslower: capabilities kept:");
	for (size_t i = 0; i < HOST_CAPABILITIES; i++) {
		if (!(confined->capabilities >> host_capabilities[i].bit & 1))
			continue;
		output_printf(err, "%s%s", before, host_capabilities[i].name);
		before = ", ";
	}
	output_string(err, *before == ',' ? "" : " none");
	output_string(err, confined->nobody ? "; user: nobody" : "");
	if (confined->filter)
		output_string(err, "; seccomp filter: on\n");
	else
		output_printf(err, "; seccomp filter: refused by the kernel (%s)\n",
			      strerror(-confined->filter_error));
}

/*
 * A descriptor that tells of @signals, a list that ends in 0, which do nothing else from now on. Or
 * -1: they do what they did.
 */
static int watch_signals(const int *signals)
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

static int watch_timer(uint64_t end_ns)
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
static bool watch_stop_add(int stop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return fd >= 0 && !epoll_ctl(stop, EPOLL_CTL_ADD, fd, &event);
}

/* Under nohup it goes on when its terminal is gone. */
static int watch_hangup(void)
{
	struct sigaction before;

	return !sigaction(SIGHUP, NULL, &before) && before.sa_handler == SIG_IGN ? 0 : SIGHUP;
}

/* All in one descriptor, so that whoever waits needs to look at one. Signals come last. */
static bool watch_stop(struct watch *watch)
{
	watch->stop = epoll_create1(EPOLL_CLOEXEC);
	if (watch->stop < 0)
		return false;
	if (watch->options.duration_ns &&
	    !watch_stop_add(watch->stop, watch_timer(watch->start_ns +
						     watch->options.duration_ns)))
		return false;
	watch->usr1 = watch_signals((const int[]){ SIGUSR1, 0 });
	return watch->usr1 >= 0 &&
	       watch_stop_add(watch->stop,
			      watch_signals((const int[]){ SIGINT, SIGTERM, watch_hangup(), 0 }));
}

int watch_arm(struct watch *watch)
{
	if (watch->signals)
		return 0;
	if (!watch_stop(watch))
		return -errno;
	watch->signals = true;
	output_stoppable(&watch->out, watch->stop);
	output_stoppable(&watch->err, watch->stop);
	return 0;
}

/* There is something now that does not go with the process. */
static int watch_lasting(void *arg)
{
	return watch_arm(arg);
}

bool watch_wait(struct watch *watch, int fd, int timeout_ms)
{
	struct signalfd_siginfo signal;
	struct pollfd fds[] = {
		{ .fd = watch->stop, .events = POLLIN },
		{ .fd = watch->usr1, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	if (poll(fds, 3, timeout_ms) <= 0)
		return false;
	if (fds[1].revents && read(watch->usr1, &signal, sizeof(signal)) > 0)
		watch->asked = true;
	return fds[0].revents;
}

void watch_headline(struct watch *watch)
{
	char number[OUTPUT_NUMBER];
	size_t len = output_format(number, watch->options.threshold_ns, 6);

	while (len && number[len - 1] == '0')
		len--;
	if (len && number[len - 1] == '.')
		len--;
	output_string(&watch->out, "Tracing ");
	output_string(&watch->out, watch->subject ? watch->subject : "database queries");
	output_string(&watch->out, watch->npids ? " for pids " : "");
	for (size_t i = 0; i < watch->npids; i++) {
		output_string(&watch->out, i ? " " : "");
		output_u64(&watch->out, watch->pids[i]);
	}
	output_string(&watch->out, watch->than ? watch->than : " slower than ");
	output_bytes(&watch->out, number, len);
	output_string(&watch->out, " ms...\n");
}

static bool watch_identifies(const struct options *options)
{
	return options->json || options->otlp || options->user || options->database || options->container ||
	       column_wants_identity(&options->columns);
}

void watch_config(struct watch *watch, struct tracer_config *config)
{
	const struct options *options = &watch->options;

	*config = (struct tracer_config){
		.engine = options->engine,
		.pids = options->pids, .npids = options->pid_count,
		.paths = options->paths, .npaths = options->path_count,
		.threshold_ns = options->threshold_ns,
		.start = options->start, .done = options->done, .text_arg = options->text_arg,
		.text_bytes = options->text_bytes,
		.identify = watch_identifies(options),
		.rows = options->json || options->otlp || column_wants_rows(&options->columns),
		.why = options->why || options->use || options->phases ||
		       column_wants_why(&options->columns),
		.use = options->use, .phases = watch_phases(options),
		.user = options->user, .database = options->database,
		.container = options->container,
		.match = options->has_match ? &options->match : NULL, .redact = options->redact,
		.parents = options->otlp,
		.force_perf = options->force_perf, .force_prealloc = options->force_prealloc,
		.force_perfbuf = options->force_perfbuf,
		.force_probe_read = options->force_probe_read,
		.force_tracefs = options->force_tracefs,
		.force_semaphore = options->force_semaphore,
		.force_pids = options->force_pids, .lasting = watch_lasting,
		.arg = watch, .statement = watch->statement, .server = watch_server,
		.fault = watch_fault, .program = options->verbose ? watch_program : NULL,
		.site = options->verbose ? watch_site : NULL,
	};
}

static int watch_refuse(struct watch *watch, struct fault *fault)
{
	message_fault(&watch->err, fault);
	output_flush(&watch->err);
	fault_clear(fault);
	return EXIT_FAILED;
}

int watch_ready(struct watch *watch)
{
	struct fault fault = { .kind = FAULT_NONE };
	int err = watch_arm(watch);

	if (!err)
		return EXIT_OK;
	fault_set(&fault, FAULT_WAIT, err, NULL, NULL);
	return watch_refuse(watch, &fault);
}

int watch_open(struct watch *watch, const struct tracer_config *config)
{
	struct fault fault = { .kind = FAULT_NONE };
	struct confined confined;
	struct tracer *tracer;
	int status;

	if (tracer_open(&tracer, config, &fault))
		return watch_refuse(watch, &fault);
	watch->tracer = tracer;
	status = watch_ready(watch);
	if (status != EXIT_OK)
		return status;
	if (!watch->options.keep_privileges) {
		tracer_confine(tracer, &confined);
		watch_confined(watch, &confined);
	}
	watch_started(watch, tracer_features(tracer), tracer_targets(tracer));
	return EXIT_OK;
}

void watch_started(struct watch *watch, const struct features *features, size_t targets)
{
	const struct options *options = &watch->options;

	watch->opened = true;
	if (options->verbose)
		watch_features(watch, features);
	if (options->pid_count) {
		watch->npids = options->pid_count;
		memcpy(watch->pids, options->pids, options->pid_count * sizeof(*watch->pids));
	}
	output_flush(&watch->err);
	if (targets) {
		watch->begun = true;
		watch->begin(watch);
	} else {
		message_waiting(&watch->err);
		output_flush(&watch->err);
	}
}

bool watch_options(struct watch *watch, const struct command *command, int argc, char *argv[],
		   int *status)
{
	watch->start_ns = watch_now();
	return command_options(command, argc, argv, &watch->options, &watch->out, &watch->err,
			       status);
}

int watch_nap(int nap_ms, int filled)
{
	nap_ms = filled > FULL_ENOUGH ? nap_ms / 2 : nap_ms * 2 + 1;
	return nap_ms > NAP_MAX_MS ? NAP_MAX_MS : nap_ms;
}

int watch_finish(struct watch *watch, int err, const struct summary *summary)
{
	int status;

	if (!err && watch->options.json)
		json_summary(&watch->out, summary);
	if (!err)
		err = output_flush(&watch->out);
	status = message_output(&watch->err, err);
	if (err != -EPIPE)
		message_summary(&watch->err, summary);
	output_flush(&watch->err);
	if (status == EXIT_OK && watch->options.strict && message_lost(summary))
		status = EXIT_FAILED;
	return status;
}
