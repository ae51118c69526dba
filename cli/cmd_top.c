// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command top: statements grouped by fingerprint, sorted by cost. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "cli/banner.h"
#include "cli/command.h"
#include "cli/export.h"
#include "cli/families.h"
#include "cli/format/summary.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/top/table.h"
#include "cli/top/ui.h"
#include "cli/tracing.h"
#include "host/clock.h"

#define REFRESH_NS	2000000000u	/* interactive, default of -i */
#define SLIDE_MS	20		/* between reads of the keys in a replay */
#define RUNNING_NS	1000000000u	/* running statements of this duration are listed */

static struct {
	enum top_order order;
	uint64_t lines;			/* of a table; 0: as many as fit */
	bool batch;			/* not interactive, also on a terminal */
	bool delta;			/* counts of each interval, not since the start */
} own;

/* Counts since the start. */
struct counts {
	uint64_t ns;			/* CLOCK_MONOTONIC */
	uint64_t statements, errors;
	uint64_t cpu_ns, bpf_ns;	/* of this process, and of the BPF programs */
	bool has_bpf;			/* ->bpf_ns is known */
};

struct cmd_top {
	struct loop loop;		/* first: callbacks receive it */
	struct top *groups;		/* to show; interactive: of the current interval */
	struct top_ui *ui;		/* owned; NULL: not interactive */
	struct counts counts;		/* at the end of the last interval, but the next two: */
	uint64_t grouped, failed;	/* statements, .. */
	uint64_t nested;		/* .. and those in routines */
	uint64_t interval_ns, next_ns;	/* 0: only at the end; CLOCK_MONOTONIC */
	uint64_t target_ns;		/* to which time of a recording to move */
	uint64_t since_ns;		/* ->groups have the statements since then */
	struct top_table table;
	struct families families;
	struct export export;
};

static void cmd_top_size(struct cmd_top *top)
{
	struct winsize size;

	if (top->loop.options.json || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ||
	    !isatty(STDOUT_FILENO))
		return;
	top->table.width = size.ws_col ? size.ws_col : 80;
	top->table.height = size.ws_row;
}

/* Print the statements of evicted groups, with the number of their fingerprints. */
static void cmd_top_other(struct cmd_top *top)
{
	const struct top_entry *other = top_other(top->groups, &top->table.folded);
	char text[64] = "(others: ";
	size_t len = strlen(text);

	if (!other || !other->calls)
		return;
	len += output_format(text + len, top->table.folded, 0);
	strcpy(text + len, " fingerprints)");
	top_table_group(&top->table, other, text);
}

/* Print the groups. Return 0 or -errno. */
static int cmd_top_show(struct cmd_top *top)
{
	struct loop *loop = &top->loop;
	size_t count, lines;
	const struct top_entry *const *entries =
		top_sort(top->groups, own.order, &count);

	cmd_top_size(top);
	lines = top_table_lines(&top->table);
	top->table.interval = loop->counted;
	top->table.wall_ns = loop_wall(loop);
	top_table_begin(&top->table, loop_now(loop) - top->since_ns);
	for (size_t i = 0; entries && i < count && (i < lines || loop->options.json); i++)
		top_table_group(&top->table, entries[i], entries[i]->fingerprint);
	if (entries && count > lines && !loop->options.json)
		output_printf(&loop->out, "(%zu more)\n", count - lines);
	cmd_top_other(top);
	tracing_running(loop);
	if (!loop->options.json)
		output_char(&loop->out, '\n');
	loop_count(loop);
	return output_flush(&loop->out);
}

/* Add a running statement to those that are shown interactively. */
static void cmd_top_longest(struct top_head *head, const struct statement *statement)
{
	struct top_running *one = head->longest;
	size_t n = head->nlongest, at = 0;

	head->running++;
	while (at < n && one[at].duration_ns >= statement->duration_ns)
		at++;
	if (statement->duration_ns < RUNNING_NS || at == TOP_RUNNINGS)
		return;
	head->nlongest = n += n < TOP_RUNNINGS;
	memmove(one + at + 1, one + at, (n - at - 1) * sizeof(*one));
	one += at;
	*one = (struct top_running){ .pid = statement->who->pid, .len = 1, .text = "-",
				     .duration_ns = statement->duration_ns };
	if (!statement->text)
		return;
	one->len = statement->text_len < sizeof(one->text) ? statement->text_len :
							      sizeof(one->text);
	memcpy(one->text, statement->text, one->len);
}

static bool cmd_top_statement(void *arg, const struct statement *s)
{
	struct cmd_top *top = arg;
	const struct family *family;
	struct top_call call = {
		.engine = s->server->engine->name, .database = s->who->database, .text = s->text,
		.text_len = s->text_len, .text_cut = s->truncated, .duration_ns = s->duration_ns,
		.rows = s->has_rows ? s->rows : 0, .seen_ns = s->start_ns, .failed = s->failed,
		.why = s->why, .nested = s->level,
	};

	if (s->running && export_statement(&top->export, s, 0, NULL))
		return true;
	if (s->running) {
		if (top->ui && top->ui->screen.entered)
			cmd_top_longest(&top->ui->head, s);
		else
			top_table_running(&top->table, s);
		return true;
	}
	family = families_find(&top->families, s);
	call.hash = family->hash;
	call.fingerprint = family->fingerprint;
	top_add(top->groups, &call);
	export_statement(&top->export, s, call.hash, call.fingerprint);
	top->grouped += !s->level;
	top->nested += !!s->level;
	top->failed += s->failed && !s->level;
	return true;
}

static void cmd_top_begin(struct loop *loop)
{
	struct cmd_top *top = (struct cmd_top *)loop;

	export_begin(&top->export);
	if (top->ui && loop->host)
		snprintf(top->ui->head.host, sizeof(top->ui->head.host), "%s", loop->host);
}

/* Return @n, counted in @ns, in thousandths per second. */
static uint64_t cmd_top_rate(uint64_t n, uint64_t ns)
{
	return n * 1000000 / (ns / 1000000 + 1);
}

/* Fill the values of the head with those since the last interval. */
static void cmd_top_values(struct cmd_top *top, uint64_t now)
{
	struct counts *before = &top->counts, counts = {
		.ns = now, .statements = top->grouped, .errors = top->failed,
		.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
	};
	struct top_head *head = &top->ui->head;
	uint64_t ns = now - before->ns;
	struct summary summary;

	counts.has_bpf = !top->loop.source->run_ns(&top->loop, &counts.bpf_ns);
	tracing_summary(&top->loop, &summary);
	head->uptime_ns = now - top->loop.start_ns;
	head->wall_ns = top->ui->replay ? loop_wall(&top->loop) : 0;
	head->lost = loss_events(&summary);
	head->statements = cmd_top_rate(counts.statements - before->statements, ns);
	head->errors = cmd_top_rate(counts.errors - before->errors, ns);
	head->cpu = (counts.cpu_ns - before->cpu_ns) / (ns / 100000 + 1);
	head->bpf = (counts.bpf_ns - before->bpf_ns) / (ns / 100000 + 1);
	head->has_bpf = counts.has_bpf && before->has_bpf;
	head->running = head->nlongest = 0;
	tracing_running(&top->loop);
	*before = counts;
}

/* End an interval of the interactive top. */
static void cmd_top_roll(struct cmd_top *top, uint64_t now)
{
	struct top *next = top_new(TOP_ENTRIES);

	/* Out of memory: this interval becomes longer. */
	if (!next)
		return;
	top->next_ns = now + top->interval_ns;
	cmd_top_values(top, now);
	top_ui_roll(top->ui, top->groups, now - top->since_ns);
	top->groups = next;
	top->since_ns = now;
	loop_count(&top->loop);
}

/* Read the recording from the start again. Return 0 or -ENOMEM. */
static int cmd_top_rewind(struct cmd_top *top)
{
	struct top *groups = top_new(TOP_ENTRIES);

	if (!groups || top_ui_reset(top->ui)) {
		top_free(groups);
		return -ENOMEM;
	}
	top_free(top->groups);
	top->groups = groups;
	top->grouped = top->failed = top->nested = 0;
	top->counts = (struct counts){ .ns = 0 };
	top->loop.source->rewind(&top->loop);
	top->since_ns = top->counts.ns = loop_now(&top->loop);
	return 0;
}

/* Set the time to move to in a recording, as the keys ask for. Return 0 or -ENOMEM. */
static int cmd_top_seek(struct cmd_top *top)
{
	const struct loop *loop = &top->loop;
	int64_t steps = top->ui->steps;
	uint64_t now = loop_now(loop), span, ahead = loop->end_ns - now;
	int err = 0;

	top->ui->steps = 0;
	span = (uint64_t)(steps < 0 ? -steps : steps) * top->interval_ns;
	if (steps > 0)
		top->target_ns = now + (span < ahead ? span : ahead);
	else
		top->target_ns = now - loop->start_ns > span ? now - span : loop->start_ns;
	/* There is nothing beyond the ends. */
	if (top->target_ns == now)
		return 0;
	if (top->target_ns < now)
		err = cmd_top_rewind(top);
	now = loop_now(loop);
	/* The last interval is one of its own. */
	top->next_ns = top->target_ns - now > top->interval_ns ?
		       top->target_ns - top->interval_ns : top->target_ns;
	return err;
}

/* Show a recording at ->target_ns, its end at first. Return 0 or -ENOMEM. */
static int cmd_top_slide(struct cmd_top *top)
{
	struct loop *loop = &top->loop;
	uint64_t now = loop_now(loop);
	int err = 0;

	if (now >= top->next_ns && top->next_ns) {
		cmd_top_roll(top, now);
		top->next_ns = now < top->target_ns ? top->target_ns : 0;
	}
	if (now >= top->target_ns && top->ui->steps)
		err = cmd_top_seek(top);
	now = loop_now(loop);
	loop->nap_ms = now < top->target_ns ? 0 : SLIDE_MS;
	loop_wake(loop, now < top->target_ns ? top->next_ns : now);
	return err;
}

static int cmd_top_tick(struct loop *loop)
{
	struct cmd_top *top = (struct cmd_top *)loop;
	uint64_t now = loop_now(loop);
	int err = 0;

	export_tick(&top->export);
	if (loop->failed || top->export.standard)
		return 0;
	if (top->ui) {
		if (top->ui->replay)
			err = cmd_top_slide(top);
		else if (now >= top->next_ns && !top->ui->view.paused)
			cmd_top_roll(top, now);
		loop->done = top_ui_update(top->ui, &loop->err, clock_ns(CLOCK_MONOTONIC)) ||
			     loop->done;
		return err ? err : top->ui->screen.error;
	}
	loop_wake(loop, top->interval_ns ? top->next_ns : 0);
	if (!top->interval_ns || now < top->next_ns)
		return 0;
	top->next_ns = now + top->interval_ns;
	loop_wake(loop, top->next_ns);
	err = cmd_top_show(top);
	if (own.delta) {
		top_free(top->groups);
		top->groups = top_new(TOP_ENTRIES);
		top->since_ns = now;
	}
	return top->groups ? err : -ENOMEM;
}

/* Restore the terminal first: detaching may take a second. */
static void cmd_top_detach(struct loop *loop)
{
	struct cmd_top *top = (struct cmd_top *)loop;

	if (top->ui)
		screen_close(&top->ui->screen);
	loop->err.held = false;
	output_flush(&loop->err);
	tracing_detach(loop);
}

static int cmd_top_finish(struct loop *loop, int *err)
{
	struct cmd_top *top = (struct cmd_top *)loop;
	struct top *groups = top->groups;

	if (top->ui && !*err) {
		top_merge(top->ui->total, groups);
		top->groups = top->ui->total;
		top->since_ns = loop->start_ns;
		own.order = top->ui->view.order;
		top->table.delta = false;
	}
	if ((!loop->done || (top->ui && !*err)) && !top->export.standard)
		*err = cmd_top_show(top);
	top->groups = groups;
	return *err ? EXIT_OK : export_finish(&top->export);
}

static void cmd_top_summary(struct loop *loop, struct summary *summary)
{
	struct cmd_top *top = (struct cmd_top *)loop;

	tracing_summary(loop, summary);
	summary->printed = top->grouped + top->nested;
}

/* Add the server to the head. Those that end later stay there. */
static void cmd_top_server(void *arg, const struct server_info *server)
{
	struct cmd_top *top = arg;
	struct top_head *head = &top->ui->head;
	size_t len = strlen(head->servers), room = sizeof(head->servers) - len;
	int n = snprintf(head->servers + len, room, "%s%s%s%s", len ? ", " : "", server->title,
			 *server->version ? " " : "", server->version);

	if (server->npids && (size_t)n < room)
		snprintf(head->servers + len + n, room - (size_t)n, " (pid %u)", server->pids[0]);
	banner_server(arg, server);
}

/* Prepare the interactive top, if the terminal allows it. Return EXIT_OK or EXIT_FAILED. */
static int cmd_top_prepare(struct cmd_top *top, struct tracer_config *config)
{
	const struct options *options = &top->loop.options;
	struct utsname name;
	struct top_ui *ui;

	if (options->json || own.batch || top->export.standard || !screen_is_possible())
		return EXIT_OK;
	top->ui = ui = calloc(1, sizeof(*ui));
	if (!ui || top_ui_open(ui))
		return message_no_memory();
	ui->replay = top->loop.stays = top->loop.source->rewind;
	if (screen_open(&ui->screen)) {
		top->loop.stays = false;
		top_ui_close(ui);
		free(ui);
		top->ui = NULL;
		return EXIT_OK;
	}
	if (!uname(&name))
		snprintf(ui->head.host, sizeof(ui->head.host), "%s", name.nodename);
	ui->limit = own.lines;
	ui->view.order = own.order;
	ui->view.delta = own.delta;
	ui->view.has_why = ui->view.why = options->why || options->use;
	ui->view.has_use = options->use;
	config->server = cmd_top_server;
	config->identify = true;
	config->measure = true;
	config->needs |= SANDBOX_TERMINAL;
	return EXIT_OK;
}

static int cmd_top_run(struct loop *loop)
{
	struct cmd_top *top = (struct cmd_top *)loop;
	struct tracer_config config;
	int ret;

	top->groups = top_new(TOP_ENTRIES);
	if (!top->groups)
		return message_no_memory();
	tracing_config(loop, &config);
	config.sink.statement = cmd_top_statement;
	config.rows = true;
	ret = export_open(&top->export, &top->loop);
	top->export.tool.by_fingerprint = true;
	export_config(&top->export, &config);
	if (ret == EXIT_OK)
		ret = cmd_top_prepare(top, &config);
	if (ret == EXIT_OK)
		ret = tracing_start(&top->loop, &config);
	if (ret != EXIT_OK)
		return ret;
	top->interval_ns = loop->options.interval_ns || !top->ui ? loop->options.interval_ns :
								   REFRESH_NS;
	top->table.out = &loop->out;
	top->table.options = &loop->options;
	top->table.limit = own.lines;
	top->table.delta = own.delta;
	top->table.servers = &loop->banner.servers;
	top->since_ns = top->counts.ns = loop_now(loop);
	top->next_ns = top->since_ns + top->interval_ns;
	if (top->ui && top->ui->replay) {
		top->target_ns = top->next_ns = loop->end_ns;
		if (top->target_ns - top->since_ns > top->interval_ns)
			top->next_ns -= top->interval_ns;
	}
	if (top->ui) {
		top->counts.cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		top->counts.has_bpf = !top->loop.source->run_ns(&top->loop, &top->counts.bpf_ns);
		loop->err.held = isatty(STDERR_FILENO);
		screen_enter(&top->ui->screen);
	}
	return loop_run(loop);
}

static void cmd_top_close(struct loop *loop)
{
	struct cmd_top *top = (struct cmd_top *)loop;

	export_close(&top->export);
	top_free(top->groups);
	if (top->ui)
		top_ui_close(top->ui);
	free(top->ui);
}

static const struct loop_ops cmd_top_ops = {
	.size = sizeof(struct cmd_top), .noun = "statements",
	.losses = LOSSES_OF_SESSIONS | LOSSES_OF_TEXTS,
	.run = cmd_top_run, .close = cmd_top_close, .begin = cmd_top_begin,
	.drain = tracing_drain, .tick = cmd_top_tick, .detach = cmd_top_detach,
	.finish = cmd_top_finish, .summary = cmd_top_summary,
};

static int set_order(struct option_parser *p, const struct option_row *row, const char *value)
{
	for (int i = 0; i < TOP_ORDERS; i++) {
		if (strcmp(value, top_order_name((enum top_order)i)))
			continue;
		own.order = (enum top_order)i;
		p->opts->why = p->opts->why || (i >= TOP_PART && i < TOP_USE);
		p->opts->use = p->opts->use || i >= TOP_USE;
		return 0;
	}
	return option_refuse(p, row, value, "unknown sort key");
}

static void complete_sort(struct output *out)
{
	for (int i = 0; i < TOP_ORDERS; i++)
		output_printf(out, "%s\n", top_order_name((enum top_order)i));
}

static const struct option_row option_sort = {
	.name = "sort", .arg = "WHAT",
	.help = "total, calls, mean, p95, p99, max, rows, errors, ...",
	.accepts = "expected total, calls, mean, p95, p99, max, rows, errors, a part of the time "
		   "(cpu, disk, lock, ... as in --why) or a resource (wal_bytes, ... as in --use)",
	.set = set_order, .complete = complete_sort, OPTION_OWN(own.order),
};

static int set_lines(struct option_parser *p, const struct option_row *row, const char *value)
{
	if (option_read_number(value, strlen(value), &own.lines))
		return option_refuse(p, row, value, "not a number of lines");
	return own.lines ? 0 : option_refuse(p, row, value, "must be at least 1");
}

static const struct option_row option_lines = {
	.name = "lines", .arg = "N",
	.help = "maximum number of groups (default: as fits, or 20)",
	.accepts = "expected a whole number",
	.set = set_lines, OPTION_OWN(own.lines),
};

static const struct option_row option_batch = {
	.name = "batch",
	.help = "print tables, also on a terminal",
	OPTION_OWN(own.batch),
};

static const struct option_row option_delta = {
	.name = "delta",
	.help = "count the statements of each interval",
	OPTION_OWN(own.delta),
};

static const struct option_row *const top_options[] = {
	&option_min, &option_pid, &option_path, &option_duration, &option_interval,
	&option_count_intervals, &option_delta, &option_batch, &option_sort, &option_lines,
	&option_start, &option_done, &option_text_arg, &option_engine, &option_user, &option_db,
	&option_client, &option_app, &option_backend, &option_match, &option_container,
	&option_text, &option_redact, &option_why, &option_use, &option_nested, &option_openmetrics,
	&option_otlp_metrics, &option_json, &option_strict, &option_sample, &option_max_overhead,
	&option_keep_privileges, &option_force, &option_threshold, &option_exe, &option_verbose,
	&option_help, &option_version, NULL
};

static bool metrics_with_json(const struct options *opts)
{
	return export_conflicts(opts->json);
}

static const struct option_rule rule_metrics = EXPORT_RULE(metrics_with_json);

static const struct option_rule *const top_rules[] = {
	&rule_metrics, RULES_OF_PROBES, &rule_count_intervals, NULL
};

const struct command command_top = {
	.name = "top",
	.replays = true,
	.summary = "print statements by fingerprint: calls, times, rows, errors",
	.invocation = "dbslower top",
	.usage = "[ENGINE] [THRESHOLD] [OPTION...]",
	.about =
	"Group the statements of running database servers that differ only in literals,\n"
	"and show the most expensive groups. On a terminal, keys sort, filter and show\n"
	"details; ? lists them. Other output is a table on exit or at each interval.\n"
	"With THRESHOLD, only statements that take longer are counted. Statements that\n"
	"have been running for at least a second are listed below the groups.\n",
	.examples =
	"  dbslower top                  until q or Ctrl-C\n"
	"  dbslower top -i 10 --delta --batch    a table of each 10 seconds\n"
	"  dbslower top -d 60 --json     one minute, as JSON\n"
	"  dbslower top postgres --sort p99 --lines 5\n"
	"  dbslower top --sort lock      by time spent waiting for locks\n"
	COMMAND_EXIT_STATUS,
	.words = WORDS_STATEMENTS,
	.options = top_options,
	.rules = top_rules,
	.loop = &cmd_top_ops,
	.run = loop_command,
};
