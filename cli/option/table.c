// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/option/table.h"

#include <stddef.h>

#include "base/base.h"
#include "cli/option/set.h"

const struct option_row option_min = {
	.letter = 'm', .name = "min", .arg = "MS",
	.help = "same as THRESHOLD; 0 selects all statements",
	.accepts = OPTION_DURATIONS,
	.set = option_set_minimum,
};

/* As bcc's dbslower spells it. */
const struct option_row option_threshold = {
	.name = "threshold", .arg = "MS",
	.accepts = OPTION_DURATIONS,
	.set = option_set_minimum,
};

const struct option_row option_pid = {
	.letter = 'p', .name = "pid", .arg = "PID[,...]",
	.help = "only these processes; for a postmaster, its backends",
	.accepts = "expected a number from 1 to 4194304; separate several by commas, or repeat -p",
	.set = option_set_pid, .complete = option_complete_pids,
	.live = true,
};

const struct option_row option_path = {
	.letter = 'x', .name = "path", .arg = "PATH",
	.help = "only this server binary; may be repeated",
	.accepts = "expected the path of a server binary",
	.set = option_set_path, .complete = option_complete_files,
	.live = true,
};

/* As bcc's dbslower spells it. */
const struct option_row option_exe = {
	.name = "exe", .arg = "PATH",
	.accepts = "expected the path of a server binary",
	.set = option_set_path, .complete = option_complete_files,
	.live = true,
};

const struct option_row option_lib = {
	.letter = 'l', .name = "lib", .arg = "LIB",
	.help = "search this library or file: c, libc.so.6, /path",
	.accepts = "expected a path, or a short library name such as c for libc.so.6",
	.set = option_set_path, .complete = option_complete_files,
};

const struct option_row option_duration = {
	.letter = 'd', .name = "duration", .arg = "SECONDS",
	.help = "stop after this time; other units: 500ms, 10m, 1h",
	.accepts = OPTION_SECONDS,
	.set = option_set_time, .member = offsetof(struct options, duration_ns),
	.live = true,
};

const struct option_row option_interval = {
	.letter = 'i', .name = "interval", .arg = "SECONDS",
	.help = "print at this interval",
	.accepts = OPTION_SECONDS,
	.set = option_set_time, .member = offsetof(struct options, interval_ns),
};

const struct option_row option_count_intervals = {
	.letter = 'n', .name = "count", .arg = "COUNT",
	.help = "stop after this many intervals",
	.accepts = "expected a whole number",
	.set = option_set_number, .member = offsetof(struct options, count),
};

const struct option_row option_start = {
	.name = "start", .arg = "PROBE",
	.help = "with -x: USDT probe at the start of a statement",
	.accepts = "expected PROVIDER:NAME, such as memsqld:query__start",
	.set = option_set_probe,
	.live = true,
};

const struct option_row option_done = {
	.name = "done", .arg = "PROBE",
	.help = "with -x: USDT probe at the end of a statement",
	.accepts = "expected PROVIDER:NAME, such as memsqld:query__done",
	.set = option_set_probe,
	.live = true,
};

const struct option_row option_text_arg = {
	.name = "text-arg", .arg = "N",
	.help = "text argument of the start probe (default 1)",
	.accepts = "expected a number from 1 to 12",
	.set = option_set_text_arg,
	.live = true,
};

const struct option_row option_engine = {
	.name = "engine", .arg = "NAME",
	.help = "only servers of this kind, as the operand",
	.accepts = "specify one, or none for all running servers",
	.set = option_set_engine, .complete = option_engine_words,
};

const struct option_row option_user = {
	.name = "user", .arg = "NAME",
	.help = "only those of this database user",
	.accepts = "expected the name of a database user",
	.set = option_set_string, .member = offsetof(struct options, user),
};

const struct option_row option_db = {
	.name = "db", .arg = "NAME",
	.help = "only those in this database",
	.accepts = "expected the name of a database",
	.set = option_set_string, .member = offsetof(struct options, database),
};

const struct option_row option_client = {
	.name = "client", .arg = "HOST",
	.help = "only those from this host or address",
	.accepts = "expected a host or address, such as 10.0.0.7, or [local]",
	.set = option_set_word, .member = offsetof(struct options, client),
};

const struct option_row option_app = {
	.name = "app", .arg = "NAME",
	.help = "only those of this application",
	.accepts = "expected an application_name",
	.set = option_set_string, .member = offsetof(struct options, application),
};

const struct option_row option_backend = {
	.name = "backend", .arg = "KIND",
	.help = "only of sessions of this kind, such as client",
	.accepts = "expected what a session serves, such as client or 'autovacuum worker'",
	.set = option_set_string, .member = offsetof(struct options, backend),
};

const struct option_row option_match = {
	.name = "match", .arg = "TEXT|/REGEX/",
	.help = "only if the text matches, ignoring case",
	.accepts = "expected a part of a statement, or an extended regular expression such as "
		   "/from (a|b)/; upper and lower case are equal",
	.set = option_set_match,
};

const struct option_row option_container = {
	.name = "container", .arg = "ID",
	.help = "only servers in this container",
	.accepts = "expected the id of a container, its first digits, or its name",
	.set = option_set_word, .member = offsetof(struct options, container),
};

const struct option_row option_text = {
	.name = "text", .arg = "BYTES",
	.help = "maximum length of a statement's text (default 4k)",
	.accepts = "expected bytes from 16 to 1048576, or a number of KiB or MiB: 4096, 64k, 1M",
	.set = option_set_text,
	.live = true,
};

const struct option_row option_redact = {
	.name = "redact",
	.help = "replace literals and comments in statements by ?",
	.member = offsetof(struct options, redact),
};

const struct option_row option_wall = {
	.letter = 't', .name = "wall",
	.help = "print the time of day, not seconds since the start",
	.member = offsetof(struct options, wall),
};

const struct option_row option_why = {
	.name = "why",
	.help = "print a time breakdown of each statement",
	.member = offsetof(struct options, why),
};

const struct option_row option_use = {
	.name = "use",
	.help = "print resource usage: storage, memory, buffers, WAL",
	.member = offsetof(struct options, use),
};

const struct option_row option_nested = {
	.name = "nested",
	.help = "also statements in routines and triggers (mysql)",
	.member = offsetof(struct options, nested),
};

const struct option_row option_json = {
	.name = "json",
	.help = "print one JSON object per line, with all fields",
	.member = offsetof(struct options, json),
};

const struct option_row option_strict = {
	.name = "strict",
	.help = "exit with status 1 if anything was lost",
	.member = offsetof(struct options, strict),
};

const struct option_row option_keep_privileges = {
	.name = "keep-privileges",
	.help = "do not drop privileges after attaching",
	.member = offsetof(struct options, keep_privileges),
	.live = true,
};

const struct option_row option_max_overhead = {
	.name = "max-overhead", .arg = "N%[/S]",
	.help = "trace less while tracing takes more of a CPU",
	.accepts = "expected a percentage of one CPU, such as 1% or 0.5%, and optionally for how "
		   "long it may be exceeded: 1%/10",
	.set = option_set_overhead,
	.live = true,
};

static int set_sample(struct option_parser *p, const struct option_row *row, const char *value)
{
	uint64_t *ns = option_target(p, row);
	const char *why;

	if (option_read_duration(value, NS_PER_MS, ns, &why))
		return option_refuse(p, row, value, why);
	return *ns >= NS_PER_MS && *ns <= 60 * NS_PER_S ? 0 :
	       option_refuse(p, row, value, "not from 1 ms to 60 s");
}

const struct option_row option_sample = {
	.name = "sample", .arg = "INTERVAL",
	.help = "no probes: read sessions from memory, as every 10ms",
	.accepts = "expected how often sessions are read, such as 10ms or 1s",
	.set = set_sample, .member = offsetof(struct options, sample_ns),
	.live = true,
};

const struct option_row option_force = {
	.name = "force", .arg = "NAME[,...]",
	.accepts = "expected names of fallbacks, separated by commas",
	.set = option_set_force,
	.live = true,
};

const struct option_row option_verbose = {
	.letter = 'v', .name = "verbose",
	.help = "print kernel features, privileges, absent arguments",
	.set = option_set_verbose,
	.live = true,
};

const struct option_row option_help = {
	.letter = 'h', .name = "help",
	.help = "print this help",
	.member = offsetof(struct options, help),
};

const struct option_row option_version = {
	.letter = 'V', .name = "version",
	.help = "print the version",
	.member = offsetof(struct options, version),
};

static bool json_columns(const struct options *opts)
{
	return opts->json && opts->columns.count;
}

const struct option_rule rule_json_columns = {
	json_columns, "-o", "cannot be combined with --json, which prints all fields",
	"omit one of them",
};

static bool has_both_probes(const struct options *opts)
{
	return opts->start && opts->done && (opts->path_count || opts->pid_count);
}

static bool start_alone(const struct options *opts)
{
	return opts->start && !has_both_probes(opts);
}

static bool done_alone(const struct options *opts)
{
	return opts->done && !has_both_probes(opts);
}

static bool text_arg_alone(const struct options *opts)
{
	return opts->text_arg && !opts->start;
}

static bool start_with_engine(const struct options *opts)
{
	return opts->start && opts->engine;
}

#define BOTH_PROBES	"specify --start, --done and -x PATH"

const struct option_rule rule_start = {
	start_alone, "--start", "requires --done and one of -x, -p", BOTH_PROBES,
};

const struct option_rule rule_done = {
	done_alone, "--done", "requires --start and one of -x, -p", BOTH_PROBES,
};

const struct option_rule rule_text_arg = {
	text_arg_alone, "--text-arg", "requires --start and --done", BOTH_PROBES,
};

const struct option_rule rule_start_engine = {
	start_with_engine, "--start", "cannot be combined with a database",
	"omit the name of the database",
};

static bool sample_with_measures(const struct options *opts)
{
	return opts->sample_ns && (opts->why || opts->use || opts->phases || opts->nested ||
				   opts->max_overhead);
}

static bool sample_with_probes(const struct options *opts)
{
	return opts->sample_ns && opts->start;
}

const struct option_rule rule_sample = {
	sample_with_measures, "--sample",
	"cannot be combined with --why, --use, --phases, --nested or --max-overhead, which are of "
	"probes",
	"omit one of them",
};

const struct option_rule rule_sample_probes = {
	sample_with_probes, "--sample", "cannot be combined with --start, which is of probes",
	"omit one of them",
};

static bool count_without_interval(const struct options *opts)
{
	return opts->count && !opts->interval_ns;
}

const struct option_rule rule_count_intervals = {
	count_without_interval, "-n", "counts intervals and requires -i", "specify -i SECONDS",
};
