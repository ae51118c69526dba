// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/option/set.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/suggest.h"
#include "db/discover/user_engine.h"
#include "db/engines.h"
#include "loader/feature.h"

#define PID_LIMIT 4194304	/* the kernel's PID_MAX_LIMIT */

static int add_pid(struct option_parser *p, const struct option_row *row, const char *text,
		   size_t len)
{
	struct options *opts = p->opts;
	uint64_t pid;

	if (option_read_number(text, len, &pid) || !pid || pid > PID_LIMIT) {
		option_message(p, row, text, len);
		return option_message_end(p, "not a process ID", row->accepts);
	}
	for (unsigned int i = 0; i < opts->pid_count; i++) {
		if (opts->pids[i] == pid)
			return 0;
	}
	if (opts->pid_count == SERVER_PIDS) {
		option_message(p, row, text, len);
		return option_message_many(p, "processes", SERVER_PIDS);
	}
	opts->pids[opts->pid_count++] = pid;
	return 0;
}

int option_set_pid(struct option_parser *p, const struct option_row *row, const char *value)
{
	for (;;) {
		size_t len = strcspn(value, ",");
		int err = add_pid(p, row, value, len);

		if (err || !value[len])
			return err;
		value += len + 1;
	}
}

int option_set_engine(struct option_parser *p, const struct option_row *row, const char *value)
{
	const struct engine *engine = engines_by_word(value);
	char words[256];

	if (p->opts->engine)
		return option_refuse(p, row, value, "second database");
	if (engine) {
		p->opts->engine = engine->name;
		return 0;
	}
	option_engine_list(words, sizeof(words));
	option_message(p, row, value, strlen(value));
	output_printf(p->err, "unknown database; expected %s", words);
	return option_message_end(p, "", NULL);
}

int option_set_path(struct option_parser *p, const struct option_row *row, const char *value)
{
	return *value ? option_add_path(p, row, value) :
			option_refuse(p, row, value, "must not be empty");
}

int option_set_minimum(struct option_parser *p, const struct option_row *row, const char *value)
{
	const char *why;

	if (option_read_duration(value, NS_PER_MS, &p->opts->threshold_ns, &why))
		return option_refuse(p, row, value, why);
	p->minimum = true;
	return p->threshold ? option_refuse_thresholds(p) : 0;
}

/* For options whose argument is stored as it is. */
int option_set_string(struct option_parser *p, const struct option_row *row, const char *value)
{
	*(const char **)option_target(p, row) = value;
	return 0;
}

int option_set_word(struct option_parser *p, const struct option_row *row, const char *value)
{
	return *value ? option_set_string(p, row, value) :
			option_refuse(p, row, value, "must not be empty");
}

/* Parse the name of a probe, PROVIDER:NAME. */
int option_set_probe(struct option_parser *p, const struct option_row *row, const char *value)
{
	const char *colon = strchr(value, ':');

	if (!colon || colon == value || !colon[1])
		return option_refuse(p, row, value, "not a probe name");
	if (colon - value >= USER_ENGINE_NAME || strlen(colon + 1) >= USER_ENGINE_NAME)
		return option_refuse(p, row, value, "too long");
	*(row->name[0] == 's' ? &p->opts->start : &p->opts->done) = value;
	return 0;
}

int option_set_text_arg(struct option_parser *p, const struct option_row *row, const char *value)
{
	uint64_t number;

	if (option_read_number(value, strlen(value), &number) || !number || number > 12)
		return option_refuse(p, row, value, "not an argument number");
	p->opts->text_arg = (unsigned int)number;
	return 0;
}

int option_set_match(struct option_parser *p, const struct option_row *row, const char *value)
{
	size_t at;
	int err;

	if (!*value || !strcmp(value, "//"))
		return option_refuse(p, row, value, "must not be empty");
	err = regex_parse(&p->opts->match, value, &at);
	if (err == -E2BIG)
		return option_refuse(p, row, value, "too long");
	if (err)
		return option_refuse(p, row, value, "not a regular expression");
	p->opts->has_match = true;
	return 0;
}

int option_set_verbose(struct option_parser *p, const struct option_row *row, const char *value)
{
	(void)row;
	(void)value;
	p->opts->verbose++;
	return 0;
}

int option_set_time(struct option_parser *p, const struct option_row *row, const char *value)
{
	uint64_t *ns = option_target(p, row);
	const char *why;

	if (option_read_duration(value, NS_PER_S, ns, &why))
		return option_refuse(p, row, value, why);
	return *ns ? 0 : option_refuse(p, row, value, "must be greater than 0");
}

int option_set_number(struct option_parser *p, const struct option_row *row, const char *value)
{
	uint64_t *number = option_target(p, row);
	int err = option_read_number(value, strlen(value), number);

	if (err)
		return option_refuse(p, row, value,
				     err == -ERANGE ? "too large" : "not a number");
	return *number ? 0 : option_refuse(p, row, value, "must be at least 1");
}

/* Parse a number of bytes from @min to @max, which may have a unit. */
static int read_bytes(struct option_parser *p, const struct option_row *row, const char *value,
		      uint64_t min, uint64_t max, uint64_t *bytes)
{
	static const char units[] = "kKmMgG";
	size_t len = strlen(value);
	const char *unit = len ? strchr(units, value[len - 1]) : NULL;
	uint64_t size = unit ? 1024ull << (unit - units) / 2 * 10 : 1;
	int err = option_read_number(value, len - !!unit, bytes);

	if (err == -EINVAL)
		return option_refuse(p, row, value, "not a number of bytes");
	if (err || *bytes > max / size)
		return option_refuse(p, row, value, "too large");
	*bytes *= size;
	return *bytes < min ? option_refuse(p, row, value, "too small") : 0;
}

int option_set_text(struct option_parser *p, const struct option_row *row, const char *value)
{
	uint64_t bytes;
	int err = read_bytes(p, row, value, OPTION_TEXT_MIN, OPTION_TEXT_MAX, &bytes);

	if (err)
		return err;
	p->opts->text_bytes = (uint32_t)bytes;
	p->opts->has_text = true;
	return 0;
}

int option_set_size(struct option_parser *p, const struct option_row *row, const char *value)
{
	uint64_t *bytes = option_target(p, row);

	return read_bytes(p, row, value, OPTION_SIZE_MIN, INT64_MAX, bytes);
}

int option_set_overhead(struct option_parser *p, const struct option_row *row, const char *value)
{
	size_t len = strspn(value, "0123456789.");
	const char *rest = value + len + (value[len] == '%'), *why;
	struct options *opts = p->opts;
	char number[16];

	if (!len || len >= sizeof(number) || (*rest && *rest != '/'))
		return option_refuse(p, row, value, "not a percentage");
	snprintf(number, sizeof(number), "%.*s", (int)len, value);
	/* Millionths of a CPU, of which a percent has 10000. */
	if (option_read_duration(number, 10000, &opts->max_overhead, &why) ||
	    opts->max_overhead < OPTION_OVERHEAD_MIN || opts->max_overhead > OPTION_OVERHEAD_MAX)
		return option_refuse(p, row, value, "not from 0.01% to 100000%");
	if (*rest && option_read_duration(rest + 1, NS_PER_S, &opts->max_overhead_ns, &why))
		return option_refuse(p, row, value, why);
	if (*rest && (opts->max_overhead_ns < NS_PER_S || opts->max_overhead_ns > 3600 * NS_PER_S))
		return option_refuse(p, row, value, "not from 1 to 3600 seconds");
	return 0;
}

/* Risks that --force accepts. */
static const struct {
	const char *name;
	size_t member;			/* offset in struct options, a bool */
} option_risks[] = {
	{ "go-returns", offsetof(struct options, go_returns) },
	{ "little-memory", offsetof(struct options, little_memory) },
};

/* Set the member for the risk @name, of @len bytes. Return 0 or -ENOENT. */
static int option_accept_risk(struct options *opts, const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(option_risks); i++) {
		if (strlen(option_risks[i].name) != len || memcmp(option_risks[i].name, name, len))
			continue;
		*(bool *)((char *)opts + option_risks[i].member) = true;
		return 0;
	}
	return -ENOENT;
}

/* Parse the names of fallbacks and risks. */
int option_set_force(struct option_parser *p, const struct option_row *row, const char *value)
{
	const char *before = "";
	size_t len;

	for (;; value += len + 1) {
		len = strcspn(value, ",");
		if (option_accept_risk(p->opts, value, len) &&
		    feature_force(value, len, &p->opts->denied))
			break;
		if (!value[len])
			return 0;
	}
	option_message(p, row, value, len);
	output_string(p->err, "unknown name; expected ");
	for (int i = 0; i < FEATURES; i++) {
		if (i == FEATURES_ADDED)
			output_string(p->err, ", " FEATURE_RELEASE "5.4");
		if (!feature_fallback(i))
			continue;
		output_printf(p->err, "%s%s", before, feature_fallback(i));
		before = ", ";
	}
	for (size_t i = 0; i < ARRAY_SIZE(option_risks); i++)
		output_printf(p->err, ", %s", option_risks[i].name);
	return option_message_end(p, "", NULL);
}

int option_set_columns(struct option_parser *p, const struct option_row *row, const char *value)
{
	struct suggestion known = { .word = NULL };
	int err = field_parse(&p->opts->columns, value, &known.word, &known.len);

	if (!err)
		return 0;
	option_message(p, row, known.word, known.len);
	if (err == -E2BIG)
		return option_message_many(p, "columns", FIELD_LIST_MAX);
	output_string(p->err, err == -ENOENT ? "unknown column; " : "column name missing; ");
	field_suggest(&known, p->command->transactions);
	suggestion_print(&known, "", p->err);
	if (!known.best) {
		output_string(p->err, "the columns are ");
		field_names(p->err, p->command->transactions);
	}
	return option_message_end(p, "", NULL);
}

void option_complete_files(struct output *out)
{
	output_string(out, ":files\n");
}

void option_complete_pids(struct output *out)
{
	const char *before = ":list\n:pids ";

	for (size_t i = 0; engine_table[i]; i++) {
		for (const char *const *name = engine_table[i]->executables; *name; name++) {
			output_printf(out, "%s%s", before, *name);
			before = "|";
		}
	}
	output_char(out, '\n');
}

void option_complete_columns(struct output *out)
{
	output_string(out, ":list\n");
	field_names(out, false);
	output_char(out, '\n');
}

void option_complete_transaction_columns(struct output *out)
{
	output_string(out, ":list\n");
	field_names(out, true);
	output_char(out, '\n');
}
