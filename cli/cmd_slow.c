// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The default command: statements slower than a threshold, as they end.
 *
 * The loop naps and drains. A nap lets records gather, so that the servers never pay
 * for waking us; it is short while the buffer fills quickly. When a nap brought nothing,
 * the loop sleeps until the kernel has a record.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/column.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/option.h"
#include "db/tracer.h"
#include "usdt/disasm.h"

#define NAP_MAX_MS	20
#define FULL_ENOUGH	12	/* percent of the buffer in one nap: make naps shorter */
#define SLEEP_MAX_MS	5000	/* how long a loss may stay unsaid */
#define REPORT_NS	1000000000u
#define PIDS_SHOWN	64

struct slow {
	struct options options;
	struct output out, err;
	struct column_view view;
	struct tracer *tracer;
	uint64_t start_ns, reported_ns, printed;
	struct summary reported;
	uint32_t pids[PIDS_SHOWN];
	size_t npids;
	int stop;		/* readable when it is to end: a signal, or the time of -d */
	bool terminal, begun, done;
};

static uint64_t slow_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool slow_statement(void *arg, const struct statement *statement)
{
	struct slow *slow = arg;

	if (slow->done)
		return false;
	if (slow->options.json)
		json_statement(&slow->out, statement);
	else
		column_row(&slow->out, &slow->view, statement);
	if (slow->terminal)
		output_flush(&slow->out);
	slow->done = ++slow->printed == slow->options.count;
	return true;
}

/* "Tracing database queries for pids 25776 slower than 1 ms...", and the header. */
static void slow_begin(struct slow *slow)
{
	char number[OUTPUT_NUMBER];
	size_t len = output_format(number, slow->options.threshold_ns, 6);

	slow->begun = true;
	if (slow->options.json)
		return;
	while (len && number[len - 1] == '0')
		len--;
	if (len && number[len - 1] == '.')
		len--;
	output_string(&slow->out, "Tracing database queries for pids ");
	for (size_t i = 0; i < slow->npids; i++) {
		output_string(&slow->out, i ? " " : "");
		output_u64(&slow->out, slow->pids[i]);
	}
	output_string(&slow->out, " slower than ");
	output_bytes(&slow->out, number, len);
	output_string(&slow->out, " ms...\n");
	column_header(&slow->out, &slow->view);
	output_flush(&slow->out);
}

/* What cannot be told of a server's statements. */
static void slow_lacks(struct slow *slow, uint32_t shows)
{
	static const struct {
		uint32_t bit;
		const char *words;
	} all[] = {
		{ TARGET_SHOWS_STATUS, "failures" }, { TARGET_SHOWS_ROWS, "rows" },
		{ TARGET_SHOWS_USER, "users" }, { TARGET_SHOWS_DATABASE, "databases" },
		{ TARGET_SHOWS_CLIENT, "clients" },
	};
	const char *before = ", which does not show ";

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (shows & all[i].bit)
			continue;
		output_string(&slow->err, before);
		output_string(&slow->err, all[i].words);
		before = ", ";
	}
}

static void slow_server(void *arg, const struct tracer_server *server)
{
	struct slow *slow = arg;
	bool later = slow->tracer;

	for (size_t i = 0; i < server->npids && slow->npids < PIDS_SHOWN; i++)
		slow->pids[slow->npids++] = server->pids[i];
	if (later && !slow->begun)
		slow_begin(slow);
	output_string(&slow->err, "dbslower: tracing ");
	output_string(&slow->err, server->title);
	if (*server->version) {
		output_string(&slow->err, " ");
		escape_terminal(&slow->err, server->version, strlen(server->version), false);
	}
	for (size_t i = 0; i < server->npids; i++) {
		output_string(&slow->err, i ? " " : ", pid ");
		output_u64(&slow->err, server->pids[i]);
	}
	output_string(&slow->err, ", ");
	escape_terminal(&slow->err, server->path, strlen(server->path), false);
	output_string(&slow->err, server->usdt ? ", by its USDT probes and symbols (" :
						 ", by its symbols (");
	output_string(&slow->err, server->way);
	output_string(&slow->err, ")");
	slow_lacks(slow, server->shows);
	output_string(&slow->err, "\n");
	/* Who reads this takes it that all is attached: those of the start are told together. */
	if (later)
		output_flush(&slow->err);
}

static void slow_fault(void *arg, const struct fault *fault)
{
	struct slow *slow = arg;

	message_fault(&slow->err, fault);
	output_flush(&slow->err);
}

/* -v: a program as the kernel gets it. */
static void slow_program(void *arg, const char *name, const struct bpf_insn *insns, size_t count)
{
	struct slow *slow = arg;
	char line[128];

	output_printf(&slow->err, "program %s, %zu instructions:\n", name, count);
	for (size_t i = 0; i < count;) {
		int used = disasm_insn(&insns[i], i + 1 < count ? &insns[i + 1] : NULL, line,
				       sizeof(line));

		output_printf(&slow->err, "%5zu: %s\n", i, line);
		i += (size_t)used;
	}
	output_flush(&slow->err);
}

/* -v: what decides how it works here. */
static void slow_features(struct slow *slow)
{
	const struct features *features = tracer_features(slow->tracer);

	for (int i = 0; i < FEATURES; i++)
		if (features->row[i].asked)
			output_printf(&slow->err, "kernel: %s: %s (%s)\n", feature_name(i),
				      features->row[i].has ? "yes" : "no", feature_since(i));
}

/* Says what was lost since it was last said, at most once a second. */
static void slow_report(struct slow *slow)
{
	uint64_t now = slow_now();
	struct summary summary, news;

	if (now - slow->reported_ns < REPORT_NS)
		return;
	slow->reported_ns = now;
	tracer_summary(slow->tracer, &summary);
	news = summary;
	/* Cut texts are marked where they are shown. */
	news.text_truncated = 0;
	news.ring_full -= slow->reported.ring_full;
	news.table_full -= slow->reported.table_full;
	news.start_without_end -= slow->reported.start_without_end;
	news.end_without_start -= slow->reported.end_without_start;
	news.text_unreadable -= slow->reported.text_unreadable;
	slow->reported = summary;
	if (!message_lost(&news))
		return;
	summary.printed = slow->printed;
	message_summary(&slow->err, &summary);
	output_flush(&slow->err);
}

/* Waits for what ends us, for @fd (-1: nothing else), or for @timeout_ms. */
static void slow_wait(struct slow *slow, int fd, int timeout_ms)
{
	struct pollfd fds[] = {
		{ .fd = slow->stop, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	if (poll(fds, 2, timeout_ms) > 0 && fds[0].revents)
		slow->done = true;
}

static int slow_loop(struct slow *slow)
{
	int nap_ms = 1, filled, fd, err = 0;

	while (!slow->done && !err) {
		filled = tracer_drain(slow->tracer);
		err = output_flush(&slow->out);
		slow_report(slow);
		if (slow->done || err)
			break;
		fd = filled ? -EAGAIN : tracer_sleep(slow->tracer);
		if (fd >= 0) {
			nap_ms = 1;
			slow_wait(slow, fd, SLEEP_MAX_MS);
			continue;
		}
		nap_ms = filled > FULL_ENOUGH ? nap_ms / 2 : nap_ms * 2 + 1;
		nap_ms = nap_ms > NAP_MAX_MS ? NAP_MAX_MS : nap_ms;
		slow_wait(slow, -1, nap_ms);
	}
	return err;
}

/* Takes the probes away, shows what is still in the buffer, and accounts for all. */
static int slow_end(struct slow *slow, int err)
{
	const struct options *options = &slow->options;
	struct summary summary;
	int ret;

	tracer_detach(slow->tracer);
	slow->done = err || (options->count && slow->printed >= options->count);
	while (tracer_drain(slow->tracer) > 0)
		continue;
	tracer_summary(slow->tracer, &summary);
	summary.printed = slow->printed;
	if (options->json && !err)
		json_summary(&slow->out, &summary);
	if (!err)
		err = output_flush(&slow->out);
	ret = message_output(&slow->err, err);
	if (err != -EPIPE)
		message_summary(&slow->err, &summary);
	output_flush(&slow->err);
	return ret == EXIT_OK && options->strict && message_lost(&summary) ? EXIT_FAILED : ret;
}

static bool slow_identifies(const struct options *options)
{
	return options->json || options->user || options->database || options->container ||
	       column_wants_identity(&options->columns);
}

static int slow_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int slow_timer(uint64_t end_ns)
{
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(end_ns / 1000000000u),
					       .tv_nsec = (long)(end_ns % 1000000000u) } };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	if (fd >= 0)
		timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
	return fd;
}

/* Both in one descriptor, so that whoever waits needs to look at one. It stays open to our end. */
static int slow_stop(const struct slow *slow)
{
	struct epoll_event event = { .events = EPOLLIN };
	int stop = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(stop, EPOLL_CTL_ADD, slow_signals(), &event);
	if (slow->options.duration_ns)
		epoll_ctl(stop, EPOLL_CTL_ADD,
			  slow_timer(slow->start_ns + slow->options.duration_ns), &event);
	return stop;
}

static int slow_trace(struct slow *slow)
{
	const struct options *options = &slow->options;
	struct tracer_config config = {
		.engine = options->engine,
		.pids = options->pids, .npids = options->pid_count,
		.paths = options->paths, .npaths = options->path_count,
		.threshold_ns = options->threshold_ns,
		.start = options->start, .done = options->done, .text_arg = options->text_arg,
		.text_bytes = options->text_bytes,
		.identify = slow_identifies(options),
		.rows = options->json || column_wants_rows(&options->columns),
		.user = options->user, .database = options->database,
		.container = options->container, .match = options->has_match ? &options->match : NULL,
		.force_perf = options->force_perf, .force_prealloc = options->force_prealloc,
		.arg = slow, .statement = slow_statement, .server = slow_server,
		.fault = slow_fault, .program = options->verbose ? slow_program : NULL,
	};
	struct fault fault = { .kind = FAULT_NONE };
	struct tracer *tracer;
	int err = tracer_open(&tracer, &config, &fault);

	if (err) {
		message_fault(&slow->err, &fault);
		output_flush(&slow->err);
		fault_clear(&fault);
		return EXIT_FAILED;
	}
	slow->tracer = tracer;
	/* Until here a signal ended us at once, and the kernel took everything away. */
	if (options->verbose)
		slow_features(slow);
	slow->stop = slow_stop(slow);
	output_stoppable(&slow->out, slow->stop);
	output_stoppable(&slow->err, slow->stop);
	if (options->pid_count) {
		slow->npids = options->pid_count;
		memcpy(slow->pids, options->pids, options->pid_count * sizeof(*slow->pids));
	}
	output_flush(&slow->err);
	if (tracer_targets(tracer)) {
		slow_begin(slow);
	} else {
		message_waiting(&slow->err);
		output_flush(&slow->err);
	}
	err = slow_end(slow, slow_loop(slow));
	tracer_close(tracer);
	return err;
}

int cmd_slow(const struct command *command, int argc, char *argv[])
{
	struct slow *slow = calloc(1, sizeof(*slow));
	int ret = EXIT_USAGE;

	if (!slow)
		return EXIT_FAILED;
	slow->start_ns = slow_now();
	output_init(&slow->out, STDOUT_FILENO);
	output_init(&slow->err, STDERR_FILENO);
	slow->terminal = isatty(STDOUT_FILENO);
	signal(SIGPIPE, SIG_IGN);
	if (option_parse(command, argc, argv, &slow->options, &slow->err)) {
		output_flush(&slow->err);
		goto cleanup;
	}
	if (command_answer(command, &slow->options, &slow->out)) {
		ret = message_output(&slow->err, output_flush(&slow->out));
		goto cleanup;
	}
	if (slow->options.engine && !engine_known(slow->options.engine)) {
		output_printf(&slow->err, "dbslower: %s cannot be traced by this version; it knows "
					  "postgres and mysql\n", slow->options.engine);
		output_flush(&slow->err);
		goto cleanup;
	}
	column_init(&slow->view, &slow->options.columns, slow->start_ns, slow->options.wall);
	ret = slow_trace(slow);
cleanup:
	free(slow);
	return ret;
}
