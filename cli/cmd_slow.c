// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The default command: statements slower than a threshold, as they end.
 *
 * The loop naps and drains. A nap lets records gather, so that the servers never pay
 * for waking us; it is short while the buffer fills quickly. When a nap brought nothing,
 * the loop sleeps until the kernel has a record.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/fields.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/otlp.h"
#include "cli/loop.h"
#include "cli/breakdown.h"

#define SLEEP_MAX_MS	5000	/* how long a loss may stay unsaid */
#define REPORT_NS	1000000000u

struct slow {
	struct loop loop;		/* first: the tracer's calls get it */
	struct column_view view;
	struct otlp otlp;
	uint64_t reported_ns, printed;
	struct summary reported;
	bool terminal, done;
	bool running;			/* the last one shown has not ended */
};

static void slow_print(struct slow *slow, const struct statement *statement)
{
	const struct options *options = &slow->loop.options;
	struct output *out = &slow->loop.out;

	if (options->json) {
		json_statement(out, statement);
		return;
	}
	if (statement->running && !slow->running)
		output_string(out, "Still running:\n");
	slow->running = statement->running;
	column_row(out, &slow->view, statement);
	/* Columns alone may have asked for it. */
	if (statement->why && (options->why || options->use || options->phases))
		breakdown_text(out, statement->why);
}

static bool slow_statement(void *arg, const struct statement *statement)
{
	struct slow *slow = arg;

	if (slow->done)
		return false;
	if (!otlp_is_standard(&slow->otlp))
		slow_print(slow, statement);
	/* A span has an end. */
	if (!statement->running)
		otlp_statement(&slow->otlp, statement);
	if (slow->terminal)
		output_flush(&slow->loop.out);
	if (!statement->running)
		slow->done = ++slow->printed == slow->loop.options.count;
	return true;
}

static void slow_begin(struct loop *loop)
{
	struct slow *slow = (struct slow *)loop;

	if (loop->options.json || otlp_is_standard(&slow->otlp))
		return;
	loop_headline(loop);
	column_header(&loop->out, &slow->view);
	output_flush(&loop->out);
}

/* Says what was lost since it was last said, at most once a second. */
static void slow_report(struct slow *slow)
{
	uint64_t now = loop_now();
	struct summary summary, news;

	if (now - slow->reported_ns < REPORT_NS)
		return;
	slow->reported_ns = now;
	tracer_summary(slow->loop.tracer, &summary);
	news = summary;
	/* Cut texts are marked where they are shown. */
	news.text_truncated = 0;
	news.ring_full -= slow->reported.ring_full;
	news.table_full -= slow->reported.table_full;
	news.who_unknown -= slow->reported.who_unknown;
	news.start_without_end -= slow->reported.start_without_end;
	news.end_without_start -= slow->reported.end_without_start;
	news.text_unreadable -= slow->reported.text_unreadable;
	slow->reported = summary;
	if (!message_lost(&news))
		return;
	summary.printed = slow->printed;
	message_summary(&slow->loop.err, &summary);
	output_flush(&slow->loop.err);
}

static void slow_wait(struct slow *slow, int fd, int timeout_ms)
{
	slow->done = loop_wait(&slow->loop, fd, timeout_ms);
}

static int slow_loop(struct slow *slow)
{
	int nap_ms = 1, filled, fd, err = 0;

	while (!slow->done && !err) {
		filled = tracer_drain(slow->loop.tracer);
		if (slow->loop.asked)
			tracer_running(slow->loop.tracer);
		slow->loop.asked = false;
		err = output_flush(&slow->loop.out);
		slow->done |= otlp_flush(&slow->otlp) < 0;
		slow_report(slow);
		if (slow->done || err)
			break;
		fd = filled ? -EAGAIN : tracer_sleep(slow->loop.tracer);
		if (fd >= 0) {
			nap_ms = 1;
			slow_wait(slow, fd, SLEEP_MAX_MS);
			continue;
		}
		nap_ms = loop_nap(nap_ms, filled);
		slow_wait(slow, -1, nap_ms);
	}
	return err;
}

/* The file of --otlp: its descriptor outlives the right to open it. EXIT_OK or EXIT_FAILED. */
static int slow_otlp(struct slow *slow)
{
	const char *path = slow->loop.options.otlp;
	struct error error = { .kind = ERROR_NONE };
	int err = otlp_open(&slow->otlp, path, &slow->loop.out);

	if (!err)
		return EXIT_OK;
	error_set(&error, ERROR_FILE, err, path, NULL);
	message_error(&slow->loop.err, &error);
	output_flush(&slow->loop.err);
	return EXIT_FAILED;
}

/* Says what became of the file of --otlp. EXIT_OK or EXIT_FAILED. */
static int slow_spans(struct slow *slow)
{
	const char *path = slow->loop.options.otlp;
	struct output *err = &slow->loop.err;
	int error = otlp_flush(&slow->otlp);

	if (!error || otlp_is_standard(&slow->otlp))
		return EXIT_OK;
	output_string(err, "dbslower: cannot write ");
	escape_terminal(err, path, strlen(path), false);
	output_printf(err, ": %s\n", strerror(-error));
	return EXIT_FAILED;
}

/* Takes the probes away, shows what is still in the buffer, and accounts for all. */
static int slow_end(struct slow *slow, int err)
{
	const struct options *options = &slow->loop.options;
	struct summary summary;
	int spans, status;

	tracer_detach(slow->loop.tracer);
	slow->done = err || otlp_flush(&slow->otlp) ||
		     (options->count && slow->printed >= options->count);
	while (tracer_drain(slow->loop.tracer) > 0)
		continue;
	tracer_running(slow->loop.tracer);
	tracer_summary(slow->loop.tracer, &summary);
	summary.printed = slow->printed;
	spans = slow_spans(slow);
	status = loop_finish(&slow->loop, err, &summary);
	return status == EXIT_OK ? spans : status;
}

static int slow_trace(struct slow *slow)
{
	struct tracer_config config;
	int status = slow_otlp(slow);

	if (status != EXIT_OK)
		return status;
	loop_config(&slow->loop, &config);
	status = loop_open(&slow->loop, &config);
	if (status == EXIT_OK) {
		otlp_stoppable(&slow->otlp, slow->loop.stop);
		status = slow_end(slow, slow_loop(slow));
	}
	tracer_close(slow->loop.tracer);
	otlp_close(&slow->otlp);
	return status;
}

int cmd_slow(const struct command *command, int argc, char *argv[])
{
	struct slow *slow = calloc(1, sizeof(*slow));
	struct loop *loop;
	int ret = EXIT_FAILED;

	if (!slow)
		return message_no_memory();
	loop = &slow->loop;
	loop->begin = slow_begin;
	loop->statement = slow_statement;
	slow->terminal = isatty(STDOUT_FILENO);
	if (loop_options(loop, command, argc, argv, &ret)) {
		column_init(&slow->view, &loop->options.columns, loop->start_ns,
			    loop->options.wall);
		ret = slow_trace(slow);
	}
	free(slow);
	return ret;
}
