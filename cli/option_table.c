// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/option_table.h"

#include <stddef.h>

#include "cli/option_set.h"

const struct option_row option_min = {
	.letter = 'm', .name = "min", .arg = "MS",
	.help = "the threshold, as the word; 0 is all statements",
	.accepts = OPTION_DURATIONS,
	.set = option_set_minimum,
};

const struct option_row option_pid = {
	.letter = 'p', .name = "pid", .arg = "PID[,...]",
	.help = "only these processes; of a postmaster, its backends",
	.accepts = "give a number from 1 to 4194304, several with commas or several -p",
	.set = option_set_pid, .complete = option_complete_pids,
};

const struct option_row option_path = {
	.letter = 'x', .name = "path", .arg = "PATH",
	.help = "trace this server binary; may be repeated",
	.accepts = "give the path of a server's binary",
	.set = option_set_path, .complete = option_complete_files,
};

const struct option_row option_lib = {
	.letter = 'l', .name = "lib", .arg = "LIB",
	.help = "of this library or file: c, libc.so.6, /path",
	.accepts = "give a path, or a library's short name, as c for libc.so.6",
	.set = option_set_path, .complete = option_complete_files,
};

const struct option_row option_duration = {
	.letter = 'd', .name = "duration", .arg = "SECONDS",
	.help = "end after this time (decimals, or a unit: 500ms)",
	.accepts = "give a number of seconds, or one with a unit (ns, us, ms, s): 10, 0.5, 500ms",
	.set = option_set_duration,
};

const struct option_row option_interval = {
	.letter = 'i', .name = "interval", .arg = "SECONDS",
	.help = "print each time so long has gone by",
	.accepts = "give a number of seconds, or one with a unit (ns, us, ms, s): 10, 0.5, 500ms",
	.set = option_set_interval,
};

const struct option_row option_count_intervals = {
	.letter = 'n', .name = "count", .arg = "COUNT",
	.help = "end after this many intervals",
	.accepts = "give a whole number from 1",
	.set = option_set_count,
};

const struct option_row option_start = {
	.name = "start", .arg = "PROBE",
	.help = "with -x: the USDT probe where a statement starts",
	.accepts = "give PROVIDER:NAME, as memsqld:query__start",
	.set = option_set_probe,
};

const struct option_row option_done = {
	.name = "done", .arg = "PROBE",
	.help = "with -x: the one where it is done",
	.accepts = "give PROVIDER:NAME, as memsqld:query__done",
	.set = option_set_probe,
};

const struct option_row option_text_arg = {
	.name = "text-arg", .arg = "N",
	.help = "which argument of the start is the text (default 1)",
	.accepts = "give a number from 1 to 12",
	.set = option_set_text_arg,
};

const struct option_row option_user = {
	.name = "user", .arg = "NAME",
	.help = "only statements of this database user",
	.set = option_set_string, .member = offsetof(struct options, user),
};

const struct option_row option_db = {
	.name = "db", .arg = "NAME",
	.help = "only statements in this database",
	.set = option_set_string, .member = offsetof(struct options, database),
};

const struct option_row option_match = {
	.name = "match", .arg = "TEXT|/REGEX/",
	.help = "only statements that have this in their text",
	.accepts = "give a piece of a statement, or an extended regular expression as /from "
		   "(a|b)/; upper and lower case are the same",
	.set = option_set_match,
};

const struct option_row option_container = {
	.name = "container", .arg = "ID",
	.help = "only servers in this container",
	.accepts = "give a container's id or its beginning, or its name",
	.set = option_set_word, .member = offsetof(struct options, container),
};

const struct option_row option_text = {
	.name = "text", .arg = "BYTES",
	.help = "show so much of a statement (default 4096 = 4k)",
	.accepts = "give a number of bytes from 16 to 1048576, k is 1024: 4096, 64k",
	.set = option_set_text,
};

const struct option_row option_redact = {
	.name = "redact",
	.help = "show a ? for each literal and comment in statements",
	.member = offsetof(struct options, redact),
};

const struct option_row option_wall = {
	.letter = 't', .name = "wall",
	.help = "show the time of day, not seconds since the start",
	.member = offsetof(struct options, wall),
};

const struct option_row option_why = {
	.name = "why",
	.help = "print where each statement's time went",
	.member = offsetof(struct options, why),
};

const struct option_row option_use = {
	.name = "use",
	.help = "print what it used: storage, memory, buffers, WAL",
	.member = offsetof(struct options, use),
};

const struct option_row option_json = {
	.name = "json",
	.help = "print a JSON object a line, with all that is known",
	.member = offsetof(struct options, json),
};

const struct option_row option_strict = {
	.name = "strict",
	.help = "exit with status 1 if anything was lost",
	.member = offsetof(struct options, strict),
};

const struct option_row option_keep_privileges = {
	.name = "keep-privileges",
	.help = "keep all privileges after attaching",
	.member = offsetof(struct options, keep_privileges),
};

const struct option_row option_force = {
	.name = "force", .arg = "NAME[,...]",
	.set = option_set_force,
};

const struct option_row option_verbose = {
	.letter = 'v', .name = "verbose",
	.help = "print the BPF programs, as a disassembly",
	.set = option_set_verbose,
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
