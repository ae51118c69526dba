// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command trace: hits of any USDT probe or function of any file or process. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/banner.h"
#include "cli/command.h"
#include "cli/format/escape.h"
#include "cli/format/json.h"
#include "cli/loop.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/trace/not_found.h"
#include "cli/trace/print.h"
#include "cli/trace/request.h"
#include "db/engines.h"
#include "host/clock.h"
#include "host/file.h"
#include "probe/trace.h"
#include "sql/glob.h"

static struct trace_options own;

struct trace {
	struct loop loop;		/* first: callbacks receive it */
	struct trace_spec specs[OPTION_WORDS];
	struct file_list files;		/* specified separately from the probes */
	struct probe_trace *probes;
	struct trace_view view;
	uint64_t counted, unreadable, cut;	/* hits in tables; texts */
	uint64_t unreadable_values;
	bool explained;			/* the output contains a '?', which was explained */
};

/* Print "dbslower: SUBJECT: CAUSE; REMEDY". */
static void trace_report(struct trace *trace, const char *subject, const char *cause,
			 const char *remedy)
{
	struct output *err = &trace->loop.err;

	output_string(err, "dbslower: ");
	escape_terminal(err, subject, strlen(subject), false);
	output_printf(err, ": %s; %s\n", cause, remedy);
}

/* Report @error, which is cleared. The remedies for servers are replaced by those for any file. */
static int trace_failed(struct trace *trace, struct error *error)
{
	struct output *err = &trace->loop.err;

	if (error->kind == ERROR_NOT_ELF) {
		trace_report(trace, error->subject, "not an ELF file",
			     "specify a program or a library, not a script that starts it");
	} else if (error->kind == ERROR_PROBE || error->kind == ERROR_TOO_MANY) {
		output_string(err, "dbslower: ");
		message_cause(err, error);
		output_string(err, error->kind == ERROR_PROBE ?
			      "; dbslower list -vv prints the arguments of probes; --ret and r: "
			      "trace returns\n" :
			      "; use a pattern that matches fewer\n");
	} else {
		message_error(err, error);
	}
	error_clear(error);
	return EXIT_FAILED;
}

/* Add the files called @name, or report that there are none. */
static int trace_file(struct trace *trace, struct file_list *list, const char *name)
{
	const struct options *options = &trace->loop.options;
	int err = file_list_named(list, name, options->pids, options->pid_count);
	struct error error = { .kind = ERROR_NONE };

	if (err == -ENOENT && !strchr(name, '/')) {
		trace_report(trace, name, "program or library not found",
			     "specify a path, which contains a '/', or a short name such as c for "
			     "libc.so.6");
		return EXIT_FAILED;
	}
	if (!err && options->pid_count && list->count && !list->files[list->count - 1].pid)
		trace_report(trace, list->files[list->count - 1].path,
			     "no process of -p maps it", "hits are shown once one has loaded it");
	if (!err)
		return EXIT_OK;
	error_set(&error, ERROR_FILE, err, name, NULL);
	return trace_failed(trace, &error);
}

/* Add the files specified separately from the probes; if none, all that the processes of -p map. */
static int trace_files(struct trace *trace)
{
	const struct options *options = &trace->loop.options;
	struct error error = { .kind = ERROR_NONE };
	char number[OUTPUT_NUMBER];
	int status = EXIT_OK;

	for (unsigned int i = 0; i < options->pid_count; i++) {
		uint32_t pid = options->pids[i];
		int err = !process_exists(pid) ? -ENOENT : options->path_count ? 0 :
			  file_list_process(&trace->files, pid);

		number[output_format(number, pid, 0)] = '\0';
		if (err) {
			error_set(&error, ERROR_PROCESS, err, number, NULL);
			return trace_failed(trace, &error);
		}
	}
	for (unsigned int i = 0; status == EXIT_OK && i < options->path_count; i++)
		status = trace_file(trace, &trace->files, options->paths[i]);
	return status;
}

/* Return whether to continue with other files after @error. Report that a Go program is omitted. */
static bool trace_skip_file(struct trace *trace, const struct trace_spec *spec,
			    const struct error *error)
{
	/* Mapped data files, programs of other architectures, and those with a similar name. */
	if (error->kind == ERROR_NONE || error->kind == ERROR_MACHINE || error->code == -ENOENT)
		return true;
	if (error->kind != ERROR_GO_RETURN || !glob_is_pattern(spec->request.name))
		return false;
	message_error(&trace->loop.err, error);
	return true;
}

/* Add request @number for the files in @list. */
static int trace_plan(struct trace *trace, unsigned int number, const struct file_list *list)
{
	const struct trace_spec *spec = &trace->specs[number];
	bool only = list->count == 1;
	struct error error = { .kind = ERROR_NONE };
	int found = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct file *file = &list->files[i];
		int n = probe_trace_add(trace->probes, &spec->request, number, file, &error);

		if (n == -ENOEXEC && error.kind == ERROR_NONE && only)
			error_set(&error, ERROR_NOT_ELF, n, file->path, NULL);
		if (n < 0 && (only ? error.kind != ERROR_NONE :
				     !trace_skip_file(trace, spec, &error)))
			return trace_failed(trace, &error);
		error_clear(&error);
		found += n > 0 ? n : 0;
	}
	if (found)
		return EXIT_OK;
	trace_not_found(&trace->loop.err, trace->probes, spec, list, &trace->loop.options);
	return EXIT_FAILED;
}

static int trace_plans(struct trace *trace)
{
	const struct options *options = &trace->loop.options;
	int status = trace_files(trace);

	for (unsigned int i = 0; status == EXIT_OK && i < options->word_count; i++) {
		struct file_list named = { 0 };

		if (!trace->specs[i].file) {
			status = trace_plan(trace, i, &trace->files);
			continue;
		}
		status = trace_file(trace, &named, trace->specs[i].file);
		if (status == EXIT_OK)
			status = trace_plan(trace, i, &named);
		file_list_free(&named);
	}
	return status;
}

/* Account for what is unreadable or cut in @count hits like @hit, and explain the first '?'. */
static void trace_account(struct trace *trace, const struct probe_hit *hit, uint64_t count)
{
	bool unknown = false;

	for (unsigned int i = 0; i < hit->probe->nfields; i++) {
		bool text = hit->probe->texts >> i & 1, unreadable = trace_unreadable(hit, i);

		trace->unreadable += text && unreadable ? count : 0;
		trace->unreadable_values += !text && unreadable ? count : 0;
		trace->cut += hit->texts[i].cut ? count : 0;
		unknown |= hit->probe->fields[i].type == REQUEST_UNKNOWN;
	}
	if (trace->explained || !(unknown || trace->unreadable_values))
		return;
	trace->explained = true;
	trace_report(trace, "?", "memory that was not present at the probe, a place that a probe "
				 "cannot read, or a division by 0",
		     "dbslower list -vv prints the places of arguments");
	output_flush(&trace->loop.err);
}

static void trace_hit(void *arg, const struct probe_hit *hit)
{
	struct trace *trace = arg;

	if (trace->loop.done)
		return;
	trace_show_hit(&trace->view, hit);
	trace_account(trace, hit, 1);
	loop_end_event(&trace->loop, true);
}

/* "dbslower: tracing 2 probes at 5 sites of 1 file (uprobe_multi)" */
static void trace_headline(struct trace *trace)
{
	struct output *err = &trace->loop.err;
	struct probe_trace_extent extent;

	probe_trace_extent(trace->probes, &extent);
	output_printf(err, "dbslower: tracing %u probe%s at %u site%s of %u file%s (%s)\n",
		      extent.probes, extent.probes == 1 ? "" : "s", extent.sites,
		      extent.sites == 1 ? "" : "s", extent.files, extent.files == 1 ? "" : "s",
		      extent.method);
	output_flush(err);
}

static void trace_skipped(void *arg, const struct error *error)
{
	struct trace *trace = arg;
	struct output *err = &trace->loop.err;

	output_string(err, "dbslower: ");
	escape_terminal(err, error->subject, strlen(error->subject), false);
	output_string(err, ": ");
	escape_terminal(err, error->detail, strlen(error->detail), false);
	output_string(err, "; skipped\n");
}

static int trace_open(struct trace *trace)
{
	const struct options *options = &trace->loop.options;
	struct probe_trace_config config = {
		.pids = options->pids, .npids = options->pid_count,
		.mode = trace_request_by_latency(&own) ? REQUEST_LATENCIES :
			own.histogram ? REQUEST_HISTOGRAM :
			own.count ? REQUEST_COUNT : REQUEST_SEND,
		.stacks = own.stacks, .latency = trace_request_latency(&own),
		.go_returns = options->go_returns,
		.pair = trace_request_latency(&own) && options->word_count == 2,
		.text_bytes = options->text_bytes, .denied = options->denied,
		.is_program = engine_is_executable, .stopped = loop_interrupted,
		.error = banner_error, .arg = trace, .hit = trace_hit, .skipped = trace_skipped,
	};
	struct error error = { .kind = ERROR_NONE };
	struct sandbox sandbox;
	int status = loop_ready(&trace->loop);

	if (status != EXIT_OK)
		return status;
	loop_json(&trace->loop);
	for (unsigned int i = 0; i < options->word_count; i++) {
		const struct probe_request *request = &trace->specs[i].request;
		unsigned int texts = (unsigned int)__builtin_popcount(request->texts);

		config.texts = texts > config.texts ? texts : config.texts;
	}
	if (probe_trace_open(&trace->probes, &config, &error))
		return trace_failed(trace, &error);
	status = trace_plans(trace);
	if (status != EXIT_OK)
		return status;
	if (probe_trace_check(trace->probes, &error) || probe_trace_attach(trace->probes, &error))
		return trace_failed(trace, &error);
	if (options->verbose)
		banner_features(&trace->loop, probe_trace_features(trace->probes));
	if (!options->keep_privileges) {
		/* The time zone file cannot be read later. */
		tzset();
		sandbox_enter(probe_trace_needs(trace->probes), &sandbox);
		banner_sandbox(&trace->loop, &sandbox);
	}
	if (trace->loop.interrupted)
		message_interrupted(&trace->loop.err);
	else
		trace_headline(trace);
	if (config.mode == REQUEST_SEND) {
		trace_show_header(&trace->view);
		output_flush(&trace->loop.out);
	}
	return EXIT_OK;
}

static int trace_drain(struct loop *loop)
{
	return probe_trace_drain(((struct trace *)loop)->probes);
}

static int trace_sleep(struct loop *loop)
{
	uint64_t now = loop_now(loop);

	if (loop->next_ns)
		loop->sleep_ms = loop->next_ns > now ?
				 (int)((loop->next_ns - now) / 1000000 % INT_MAX) + 1 : 1;
	return probe_trace_sleep(((struct trace *)loop)->probes);
}

static void trace_detach(struct loop *loop)
{
	probe_trace_detach(((struct trace *)loop)->probes);
}

/* Print the counts. Return 0 or -errno. */
static int trace_show(struct trace *trace)
{
	struct probe_trace_count *counts;
	ssize_t n = probe_trace_counts(trace->probes, &counts);

	if (n < 0)
		return (int)n;
	trace->view.wall_ns = clock_ns(CLOCK_REALTIME);
	loop_stamp(&trace->loop, trace->view.wall_ns);
	for (ssize_t i = 0; i < n; i++) {
		struct probe_hit hit;

		probe_trace_count_values(&counts[i], &hit);
		trace_account(trace, &hit, counts[i].count);
		if (counts[i].key.slot != HIT_UNKNOWN)
			trace->counted += counts[i].count;
	}
	if (own.histogram)
		trace_show_histograms(&trace->view, counts, (size_t)n);
	else
		trace_show_counts(&trace->view, counts, (size_t)n);
	free(counts);
	loop_count(&trace->loop);
	return output_flush(&trace->loop.out);
}

static int trace_tick(struct loop *loop)
{
	return loop_interval(loop) ? trace_show((struct trace *)loop) : 0;
}

static int trace_finish(struct loop *loop, int *err)
{
	if (!loop->done && trace_request_counts(&own))
		*err = trace_show((struct trace *)loop);
	return EXIT_OK;
}

static void trace_summary(struct loop *loop, struct summary *summary)
{
	struct trace *trace = (struct trace *)loop;
	struct probe_trace_summary probes;

	probe_trace_summary(trace->probes, &probes);
	*summary = (struct summary){
		.statements = probes.probes,
		.printed = trace_request_counts(&own) ? trace->counted : loop->counted,
		.lost = {
			[LOSS_RING_FULL] = probes.ring_full, [LOSS_TABLE_FULL] = probes.table_full,
			[LOSS_UNDECIDED] = probes.undecided,
			[LOSS_TEXT_UNREADABLE] = trace->unreadable,
			[LOSS_TEXT_TRUNCATED] = trace->cut,
			[LOSS_VALUE_UNREADABLE] = trace->unreadable_values,
		},
		.users = probes.users,
	};
}

static int trace_run(struct loop *loop)
{
	struct trace *trace = (struct trace *)loop;
	const struct options *options = &loop->options;
	int status = trace_request_read(&trace->loop, &own, trace->specs);

	trace->view = (struct trace_view){
		.out = &trace->loop.out, .specs = trace->specs, .json = options->json,
		.wall = options->wall, .latency = trace_request_latency(&own),
		.by_latency = trace_request_by_latency(&own),
		.stacks = own.stacks, .start_ns = trace->loop.start_ns,
	};
	if (status == EXIT_OK && trace_view_init(&trace->view, options->text_bytes))
		status = message_no_memory();
	if (status == EXIT_OK)
		status = trace_open(trace);
	if (status == EXIT_OK)
		status = loop_run(loop);
	output_flush(&loop->err);
	return status;
}

static void trace_close(struct loop *loop)
{
	struct trace *trace = (struct trace *)loop;

	probe_trace_close(trace->probes);
	for (unsigned int i = 0; i < OPTION_WORDS; i++)
		trace_spec_free(&trace->specs[i]);
	file_list_free(&trace->files);
	trace_view_free(&trace->view);
}

static const struct loop_ops trace_ops = {
	.size = sizeof(struct trace), .noun = "hits", .losses = LOSSES_OF_TEXTS | LOSSES_OF_VALUES,
	.report = LOOP_REPORT_EVENTS,
	.run = trace_run, .close = trace_close, .drain = trace_drain, .sleep = trace_sleep,
	.tick = trace_tick, .detach = trace_detach, .finish = trace_finish,
	.summary = trace_summary,
};

static const struct option_row option_pid_trace = {
	.letter = 'p', .name = "pid", .arg = "PID[,...]",
	.help = "only these processes, and children of main ones",
	.accepts = "expected a number from 1 to 4194304; separate several by commas, or repeat -p",
	.set = option_set_pid, .complete = option_complete_pids,
};

static const struct option_row option_max = {
	.letter = 'n', .name = "max", .arg = "COUNT",
	.help = "stop after this many hits, or intervals with -i",
	.accepts = "expected a whole number",
	.set = option_set_number, .member = offsetof(struct options, count),
};

static const struct option_row option_ret = {
	.name = "ret",
	.help = "trace returns of functions instead of calls",
	OPTION_OWN(own.on_return),
};

static int set_registers(struct option_parser *p, const struct option_row *row, const char *value)
{
	uint64_t number;

	if (option_read_number(value, strlen(value), &number) || !number ||
	    number > REQUEST_REGISTERS)
		return option_refuse(p, row, value, "not a number of arguments");
	own.registers = (unsigned int)number;
	return 0;
}

static const struct option_row option_args = {
	.name = "args", .arg = "N",
	.help = "print the first N arguments of functions",
	.accepts = "expected a number from 1 to 6",
	.set = set_registers, OPTION_OWN(own.registers),
};

static const struct option_row option_count_hits = {
	.name = "count",
	.help = "print only the number of hits, by the values if any",
	OPTION_OWN(own.count),
};

static int set_histogram(struct option_parser *p, const struct option_row *row, const char *value)
{
	if (!*value)
		return option_refuse(p, row, value, "must not be empty");
	own.histogram = value;
	return 0;
}

static const struct option_row option_hist = {
	.name = "hist", .arg = "VALUE",
	.help = "print only histograms of this value, by the others",
	.accepts = "expected a value such as arg1 or (int)retval, or latency",
	.set = set_histogram, OPTION_OWN(own.histogram),
};

static const struct option_row option_latency = {
	.name = "latency",
	.help = "print the time to the return, or to a second probe",
	OPTION_OWN(own.latency),
};

static const struct option_row option_stack = {
	.letter = 'U', .name = "user-stack",
	.help = "print the user stack of each hit, by frame pointers",
	OPTION_OWN(own.stacks),
};

static const struct option_row option_text_strings = {
	.name = "text", .arg = "BYTES",
	.help = "maximum length of a string (default 256)",
	.accepts = "expected bytes from 16 to 1048576, or a number of KiB: 4096, 64k",
	.set = option_set_text,
};

static const struct option_row option_wall_trace = {
	.letter = 'T', .name = "wall",
	.help = "print the time of day, not seconds since the start",
	.member = offsetof(struct options, wall),
};

static const struct option_row *const trace_rows[] = {
	&option_lib, &option_pid_trace, &option_duration, &option_interval, &option_max,
	&option_ret, &option_args, &option_count_hits, &option_hist, &option_latency,
	&option_text_strings, &option_wall_trace, &option_stack, &option_json, &option_strict,
	&option_keep_privileges, &option_force, &option_verbose, &option_help,
	&option_version, NULL
};

static bool count_with_histogram(const struct options *opts)
{
	(void)opts;
	return own.count && own.histogram;
}

static bool no_probe(const struct options *opts)
{
	return !opts->word_count;
}

static bool intervals_of_nothing(const struct options *opts)
{
	return opts->count && !opts->interval_ns && trace_request_counts(&own);
}

static bool stacks_of_counts(const struct options *opts)
{
	(void)opts;
	return own.stacks && trace_request_counts(&own);
}

static bool latency_of_many(const struct options *opts)
{
	return trace_request_latency(&own) && opts->word_count > 2;
}

static bool interval_without_counts(const struct options *opts)
{
	return opts->interval_ns && !trace_request_counts(&own);
}

static const struct option_rule rule_count = {
	count_with_histogram, "--count", "cannot be combined with --hist", "omit one of them",
};

static const struct option_rule rule_probe = {
	no_probe, "PROBE", "missing",
	"specify PROVIDER:PROBE or a function; dbslower list PATH prints the USDT probes of a file",
};

static const struct option_rule rule_intervals = {
	intervals_of_nothing, "-n",
	"counts intervals with --count or --hist, which print no hits",
	"specify -i SECONDS, or use -d",
};

static const struct option_rule rule_stacks = {
	stacks_of_counts, "-U", "cannot be combined with --count or --hist, which print no hits",
	"omit one of them",
};

static const struct option_rule rule_latency = {
	latency_of_many, "--latency", "too many probes", "specify a function, or two probes",
};

static const struct option_rule rule_interval = {
	interval_without_counts, "-i", "requires --count or --hist",
	"hits are printed as they occur",
};

static const struct option_rule *const trace_rules[] = {
	&rule_count, &rule_probe, &rule_intervals, &rule_stacks, &rule_latency, &rule_interval,
	NULL
};

const struct command command_trace = {
	.name = "trace",
	.summary = "print hits of any USDT probe or function of any program",
	.invocation = "dbslower trace",
	.usage = "[PATH | -l LIB | -p PID] [OPTION...] PROBE...",
	.about =
	"Print the hits of USDT probes and functions. PROBE is PROVIDER:PROBE, a name or\n"
	"a glob in the specified files; or FILE:PROVIDER:PROBE or FILE:FUNCTION. A prefix\n"
	"selects the kind: u: (USDT), p: (function) or r: (return of a function). A\n"
	"filter and the values to print may follow in the same argument: a printf format\n"
	"with values, or values separated by commas. The default is to print all\n"
	"arguments of a USDT probe. Of Go programs, only calls are traced: a return probe\n"
	"can end them, which --force=go-returns accepts.\n",
	.examples =
	"  dbslower trace ./app test-app:test-probe\n"
	"  dbslower trace -l c setjmp                in the library libc.so.6\n"
	"  dbslower trace -p 1234 '*:query*start'    in any file of the process\n"
	"  dbslower trace 'u:./app:shop:order (arg1 > 10) \"%d %s\", arg1, arg2'\n"
	"  dbslower trace './app:work (arg1 == \"x\" || arg2 != 0) arg1:s, arg2'\n"
	"  dbslower trace --ret /bin/bash 'readline \"%s\", retval'\n"
	"  dbslower trace -p 1234 'method__entry \"%.*s\", arg3, arg2'  a length, no NUL\n"
	"  dbslower trace --count 'c:getenv comm, arg1:s'  counts by thread and argument\n"
	"  dbslower trace --hist arg3 -d 10 c:write  histogram of the third argument\n"
	"  dbslower trace --hist latency c:fsync     histogram of the calls' durations\n"
	COMMAND_EXIT_STATUS,
	.words = WORDS_PROBES,
	.text_bytes = 256,
	.options = trace_rows,
	.rules = trace_rules,
	.loop = &trace_ops,
	.run = loop_command,
};
