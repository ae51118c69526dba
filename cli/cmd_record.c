// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command record: statements, transactions and lock waits to a file, for replay. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "cli/banner.h"
#include "cli/command.h"
#include "cli/flight.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/tracing.h"
#include "cli/version.h"
#include "db/recording/layout.h"
#include "db/recording/writer.h"
#include "host/clock.h"

#define NAP_MS		5	/* between drains .. */
#define NAP_WAIT_MS	1	/* .. and while holders of locks are to be read */
#define COMMIT_MS	1000	/* how long an event is in memory only */

struct record {
	struct loop loop;		/* first: callbacks receive it */
	struct writer writer;
	struct flight flight;		/* its files */
	bool looking;			/* running events are not recorded, but may fire */
	uint64_t bpf_ns;		/* as last measured .. */
	bool has_bpf;			/* .. if at all */
};

/* End the block of @user with what was lost until now. Return 0 or -errno. */
static int record_commit(struct record *record, struct writer_user *user, enum recording_kind kind)
{
	struct recorded_cost cost = { .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) };
	struct recorded_user users[WRITER_USERS];
	struct loop *loop = &record->loop;
	struct summary statements, waits;
	int err = writer_reserve(&record->writer, user);

	if (err)
		return err;
	/* While it is not known, it is that of the last time. */
	record->has_bpf |= !loop->source->run_ns(loop, &record->bpf_ns);
	cost.has_bpf = record->has_bpf;
	cost.bpf_ns = record->bpf_ns;
	loop->source->summary(loop, &statements, false);
	loop->source->summary(loop, &waits, true);
	encode_status(&user->encode, clock_ns(CLOCK_MONOTONIC), &statements, &waits, &cost,
		      users, writer_displaced(&record->writer, users));
	return writer_commit(&record->writer, user, kind);
}

/* Report that the current file cannot be written, and end it. A flight recorder goes on. */
static void record_fail(struct record *record, int err)
{
	struct loop *loop = &record->loop;

	message_unwritten(&loop->err, *record->flight.name ? record->flight.name :
			  loop->options.file, err);
	flight_end(&record->flight, err);
	loop->failed = loop->done = !record->flight.memory;
}

/* End the block of @user. */
static void record_write(struct record *record, struct writer_user *user)
{
	int err = record_commit(record, user, RECORDING_EVENTS);

	if (err)
		record_fail(record, err);
}

/* End the blocks that are due at @now_ns, as writer_due(). */
static void record_due(struct record *record, uint64_t now_ns)
{
	struct writer_user *user;

	while (!record->loop.failed && (user = writer_due(&record->writer, now_ns)))
		record_write(record, user);
}

/* Return the user of @server, who has a block. */
static struct writer_user *record_user(struct record *record, const struct server *server)
{
	return writer_user(&record->writer, server->has_uid ? server->uid : UINT32_MAX);
}

/* End the block if it is full: one drain may have more events than a block has room for. */
static void record_full(struct record *record, struct writer_user *user)
{
	if (writer_full(&record->writer, user) && !record->loop.failed)
		record_write(record, user);
}

static bool record_statement(void *arg, const struct statement *s)
{
	struct record *record = arg;
	struct writer_user *user;

	if (record->loop.done)
		return false;
	if (record->looking && !s->transaction)
		flight_running(&record->flight, false, s->start_ns);
	if (record->looking)
		return false;
	user = record_user(record, s->server);
	encode_statement(&user->encode, s);
	if (!s->transaction && !s->level)
		flight_statement(&record->flight, s);
	record_full(record, user);
	if (!s->transaction && !s->running && !s->prepare)
		loop_count(&record->loop);
	return true;
}

static bool record_wait(void *arg, const struct lock_wait *wait)
{
	struct record *record = arg;
	struct writer_user *user;

	if (record->loop.done)
		return true;
	if (record->looking) {
		flight_running(&record->flight, true, wait->start_ns);
		return true;
	}
	user = record_user(record, wait->server);
	encode_wait(&user->encode, wait);
	if (!wait->running)
		flight_wait(&record->flight, wait->duration_ns);
	record_full(record, user);
	return true;
}

/* End the current file. Return EXIT_OK or EXIT_FAILED. */
static int record_end(struct record *record)
{
	int err;

	record_due(record, UINT64_MAX);
	if (record->flight.fd < 0 || record->loop.failed)
		return EXIT_FAILED;
	err = record_commit(record, record->writer.users, RECORDING_END);
	if (err)
		record_fail(record, err);
	else
		flight_end(&record->flight, 0);
	return err ? EXIT_FAILED : EXIT_OK;
}

/* Fire if a statement, or a lock wait, that has not ended takes long enough. */
static void record_look(struct record *record)
{
	record->looking = true;
	tracing_running(&record->loop);
	record->looking = false;
}

static int record_tick(struct loop *loop)
{
	struct record *record = (struct record *)loop;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	bool fired;

	if (flight_looks(&record->flight, now_ns))
		record_look(record);
	fired = flight_fired(&record->flight);

	record_due(record, fired ? UINT64_MAX : now_ns);
	if (fired)
		flight_begin(&record->flight, now_ns);
	else if (flight_ends(&record->flight, now_ns)) {
		/* What has not ended is after all else. */
		tracing_running(loop);
		record_end(record);
	}
	return 0;
}

static void record_triggered(struct loop *loop)
{
	flight_signal(&((struct record *)loop)->flight);
}

static int record_drain(struct loop *loop)
{
	int filled = tracing_drain(loop);

	loop->nap_ms = loop->tracer && tracer_resolves(loop->tracer) ? NAP_WAIT_MS : NAP_MS;
	return filled;
}

static int record_sleep(struct loop *loop)
{
	struct record *record = (struct record *)loop;
	int fd = tracing_sleep(loop);

	if ((writer_pending(&record->writer) || record->flight.until_ns) &&
	    (!loop->sleep_ms || loop->sleep_ms > COMMIT_MS))
		loop->sleep_ms = COMMIT_MS;
	return fd;
}

/* Events that have not ended are recorded at the end. */
static void record_running(struct loop *loop)
{
	struct record *record = (struct record *)loop;

	if (!loop->ending)
		return;
	record_due(record, UINT64_MAX);
	if (flight_fired(&record->flight))
		flight_begin(&record->flight, clock_ns(CLOCK_MONOTONIC));
	if (record->flight.fd < 0)
		return;
	tracing_running(loop);
}

static int record_finish(struct loop *loop, int *err)
{
	struct record *record = (struct record *)loop;

	(void)err;
	if (loop->failed)
		return EXIT_FAILED;
	return record->flight.fd < 0 ? EXIT_OK : record_end(record);
}

/* What was lost of lock waits is lost, too. */
static void record_summary(struct loop *loop, struct summary *summary)
{
	struct summary waits;

	tracing_summary(loop, summary);
	loop->source->summary(loop, &waits, true);
	for (size_t i = 0; i < LOSSES; i++)
		summary->lost[i] += waits.lost[i];
}

/* Nothing is printed. */
static void record_begin(struct loop *loop)
{
	(void)loop;
}

static void record_number(struct encode *encode, const char *key, uint64_t value)
{
	char number[OUTPUT_NUMBER + 1];

	number[output_format(number, value, 0)] = '\0';
	encode_option(encode, key, number);
}

/* Write the block that says what is recorded, and where. Return 0 or -errno. */
static int record_start(struct record *record)
{
	const struct writer *writer = &record->writer;
	struct encode *encode = &record->writer.users->encode;
	uint64_t limit = writer->memory ? writer->memory : writer->limit;
	struct loop *loop = &record->loop;
	char pids[512];
	struct utsname name;
	size_t len = 0;

	*pids = '\0';
	for (size_t i = 0; i < loop->banner.npids && len < sizeof(pids) - 16; i++)
		len += (size_t)snprintf(pids + len, sizeof(pids) - len, "%s%u", i ? " " : "",
					loop->banner.pids[i]);
	if (!uname(&name)) {
		encode_option(encode, "host", name.nodename);
		encode_option(encode, "architecture", name.machine);
		encode_option(encode, "kernel", name.release);
	}
	encode_option(encode, "dbslower", version_text);
	record_number(encode, "start_ns", loop->start_ns);
	record_number(encode, "start_wall_ns", clock_ns(CLOCK_REALTIME) -
					       (clock_ns(CLOCK_MONOTONIC) - loop->start_ns));
	record_number(encode, "threshold_ns", loop->options.threshold_ns);
	encode_option(encode, "pids", pids);
	if (limit)
		record_number(encode, LIMIT_OPTION, limit);
	return writer_commit(&record->writer, record->writer.users, RECORDING_START);
}

/* Open the file. */
static int record_opened(struct loop *loop)
{
	return flight_start(&((struct record *)loop)->flight);
}

static int record_trace(struct record *record)
{
	struct loop *loop = &record->loop;
	struct tracer_config config;

	tracing_config(loop, &config);
	config.events = true;
	config.sink.statement = record_statement;
	config.sink.wait = record_wait;
	config.identify = config.rows = config.measure = true;
	config.prepares = config.query_ids = config.transactions = config.both = true;
	config.needs |= record->flight.memory ? SANDBOX_REPLACE : 0;
	return tracing_start(loop, &config);
}

static int record_run(struct loop *loop)
{
	struct record *record = (struct record *)loop;
	int status = flight_open(&record->flight, loop, &record->writer), err;

	if (status == EXIT_OK)
		status = record_trace(record);
	if (status != EXIT_OK)
		return status;
	err = record_start(record);
	if (err)
		return message_unwritten(&loop->err, loop->options.file, err);
	return loop_run(loop);
}

static void record_close(struct loop *loop)
{
	struct record *record = (struct record *)loop;

	writer_close(&record->writer);
	flight_close(&record->flight);
}

static const struct loop_ops record_ops = {
	.size = sizeof(struct record), .noun = "statements",
	.losses = LOSSES_OF_SESSIONS | LOSSES_OF_TEXTS, .report = LOOP_REPORT_TEXTS,
	.run = record_run, .opened = record_opened, .close = record_close,
	.begin = record_begin,
	.drain = record_drain, .sleep = record_sleep, .tick = record_tick,
	.running = record_running, .triggered = record_triggered, .detach = tracing_detach,
	.finish = record_finish, .summary = record_summary,
};

static const struct option_row option_record_why = {
	.name = "why",
	.help = "also record time breakdowns",
	.member = offsetof(struct options, why),
};

static const struct option_row option_record_use = {
	.name = "use",
	.help = "also record resource usage",
	.member = offsetof(struct options, use),
};

static const struct option_row option_record_phases = {
	.name = "phases",
	.help = "also record the times of parsing and planning",
	.member = offsetof(struct options, phases),
};

static const struct option_row option_record_count = {
	.letter = 'n', .name = "count", .arg = "COUNT",
	.help = "stop after recording this many statements",
	.accepts = "expected a whole number",
	.set = option_set_number, .member = offsetof(struct options, count),
};

static const struct option_row *const record_options[] = {
	&option_min, &option_pid, &option_path, &option_duration, &option_record_count,
	&option_max_size, &option_memory, &option_on_slow, &option_on_lock,
	&option_on_error_rate, &option_after, &option_max_files, &option_record_why,
	&option_record_use, &option_record_phases, &option_nested, &option_start, &option_done,
	&option_text_arg, &option_engine, &option_user, &option_db, &option_client, &option_app,
	&option_backend, &option_match, &option_container, &option_text, &option_redact,
	&option_strict, &option_sample, &option_max_overhead, &option_keep_privileges,
	&option_force, &option_threshold, &option_exe, &option_verbose, &option_help,
	&option_version, NULL
};

static const struct option_rule *const record_rules[] = {
	&rule_trigger, &rule_max_files, RULES_OF_PROBES, NULL
};

const struct command command_record = {
	.name = "record",
	.summary = "record statements and lock waits in a file, for replay",
	.invocation = "dbslower record",
	.usage = "FILE [ENGINE] [THRESHOLD] [OPTION...]",
	.about =
	"Record in FILE what slow, transactions and locks print with all options:\n"
	"statements, transactions and lock waits that take longer than THRESHOLD\n"
	"(default 1 ms), with all their fields.\n"
	"dbslower replay prints it, on any machine. An event is in FILE within a second.\n"
	"With --memory, the newest are kept in memory until a trigger fires, or SIGUSR2\n"
	"is received; then these and what follows for --after are written to a file of\n"
	"their own, with the time in place of %t in its name.\n",
	.examples =
	"  dbslower record incident.rec              until Ctrl-C\n"
	"  dbslower record incident.rec 0 -d 60      all statements of one minute\n"
	"  dbslower record night.rec --max-size 1G   the newest that fit in 1 GiB\n"
	"  dbslower record incident.rec --why --use --redact\n"
	"  dbslower record 'incident-%t.rec' --memory 8M --on-slow 5s --on-lock 2s\n"
	COMMAND_EXIT_STATUS,
	.words = WORDS_RECORDING,
	.threshold_ns = 1000000,
	.options = record_options,
	.rules = record_rules,
	.loop = &record_ops,
	.run = loop_command,
};
