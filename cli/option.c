/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/option.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cli/escape.h"
#include "loader/feature.h"
#include "probe/request.h"
#include "db/engines.h"
#include "db/user_engine.h"
#include "db/breakdown.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define PID_LIMIT 4194304	/* the kernel's PID_MAX_LIMIT */
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull
#define HELP_COLUMN 28

struct parse {
	const struct command *command;
	struct options *opts;
	struct output *err;
	const char *threshold;		/* as it was given: as a word .. */
	bool minimum;			/* .. or by -m */
};

struct option_row {
	unsigned int commands;		/* those that have it, bits */
	char letter;			/* 0: none */
	const char *name;
	const char *arg;		/* NULL: takes none */
	const char *help;		/* NULL: not listed by --help */
	const char *accepts;		/* what a good argument is */
	int (*set)(struct parse *p, const struct option_row *row, const char *value);
	size_t flag;			/* where in struct options it goes: a bool, without @set */
};

static const char duration_forms[] =
	"give a number of ms, or one with a unit (ns, us, ms, s): 30, 0.25, 250us, 1s";
static const char word_forms[] =
	"databases are mysql (or mariadb) and postgres (or postgresql, pg), "
	"thresholds 30, 0.25, 250us, 1s";

/* Starts an error: `dbslower: ` and the option and its value, or what there is of them. */
static void begin_error(struct parse *p, const struct option_row *row, const char *value,
			size_t len)
{
	output_string(p->err, "dbslower: ");
	if (row && row->letter) {
		output_char(p->err, '-');
		output_char(p->err, row->letter);
	} else if (row) {
		output_string(p->err, "--");
		output_string(p->err, row->name);
	}
	if (row && value)
		output_char(p->err, ' ');
	if (value && !len)
		output_string(p->err, "''");
	else if (value)
		escape_terminal(p->err, value, len, false);
	output_string(p->err, ": ");
}

static int end_error(struct parse *p, const char *why, const char *accepts)
{
	output_string(p->err, why);
	if (accepts) {
		output_string(p->err, "; ");
		output_string(p->err, accepts);
	}
	output_char(p->err, '\n');
	return -EINVAL;
}

/* Refuses the value of an option (or, without @row, a word) for reason @why. */
static int refuse(struct parse *p, const struct option_row *row, const char *value, const char *why)
{
	begin_error(p, row, value, value ? strlen(value) : 0);
	return end_error(p, why, row ? row->accepts : NULL);
}

/* Decimal digits only. Returns 0, -EINVAL or -ERANGE. */
static int parse_number(const char *text, size_t len, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
	}
	for (size_t i = 0; i < len; i++) {
		unsigned int digit = text[i] - '0';

		if (*value > (UINT64_MAX - digit) / 10)
			return -ERANGE;
		*value = *value * 10 + digit;
	}
	return len ? 0 : -EINVAL;
}

/* Returns the nanoseconds of a unit by name, 0 if there is no such unit. */
static uint64_t unit_by_name(const char *name, uint64_t unit_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", NS_PER_MS }, { "s", NS_PER_S } };

	if (!*name)
		return unit_ns;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!strcmp(name, units[i].name))
			return units[i].ns;
	}
	return 0;
}

static const char *duration_reason(const char *text, uint64_t unit_ns, uint64_t *ns)
{
	size_t whole = strspn(text, "0123456789");
	const char *decimal = text[whole] == '.' ? text + whole + 1 : text + whole;
	size_t decimals = text[whole] == '.' ? strspn(decimal, "0123456789") : 0;
	uint64_t unit = unit_by_name(decimal + decimals, unit_ns), value = 0;

	if (*text == '-')
		return "is negative";
	if (!whole && !decimals)
		return "is not a number";
	if ((text[whole] == '.' && !decimals) || !unit)
		return "is not a number with a known unit";
	if (whole && parse_number(text, whole, &value))
		return "is too large";
	if (value > INT64_MAX / unit)
		return "is too large";
	value *= unit;
	for (size_t i = 0; i < decimals; i++) {
		unit /= 10;
		if (!unit && decimal[i] != '0')
			return "is finer than 1 ns";
		value += unit * (decimal[i] - '0');
	}
	if (value > INT64_MAX)
		return "is too large";
	*ns = value;
	return NULL;
}

int option_duration(const char *text, uint64_t unit_ns, uint64_t *ns, const char **why)
{
	*why = duration_reason(text, unit_ns, ns);
	return *why ? -EINVAL : 0;
}

static int add_pid(struct parse *p, const struct option_row *row, const char *text, size_t len)
{
	struct options *opts = p->opts;
	uint64_t pid;

	if (parse_number(text, len, &pid) || !pid || pid > PID_LIMIT) {
		begin_error(p, row, text, len);
		return end_error(p, "is not a process ID", row->accepts);
	}
	for (unsigned int i = 0; i < opts->pid_count; i++) {
		if (opts->pids[i] == pid)
			return 0;
	}
	if (opts->pid_count == OPTION_PIDS) {
		begin_error(p, row, text, len);
		output_printf(p->err, "is one too many; at most %d processes", OPTION_PIDS);
		return end_error(p, " can be named", NULL);
	}
	opts->pids[opts->pid_count++] = pid;
	return 0;
}

static int set_pid(struct parse *p, const struct option_row *row, const char *value)
{
	for (;;) {
		size_t len = strcspn(value, ",");
		int err = add_pid(p, row, value, len);

		if (err || !value[len])
			return err;
		value += len + 1;
	}
}

/* Adds a file that was named by option @row, or by a word without one. */
static int add_path(struct parse *p, const struct option_row *row, const char *value)
{
	if (p->opts->path_count == OPTION_PATHS) {
		begin_error(p, row, value, strlen(value));
		output_printf(p->err, "is one too many; at most %d files", OPTION_PATHS);
		return end_error(p, " can be named", NULL);
	}
	p->opts->paths[p->opts->path_count++] = value;
	return 0;
}

static int set_path(struct parse *p, const struct option_row *row, const char *value)
{
	return *value ? add_path(p, row, value) : refuse(p, row, value, "is empty");
}

/* The threshold as a word and by -m: which one counts would be a guess. */
static int refuse_two_thresholds(struct parse *p)
{
	begin_error(p, NULL, p->threshold, strlen(p->threshold));
	return end_error(p, "is a second threshold", "give it as a word or with -m, not both");
}

static int set_minimum(struct parse *p, const struct option_row *row, const char *value)
{
	const char *why;

	if (option_duration(value, NS_PER_MS, &p->opts->threshold_ns, &why))
		return refuse(p, row, value, why);
	p->minimum = true;
	return p->threshold ? refuse_two_thresholds(p) : 0;
}

/* Options whose argument is taken as it is. */
static int set_string(struct parse *p, const struct option_row *row, const char *value)
{
	*(const char **)((char *)p->opts + row->flag) = value;
	return 0;
}

static int set_word(struct parse *p, const struct option_row *row, const char *value)
{
	return *value ? set_string(p, row, value) : refuse(p, row, value, "is empty");
}

/* A probe's name, PROVIDER:NAME. */
static int set_probe(struct parse *p, const struct option_row *row, const char *value)
{
	const char *colon = strchr(value, ':');

	if (!colon || colon == value || !colon[1])
		return refuse(p, row, value, "is no probe's name");
	if (colon - value >= USER_ENGINE_NAME || strlen(colon + 1) >= USER_ENGINE_NAME)
		return refuse(p, row, value, "is too long a name");
	*(row->name[0] == 's' ? &p->opts->start : &p->opts->done) = value;
	return 0;
}

static int set_text_arg(struct parse *p, const struct option_row *row, const char *value)
{
	uint64_t number;

	if (parse_number(value, strlen(value), &number) || !number || number > 12)
		return refuse(p, row, value, "is no argument's number");
	p->opts->text_arg = (unsigned int)number;
	return 0;
}

static int set_match(struct parse *p, const struct option_row *row, const char *value)
{
	size_t at;
	int err;

	if (!*value)
		return refuse(p, row, value, "is empty");
	err = regex_parse(&p->opts->match, value, &at);
	if (err == -E2BIG)
		return refuse(p, row, value, "is too long a regular expression");
	if (err)
		return refuse(p, row, value, "is no regular expression");
	p->opts->has_match = true;
	return 0;
}

static int set_verbose(struct parse *p, const struct option_row *row, const char *value)
{
	(void)row;
	(void)value;
	p->opts->verbose++;
	return 0;
}

static int set_duration(struct parse *p, const struct option_row *row, const char *value)
{
	const char *why;

	if (option_duration(value, NS_PER_S, &p->opts->duration_ns, &why))
		return refuse(p, row, value, why);
	return p->opts->duration_ns ? 0 : refuse(p, row, value, "is no time at all");
}

static int set_interval(struct parse *p, const struct option_row *row, const char *value)
{
	const char *why;

	if (option_duration(value, NS_PER_S, &p->opts->interval_ns, &why))
		return refuse(p, row, value, why);
	return p->opts->interval_ns ? 0 : refuse(p, row, value, "is no time at all");
}

static const char *const by_names[] = {
	[STAT_BY_ALL] = NULL,
	[STAT_BY_COMMAND] = "command",
	[STAT_BY_STATUS] = "status",
	[STAT_BY_DATABASE] = "db",
	[STAT_BY_USER] = "user",
};

const char *option_by_name(enum stat_by by)
{
	return by_names[by];
}

static int set_by(struct parse *p, const struct option_row *row, const char *value)
{
	for (size_t i = STAT_BY_ALL + 1; i < ARRAY_SIZE(by_names); i++) {
		if (strcmp(value, by_names[i]))
			continue;
		p->opts->stat_by = (enum stat_by)i;
		return 0;
	}
	return refuse(p, row, value, "is nothing to count by");
}

static int set_wait(struct parse *p, const struct option_row *row, const char *value)
{
	if (breakdown_by_name(value, &p->opts->wait_part, &p->opts->wait_call))
		return refuse(p, row, value, "is nothing that is known to be waited in");
	p->opts->wait = value;
	return 0;
}

static int set_order(struct parse *p, const struct option_row *row, const char *value)
{
	static const char *const names[] = {
		[TOP_TOTAL] = "total", [TOP_CALLS] = "calls", [TOP_MEAN] = "mean",
		[TOP_P95] = "p95", [TOP_P99] = "p99", [TOP_MAX] = "max",
		[TOP_ROWS] = "rows", [TOP_ERRORS] = "errors",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(value, names[i]))
			continue;
		p->opts->order = (enum top_order)i;
		return 0;
	}
	for (int i = 0; i < BREAKDOWN_PARTS; i++) {
		if (strcmp(value, breakdown_part_name((enum breakdown_part)i)))
			continue;
		p->opts->order = (enum top_order)(TOP_PART + i);
		p->opts->why = true;
		return 0;
	}
	for (int i = 0; i < USES; i++) {
		if (strcmp(value, breakdown_use_name((enum use)i)))
			continue;
		p->opts->order = (enum top_order)(TOP_USE + i);
		p->opts->use = true;
		return 0;
	}
	return refuse(p, row, value, "is nothing to sort by");
}

static int set_lines(struct parse *p, const struct option_row *row, const char *value)
{
	if (parse_number(value, strlen(value), &p->opts->lines) || !p->opts->lines)
		return refuse(p, row, value, "is not a number of lines");
	return 0;
}

static int set_registers(struct parse *p, const struct option_row *row, const char *value)
{
	uint64_t number;

	if (parse_number(value, strlen(value), &number) || !number || number > REQUEST_REGISTERS)
		return refuse(p, row, value, "is not a number of arguments");
	p->opts->registers = (unsigned int)number;
	return 0;
}

static int set_histogram(struct parse *p, const struct option_row *row, const char *value)
{
	if (!*value)
		return refuse(p, row, value, "is empty");
	p->opts->histogram = value;
	return 0;
}

static int set_count(struct parse *p, const struct option_row *row, const char *value)
{
	int err = parse_number(value, strlen(value), &p->opts->count);

	if (err)
		return refuse(p, row, value, err == -ERANGE ? "is too large" : "is not a number");
	return p->opts->count ? 0 : refuse(p, row, value, "is none at all");
}

static int set_text(struct parse *p, const struct option_row *row, const char *value)
{
	size_t len = strlen(value);
	bool kilo = len && (value[len - 1] == 'k' || value[len - 1] == 'K');
	uint64_t unit = kilo ? 1024 : 1, bytes;
	int err = parse_number(value, len - kilo, &bytes);

	if (err == -EINVAL)
		return refuse(p, row, value, "is not a number of bytes");
	if (err || bytes > OPTION_TEXT_MAX / unit)
		return refuse(p, row, value, "is too large");
	if (bytes * unit < OPTION_TEXT_MIN)
		return refuse(p, row, value, "is too small");
	p->opts->text_bytes = bytes * unit;
	return 0;
}

/* Words of --force: each names a fallback. */
static int set_force(struct parse *p, const struct option_row *row, const char *value)
{
	const char *before = "";
	size_t len;

	for (;; value += len + 1) {
		len = strcspn(value, ",");
		if (feature_force(value, len, &p->opts->denied))
			break;
		if (!value[len])
			return 0;
	}
	begin_error(p, row, value, len);
	output_string(p->err, "unknown fallback; must be one of ");
	for (int i = 0; i < FEATURES; i++) {
		if (!feature_fallback(i))
			continue;
		output_printf(p->err, "%s%s", before, feature_fallback(i));
		before = ", ";
	}
	return end_error(p, "", NULL);
}

static int set_columns(struct parse *p, const struct option_row *row, const char *value)
{
	const char *bad;
	size_t bad_len;
	int err = field_parse(&p->opts->columns, value, &bad, &bad_len);

	if (!err)
		return 0;
	begin_error(p, row, bad, bad_len);
	if (err == -E2BIG) {
		output_printf(p->err, "is one too many; at most %d columns", FIELD_LIST_MAX);
		return end_error(p, " fit", NULL);
	}
	output_string(p->err, err == -ENOENT ? "is not a column" : "a column's name is missing");
	output_string(p->err, "; the columns are ");
	field_names(p->err);
	return end_error(p, "", NULL);
}

#define SLOW	COMMAND_SLOW
#define STAT	COMMAND_STAT
#define TOP	COMMAND_TOP
#define LIST	COMMAND_LIST
#define TRACE	COMMAND_TRACE
#define DOCTOR	COMMAND_DOCTOR
#define LOCKS	COMMAND_LOCKS
#define ALL	(~0u)

static const struct option_row rows[] = {
	{ SLOW | STAT | TOP, 'm', "min", "MS", "the threshold, as the word; 0 is all statements",
	  duration_forms, set_minimum, 0 },
	{ LOCKS, 'm', "min", "MS", "the threshold, as the word; 0 is all waits",
	  duration_forms, set_minimum, 0 },
	{ SLOW | STAT | TOP | LOCKS, 'p', "pid", "PID[,...]",
	  "only these processes; of a postmaster, its backends",
	  "give a number from 1 to 4194304, several with commas or several -p", set_pid, 0 },
	{ SLOW | STAT | TOP | LOCKS, 'x', "path", "PATH",
	  "trace this server binary; may be repeated",
	  "give the path of a server's binary", set_path, 0 },
	{ LIST | TRACE, 'l', "lib", "LIB", "of this library or file: c, libc.so.6, /path",
	  "give a path, or a library's short name, as c for libc.so.6", set_path, 0 },
	{ LIST, 'p', "pid", "PID[,...]", "of these processes and their libraries",
	  "give a number from 1 to 4194304, several with commas or several -p", set_pid, 0 },
	{ TRACE, 'p', "pid", "PID[,...]", "in these processes only",
	  "give a number from 1 to 4194304, several with commas or several -p", set_pid, 0 },
	{ SLOW | STAT | TOP | TRACE | LOCKS, 'd', "duration", "SECONDS",
	  "end after this time (decimals, or a unit: 500ms)",
	  "give a number of seconds, or one with a unit (ns, us, ms, s): 10, 0.5, 500ms",
	  set_duration, 0 },
	{ SLOW, 'n', "count", "COUNT", "end after this many printed statements",
	  "give a whole number from 1", set_count, 0 },
	{ LOCKS, 'n', "count", "COUNT", "end after this many printed waits",
	  "give a whole number from 1", set_count, 0 },
	{ LOCKS, 0, "stat", NULL, "a table of locks; of all waits, without a threshold",
	  NULL, NULL, offsetof(struct options, stat) },
	{ LOCKS, 0, "dot", "FILE", "write who waited for whom to this file, for Graphviz",
	  "give the path of a file", set_word, offsetof(struct options, dot) },
	{ TRACE, 'n', "max", "COUNT", "end after this many printed hits",
	  "give a whole number from 1", set_count, 0 },
	{ TRACE, 0, "ret", NULL, "when functions return, not when they are called",
	  NULL, NULL, offsetof(struct options, on_return) },
	{ TRACE, 0, "args", "N", "print so many arguments of functions",
	  "give a number from 1 to 6", set_registers, 0 },
	{ TRACE, 0, "count", NULL, "only count the hits, by the value if there is one",
	  NULL, NULL, offsetof(struct options, count_hits) },
	{ TRACE, 0, "hist", "VALUE", "only count the hits, in a histogram of this value",
	  "give a value, as arg1 or (int)retval", set_histogram, 0 },
	{ TRACE, 0, "text", "BYTES", "print so much of a string (default 256)",
	  "give a number of bytes from 16 to 1048576, k is 1024: 4096, 64k", set_text, 0 },
	{ TRACE, 'T', "wall", NULL, "show the time of day, not seconds since the start",
	  NULL, NULL, offsetof(struct options, wall) },
	{ STAT | TOP, 'i', "interval", "SECONDS", "print each time so long has gone by",
	  "give a number of seconds, or one with a unit (ns, us, ms, s): 10, 0.5, 500ms",
	  set_interval, 0 },
	{ STAT | TOP, 'n', "count", "COUNT", "end after this many intervals",
	  "give a whole number from 1", set_count, 0 },
	{ STAT, 'u', "microseconds", NULL, "count in microseconds, not milliseconds",
	  NULL, NULL, offsetof(struct options, micro) },
	{ TOP, 0, "sort", "WHAT", "total, calls, mean, p95, p99, max, rows, errors, ...",
	  "give total, calls, mean, p95, p99, max, rows, errors, a part of the time (cpu, disk, "
	  "lock, ... as --why has them) or what is used (wal_bytes, ... as --use has it)",
	  set_order, 0 },
	{ TOP, 0, "lines", "N", "show so many groups (default: as many as fit, or 20)",
	  "give a whole number from 1", set_lines, 0 },
	{ STAT, 0, "by", "WHAT", "a histogram for each: command, db, user or status",
	  "give command, db, user or status", set_by, 0 },
	{ STAT, 0, "wait", "WHAT", "count waits in statements, as lock or fdatasync",
	  "give a part of the time (disk, fsync, lock, lwlock, futex, network, sleep, ipc, other, "
	  "cpu, runqueue) or a system call (pread64, fdatasync, ...)", set_wait, 0 },
	{ SLOW | STAT | TOP, 0, "start", "PROBE",
	  "with -x: the USDT probe where a statement starts",
	  "give PROVIDER:NAME, as memsqld:query__start", set_probe, 0 },
	{ SLOW | STAT | TOP, 0, "done", "PROBE", "with -x: the one where it is done",
	  "give PROVIDER:NAME, as memsqld:query__done", set_probe, 0 },
	{ SLOW | STAT | TOP, 0, "text-arg", "N",
	  "which argument of the start is the text (default 1)",
	  "give a number from 1 to 12", set_text_arg, 0 },
	{ SLOW | TOP, 0, "user", "NAME", "only statements of this database user",
	  NULL, set_string, offsetof(struct options, user) },
	{ SLOW | TOP, 0, "db", "NAME", "only statements in this database",
	  NULL, set_string, offsetof(struct options, database) },
	{ SLOW | STAT | TOP, 0, "match", "TEXT|/REGEX/",
	  "only statements that have this in their text",
	  "give a piece of a statement, or an extended regular expression as /from (a|b)/; upper "
	  "and lower case are the same", set_match, 0 },
	{ SLOW | TOP, 0, "container", "ID", "only servers in this container",
	  "give a container's id or its beginning, or its name", set_word,
	  offsetof(struct options, container) },
	{ SLOW | TOP | LOCKS, 0, "text", "BYTES", "show so much of a statement (default 4096 = 4k)",
	  "give a number of bytes from 16 to 1048576, k is 1024: 4096, 64k", set_text, 0 },
	{ SLOW | TOP | LOCKS, 0, "redact", NULL,
	  "show a ? for each literal and comment in statements",
	  NULL, NULL, offsetof(struct options, redact) },
	{ SLOW, 'o', "columns", "NAME[,...]", "print these columns",
	  "give names of columns, with commas", set_columns, 0 },
	{ SLOW | LOCKS, 't', "wall", NULL, "show the time of day, not seconds since the start",
	  NULL, NULL, offsetof(struct options, wall) },
	{ SLOW | TOP, 0, "why", NULL, "print where each statement's time went",
	  NULL, NULL, offsetof(struct options, why) },
	{ SLOW | TOP, 0, "use", NULL, "print what it used: storage, memory, buffers, WAL",
	  NULL, NULL, offsetof(struct options, use) },
	{ SLOW, 0, "otlp", "FILE", "add statements to this file as OpenTelemetry spans",
	  "give the path of a file, or - for the standard output", set_word,
	  offsetof(struct options, otlp) },
	{ SLOW, 0, "phases", NULL, "print how long it was parsed, planned, executed",
	  NULL, NULL, offsetof(struct options, phases) },
	{ DOCTOR, 0, "self-test", NULL, "attach to itself and prove that tracing works",
	  NULL, NULL, offsetof(struct options, self_test) },
	{ DOCTOR, 0, "json", NULL, "print a JSON object with all that is known",
	  NULL, NULL, offsetof(struct options, json) },
	{ SLOW | LIST | STAT | TOP | TRACE | LOCKS, 0, "json", NULL,
	  "print a JSON object a line, with all that is known",
	  NULL, NULL, offsetof(struct options, json) },
	{ SLOW | STAT | TOP | TRACE | LOCKS, 0, "strict", NULL,
	  "exit with status 1 if anything was lost",
	  NULL, NULL, offsetof(struct options, strict) },
	{ SLOW | STAT | TOP | TRACE | LOCKS, 0, "keep-privileges", NULL,
	  "give nothing up once all is attached", NULL, NULL,
	  offsetof(struct options, keep_privileges) },
	{ SLOW | STAT | TOP | TRACE | LOCKS, 0, "force", "NAME[,...]", NULL, NULL, set_force, 0 },
	{ SLOW | STAT | TOP | TRACE | LOCKS, 'v', "verbose", NULL,
	  "print the BPF programs, as a disassembly",
	  NULL, set_verbose, 0 },
	{ LIST, 'v', "verbose", NULL, "with numbers of sites and arguments; -vv: each",
	  NULL, set_verbose, 0 },
	{ ALL, 'h', "help", NULL, "print this help",
	  NULL, NULL, offsetof(struct options, help) },
	{ ALL, 'V', "version", NULL, "print the version",
	  NULL, NULL, offsetof(struct options, version) },
};

static int apply(struct parse *p, const struct option_row *row, const char *value)
{
	if (row->set)
		return row->set(p, row, value);
	*(bool *)((char *)p->opts + row->flag) = true;
	return 0;
}

static const struct option_row *find_letter(const struct command *command, char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].commands & command->id && letter && rows[i].letter == letter)
			return &rows[i];
	}
	return NULL;
}

static const struct option_row *find_name(const struct command *command, const char *name,
					  size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].commands & command->id && strlen(rows[i].name) == len &&
		    !memcmp(rows[i].name, name, len))
			return &rows[i];
	}
	return NULL;
}

static int refuse_unknown(struct parse *p, const char *word, size_t len)
{
	begin_error(p, NULL, word, len);
	output_printf(p->err, "no such option; %s --help lists them", p->command->invocation);
	return end_error(p, "", NULL);
}

static int refuse_missing(struct parse *p, const struct option_row *row)
{
	begin_error(p, row, NULL, 0);
	output_string(p->err, "needs ");
	return end_error(p, row->arg, row->accepts);
}

/* Parses --name, --name=value, or --name and @next. Returns the words taken, or -EINVAL. */
static int parse_long(struct parse *p, const char *word, const char *next)
{
	size_t len = strcspn(word + 2, "=");
	const struct option_row *row = find_name(p->command, word + 2, len);
	const char *value = word[2 + len] ? word + 2 + len + 1 : NULL;
	int err;

	if (!row)
		return refuse_unknown(p, word, len + 2);
	if (!row->arg && value)
		return refuse(p, row, value, "takes no argument");
	if (row->arg && !value) {
		if (!next)
			return refuse_missing(p, row);
		err = apply(p, row, next);
		return err ? err : 2;
	}
	err = apply(p, row, value);
	return err ? err : 1;
}

/* Parses -abc, -pVALUE, or -p and @next. Returns the words taken, or -EINVAL. */
static int parse_short(struct parse *p, const char *word, const char *next)
{
	for (const char *at = word + 1; *at; at++) {
		const struct option_row *row = find_letter(p->command, *at);
		const char *value = NULL;
		int err;

		if (!row)
			return refuse_unknown(p, word, strlen(word));
		if (row->arg)
			value = at[1] ? at + 1 : next;
		if (row->arg && !value)
			return refuse_missing(p, row);
		err = apply(p, row, value);
		if (err)
			return err;
		if (row->arg)
			return at[1] ? 1 : 2;
	}
	return 1;
}

static int parse_engine(struct parse *p, const char *word)
{
	const struct engine *engine = engines_by_word(word);

	if (!engine && command_find(word)) {
		begin_error(p, NULL, word, strlen(word));
		return end_error(p, "is a command", "give it as the first word");
	}
	if (!engine) {
		begin_error(p, NULL, word, strlen(word));
		return end_error(p, "is neither a database nor a threshold", word_forms);
	}
	if (p->opts->engine) {
		begin_error(p, NULL, word, strlen(word));
		return end_error(p, "is a second database",
				 "give one, or none for all servers that are found");
	}
	p->opts->engine = engine->name;
	return 1;
}

static int parse_threshold(struct parse *p, const char *word)
{
	const char *first = p->threshold, *why;

	if (option_duration(word, NS_PER_MS, &p->opts->threshold_ns, &why)) {
		output_string(p->err, "dbslower: threshold ");
		escape_terminal(p->err, word, strlen(word), false);
		output_string(p->err, ": ");
		return end_error(p, why, duration_forms);
	}
	p->threshold = word;
	if (first) {
		begin_error(p, NULL, word, strlen(word));
		return end_error(p, "is a second threshold", "give one");
	}
	return p->minimum ? refuse_two_thresholds(p) : 1;
}

/* A word that starts like a number is a threshold, even a wrong one. Returns 1 or -EINVAL. */
static int parse_statements(struct parse *p, const char *word)
{
	const char *digit = word + strspn(word, "+-.");

	if (*digit >= '0' && *digit <= '9')
		return parse_threshold(p, word);
	return parse_engine(p, word);
}

/* A word with a '/' is a file; of a probe, also its FILE: has one. Returns 1 or -EINVAL. */
static int parse_free(struct parse *p, const char *word)
{
	bool probes = p->command->words == WORDS_PROBES;
	size_t head = probes ? strcspn(word, " \t\n(\"") : strlen(word);

	if (memchr(word, '/', head) && !(probes && memchr(word, ':', head)))
		return add_path(p, NULL, word) ? -EINVAL : 1;
	if (!*word)
		return refuse(p, NULL, word, "is empty");
	if (p->opts->word_count == OPTION_WORDS) {
		begin_error(p, NULL, word, strlen(word));
		output_printf(p->err, "is one too many; at most %d words", OPTION_WORDS);
		return end_error(p, " can be given", NULL);
	}
	p->opts->words[p->opts->word_count++] = word;
	return 1;
}

static int parse_word(struct parse *p, const char *word)
{
	switch (p->command->words) {
	case WORDS_STATEMENTS:
		return parse_statements(p, word);
	case WORDS_FREE:
	case WORDS_PROBES:
		return parse_free(p, word);
	}
	return -EINVAL;
}

static bool is_option(const struct command *command, const char *word)
{
	if (word[0] != '-' || !word[1])
		return false;
	/* -5 is no option but a wrong threshold, which deserves its own reason. */
	return command->words != WORDS_STATEMENTS ||
	       (word[1] != '.' && !(word[1] >= '0' && word[1] <= '9'));
}

static int parse_all(struct parse *p, int argc, char *const argv[])
{
	bool only_words = false;
	int taken;

	for (int i = 1; i < argc; i += taken) {
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;

		taken = 1;
		if (!only_words && !strcmp(argv[i], "--"))
			only_words = true;
		else if (only_words || !is_option(p->command, argv[i]))
			taken = parse_word(p, argv[i]);
		else if (argv[i][1] == '-')
			taken = parse_long(p, argv[i], next);
		else
			taken = parse_short(p, argv[i], next);
		if (taken < 0)
			return taken;
		if (p->opts->help || p->opts->version)
			return 0;
	}
	return 0;
}

int option_parse(const struct command *command, int argc, char *const argv[],
		 struct options *opts, struct output *err)
{
	struct parse p = { .command = command, .opts = opts, .err = err };
	int ret;

	*opts = (struct options){ .threshold_ns = NS_PER_MS, .text_arg = 1,
				  .text_bytes = command->id == COMMAND_TRACE ? 256 : 4096 };
	ret = parse_all(&p, argc, argv);
	if (ret)
		return ret;
	if (opts->json && opts->columns.count && !opts->help && !opts->version) {
		begin_error(&p, find_letter(command, 'o'), NULL, 0);
		return end_error(&p, "--json always prints everything", "give one of the two");
	}
	if (opts->otlp && !strcmp(opts->otlp, "-") && (opts->json || opts->columns.count) &&
	    !opts->help && !opts->version) {
		begin_error(&p, NULL, "--otlp -", 8);
		return end_error(&p, "leaves no room for others on the standard output",
				 "give it a file, or leave --json and -o out");
	}
	if ((opts->start || opts->done) && !opts->help && !opts->version &&
	    !(opts->start && opts->done && (opts->path_count || opts->pid_count))) {
		begin_error(&p, NULL, opts->start ? "--start" : "--done", opts->start ? 7 : 6);
		return end_error(&p, "goes with the other one and with -x or -p",
				 "give --start, --done and -x PATH");
	}
	if (opts->start && opts->engine && !opts->help && !opts->version) {
		begin_error(&p, NULL, "--start", 7);
		return end_error(&p, "is for servers that are not known",
				 "leave the database's name out");
	}
	if (opts->count_hits && opts->histogram && !opts->help && !opts->version) {
		begin_error(&p, NULL, "--count", 7);
		return end_error(&p, "does not go with --hist", "give one of the two");
	}
	if (opts->wait && opts->stat_by == STAT_BY_STATUS && !opts->has_match && !opts->help &&
	    !opts->version) {
		begin_error(&p, NULL, "--by status", 11);
		return end_error(&p, "is not known while a statement waits",
				 "give command, db or user with --wait, or a --match too");
	}
	if (command->id & (STAT | TOP) && opts->count && !opts->interval_ns && !opts->help &&
	    !opts->version) {
		begin_error(&p, NULL, "-n", 2);
		return end_error(&p, "counts intervals", "give -i SECONDS with it");
	}
	/* A histogram or table is of all statements, unless it is said of which. */
	if (command->id != COMMAND_SLOW && (command->id != LOCKS || opts->stat) && !p.threshold &&
	    !p.minimum)
		opts->threshold_ns = 0;
	if (!opts->columns.count)
		field_default(&opts->columns);
	return 0;
}

static void help_row(struct output *out, const struct option_row *row)
{
	size_t width = 8 + strlen(row->name);

	output_string(out, row->letter ? "  -" : "    ");
	if (row->letter) {
		output_char(out, row->letter);
		output_string(out, ", --");
	} else {
		output_string(out, "  --");
	}
	output_string(out, row->name);
	if (row->arg) {
		output_char(out, ' ');
		output_string(out, row->arg);
		width += 1 + strlen(row->arg);
	}
	output_spaces(out, width < HELP_COLUMN ? HELP_COLUMN - width : 1);
	output_string(out, row->help);
	output_char(out, '\n');
}

/* All commands, for the help of the default one. */
static void help_commands(struct output *out)
{
	output_string(out, "\nCommands, which tell more with --help:\n");
	for (const struct command *command = command_table; command->name; command++)
		output_printf(out, "  %-8s  %s\n", command->name, command->summary);
}

void option_help(const struct command *command, struct output *out)
{
	output_printf(out, "usage: %s %s\n\n", command->invocation, command->usage);
	output_string(out, command->about);
	output_char(out, '\n');
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].commands & command->id && rows[i].help)
			help_row(out, &rows[i]);
	if (find_letter(command, 'o')) {
		output_string(out, "\nColumns, for -o (default: time,pid,ms,query):\n");
		field_help(out);
	}
	if (command == command_table)
		help_commands(out);
	output_string(out, "\nExamples:\n");
	output_string(out, command->examples);
}
