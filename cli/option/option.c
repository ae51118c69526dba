// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/option/option.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "cli/format/escape.h"
#include "cli/suggest.h"
#include "db/engines.h"

#define TEXT_BYTES 4096		/* unless the command has a default of its own */

void option_engine_list(char *text, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; engine_table[i]; i++) {
		const char *const *word = engine_table[i]->words;

		at += (size_t)snprintf(text + at, size - at, "%s%s", !i ? "" :
				       engine_table[i + 1] ? ", " : " and ", word[0]);
		for (size_t n = 1; word[n] && at < size; n++)
			at += (size_t)snprintf(text + at, size - at, "%s%s%s",
					       n == 1 ? " (or " : ", ", word[n],
					       word[n + 1] ? "" : ")");
		if (at >= size)
			return;
	}
}

/* Append @value, in quotes if it is empty or begins or ends with a blank. */
static void option_value(struct output *out, const char *value, size_t len)
{
	const char *quote = !len || *value == ' ' || value[len - 1] == ' ' ? "'" : "";

	output_string(out, quote);
	escape_terminal(out, value, len, false);
	output_string(out, quote);
}

void option_message(struct option_parser *p, const struct option_row *row, const char *value,
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
	if (value)
		option_value(p->err, value, len);
	output_string(p->err, ": ");
}

int option_message_end(struct option_parser *p, const char *why, const char *accepts)
{
	output_string(p->err, why);
	if (accepts) {
		output_string(p->err, "; ");
		output_string(p->err, accepts);
	}
	output_char(p->err, '\n');
	return -EINVAL;
}

int option_message_many(struct option_parser *p, const char *what, int max)
{
	output_printf(p->err, "too many %s (maximum %d)", what, max);
	return option_message_end(p, "", "specify fewer");
}

int option_refuse(struct option_parser *p, const struct option_row *row, const char *value,
		  const char *why)
{
	option_message(p, row, value, value ? strlen(value) : 0);
	return option_message_end(p, why, row ? row->accepts : NULL);
}

int option_read_number(const char *text, size_t len, uint64_t *value)
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

/* Return the nanoseconds of the unit called @name, or 0. */
static uint64_t unit_by_name(const char *name, uint64_t unit_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", NS_PER_MS }, { "s", NS_PER_S },
		      { "m", 60 * NS_PER_S }, { "h", 3600 * NS_PER_S } };

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
		return "must not be negative";
	if (!whole && !decimals)
		return "not a number";
	if ((text[whole] == '.' && !decimals) || !unit)
		return "unknown unit";
	if (whole && option_read_number(text, whole, &value))
		return "too large";
	if (value > INT64_MAX / unit)
		return "too large";
	value *= unit;
	for (size_t i = 0; i < decimals; i++) {
		if (decimal[i] != '0' && (!unit || unit % 10))
			return "finer than 1 ns";
		unit /= 10;
		value += unit * (decimal[i] - '0');
	}
	if (value > INT64_MAX)
		return "too large";
	*ns = value;
	return NULL;
}

int option_read_duration(const char *text, uint64_t unit_ns, uint64_t *ns, const char **why)
{
	*why = duration_reason(text, unit_ns, ns);
	return *why ? -EINVAL : 0;
}

int option_add_path(struct option_parser *p, const struct option_row *row, const char *value)
{
	unsigned int most = p->command->paths ? p->command->paths : OPTION_PATHS;

	if (p->opts->path_count == most) {
		option_message(p, row, value, strlen(value));
		return option_message_many(p, "files", most);
	}
	p->opts->paths[p->opts->path_count++] = value;
	return 0;
}

int option_refuse_thresholds(struct option_parser *p)
{
	option_message(p, NULL, p->threshold, strlen(p->threshold));
	return option_message_end(p, "second threshold",
				  "specify THRESHOLD or -m, not both");
}

void *option_target(struct option_parser *p, const struct option_row *row)
{
	return row->own ? row->own : (char *)p->opts + row->member;
}

static int apply(struct option_parser *p, const struct option_row *row, const char *value)
{
	p->row = row;
	if (row->set)
		return row->set(p, row, value);
	*(bool *)option_target(p, row) = true;
	return 0;
}

const struct option_row *option_find_letter(const struct command *command, char letter)
{
	for (size_t i = 0; command->options[i]; i++) {
		if (letter && command->options[i]->letter == letter)
			return command->options[i];
	}
	return NULL;
}

const struct option_row *option_find(const struct command *command, const char *name, size_t len)
{
	for (size_t i = 0; command->options[i]; i++) {
		const struct option_row *row = command->options[i];

		if (strlen(row->name) == len && !memcmp(row->name, name, len))
			return row;
	}
	return NULL;
}

/* @word: with the dashes */
static int refuse_unknown(struct option_parser *p, const char *word, size_t len)
{
	struct suggestion known = { .word = word + 2, .len = len - 2 };

	for (size_t i = 0; word[1] == '-' && p->command->options[i]; i++) {
		if (p->command->options[i]->help)
			suggestion_add(&known, p->command->options[i]->name);
	}
	option_message(p, NULL, word, len);
	output_string(p->err, "unknown option; ");
	if (known.best)
		suggestion_print(&known, "--", p->err);
	else
		output_printf(p->err, "see %s --help", p->command->invocation);
	return option_message_end(p, "", NULL);
}

/* @len: of the option in @word, which is followed by '=' and a value */
static int refuse_value(struct option_parser *p, const char *word, size_t len)
{
	option_message(p, NULL, word, len);
	output_string(p->err, "does not take an argument; omit ");
	escape_terminal(p->err, word + len, strlen(word + len), false);
	return option_message_end(p, "", NULL);
}

static int refuse_missing(struct option_parser *p, const struct option_row *row)
{
	option_message(p, row, NULL, 0);
	output_string(p->err, "requires an argument, ");
	return option_message_end(p, row->arg, row->accepts);
}

/* Parse --name, --name=value, or --name and @next. Return the words used, or -EINVAL. */
static int parse_long(struct option_parser *p, const char *word, const char *next)
{
	size_t len = strcspn(word + 2, "=");
	const struct option_row *row = option_find(p->command, word + 2, len);
	const char *value = word[2 + len] ? word + 2 + len + 1 : NULL;
	int err;

	if (!row)
		return refuse_unknown(p, word, len + 2);
	if (!row->arg && value)
		return refuse_value(p, word, len + 2);
	if (row->arg && !value) {
		if (!next)
			return refuse_missing(p, row);
		err = apply(p, row, next);
		return err ? err : 2;
	}
	err = apply(p, row, value);
	return err ? err : 1;
}

/* Parse -abc, -pVALUE, or -p and @next. Return the words used, or -EINVAL. */
static int parse_short(struct option_parser *p, const char *word, const char *next)
{
	for (const char *at = word + 1; *at; at++) {
		const struct option_row *row = option_find_letter(p->command, *at);
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

void option_engine_words(struct output *out)
{
	for (size_t i = 0; engine_table[i]; i++)
		output_printf(out, "%s\n", engine_table[i]->words[0]);
}

/* Return whether @word is the unit of the duration before it, as in "5 ms". */
static bool is_separate_unit(const struct option_parser *p, const char *word)
{
	bool number = p->before && strspn(p->before, "0123456789.") == strlen(p->before);

	return number && *word && unit_by_name(word, 0) &&
	       (p->threshold == p->before ||
		(p->row && p->row->arg && (!strcmp(p->row->arg, "MS") ||
					   !strcmp(p->row->arg, "SECONDS"))));
}

/* Refuse @word, which is not a database: name the one meant or, in place of a command, that one. */
static int refuse_engine(struct option_parser *p, const char *word)
{
	struct suggestion known = { .word = word, .len = strlen(word) };
	bool first = p->command == command_table[0] && !p->before;
	bool session = p->command->words == WORDS_SESSION;
	char words[256];

	option_message(p, NULL, word, strlen(word));
	if (command_is_other(word))
		return option_message_end(p, COMMAND_OTHER, NULL);
	if (is_separate_unit(p, word)) {
		output_printf(p->err, "unit without a number; specify %s%s", p->before, word);
		return option_message_end(p, "", NULL);
	}
	for (size_t i = 0; engine_table[i]; i++) {
		for (const char *const *name = engine_table[i]->words; *name; name++)
			suggestion_add(&known, *name);
	}
	for (size_t i = 0; p->command == command_table[0] && command_table[i]; i++)
		suggestion_add(&known, command_table[i]->name);
	output_string(p->err, session ? "neither a database nor the ID of a session; " :
			      first ? "neither a command, a database nor a threshold; " :
				      "neither a database nor a threshold; ");
	suggestion_print(&known, "", p->err);
	if (known.best)
		return option_message_end(p, "", NULL);
	option_engine_list(words, sizeof(words));
	output_printf(p->err, "databases: %s; %s", words, session ?
		      "dbslower ps prints the IDs" : "thresholds: 30, 0.25, 250us, 1s");
	return option_message_end(p, "", first ? "dbslower --help lists the commands" : NULL);
}

static int parse_engine(struct option_parser *p, const char *word)
{
	const struct engine *engine = engines_by_word(word);

	if (!engine && command_find(word)) {
		option_message(p, NULL, word, strlen(word));
		return option_message_end(p, "command name after other arguments",
					  "specify it as the first argument");
	}
	if (!engine)
		return refuse_engine(p, word);
	if (p->opts->engine) {
		option_message(p, NULL, word, strlen(word));
		return option_message_end(p, "second database",
				 "specify one, or none for all running servers");
	}
	p->opts->engine = engine->name;
	return 1;
}

/*
 * Return whether @word may be another process of -p, as in "-p 188 322": bcc's documentation has
 * this form. Not in "-p 188,322 100".
 */
static bool is_second_pid(const struct option_parser *p, const char *word)
{
	return p->row && p->row->letter == 'p' && !strchr(p->before, ',') && *word != '0' &&
	       !word[strspn(word, "0123456789")];
}

static int refuse_second_pid(struct option_parser *p, const char *word)
{
	option_message(p, NULL, word, strlen(word));
	output_printf(p->err, "process ID or threshold; specify -p %s,%s for processes, "
		      "or -m %s for a threshold",
		      p->before + strcspn(p->before, "0123456789"), word, word);
	return option_message_end(p, "", NULL);
}

static int parse_threshold(struct option_parser *p, const char *word)
{
	const char *first = p->threshold, *why;

	if (is_second_pid(p, word))
		return refuse_second_pid(p, word);
	if (option_read_duration(word, NS_PER_MS, &p->opts->threshold_ns, &why)) {
		output_string(p->err, "dbslower: threshold ");
		option_value(p->err, word, strlen(word));
		output_string(p->err, ": ");
		return option_message_end(p, why, OPTION_DURATIONS);
	}
	p->threshold = word;
	if (first) {
		option_message(p, NULL, word, strlen(word));
		return option_message_end(p, "second threshold", "specify one");
	}
	return p->minimum ? option_refuse_thresholds(p) : 1;
}

/* Parse a word: a threshold if it starts like a number. Return 1 or -EINVAL. */
static int parse_statements(struct option_parser *p, const char *word)
{
	const char *digit = word + strspn(word, "+-.");

	if (*digit >= '0' && *digit <= '9')
		return parse_threshold(p, word);
	return parse_engine(p, word);
}

/* Parse a word: the ID of a session if it starts like a number. Return 1 or -EINVAL. */
static int parse_session(struct option_parser *p, const char *word)
{
	uint64_t *session = &p->opts->session, first = *session;

	if (*word < '0' || *word > '9')
		return parse_engine(p, word);
	if (option_read_number(word, strlen(word), session) || !*session) {
		option_message(p, NULL, word, strlen(word));
		return option_message_end(p, "not the ID of a session",
					  "dbslower ps prints them");
	}
	if (first) {
		option_message(p, NULL, word, strlen(word));
		return option_message_end(p, "second session", "specify one");
	}
	return 1;
}

static int refuse_empty(struct option_parser *p)
{
	option_message(p, NULL, "", 0);
	return option_message_end(p, "must not be empty", "omit it, or specify a name");
}

/* Return whether the first @len bytes of @path are that of an existing file. */
static bool is_file(const char *path, size_t len)
{
	char copy[PATH_MAX];
	struct stat st;

	if (len >= sizeof(copy) || !memchr(path, '/', len))
		return false;
	memcpy(copy, path, len);
	copy[len] = '\0';
	return !stat(copy, &st) && !S_ISDIR(st.st_mode);
}

size_t option_probe_path(const char *word, size_t *begin)
{
	size_t kind = strcspn(word, ":/");

	for (*begin = word[kind] == ':' ? kind + 1 : 0;; *begin = 0) {
		for (size_t len = 0; word[*begin + len]; len++)
			if (word[*begin + len] == ':' && is_file(word + *begin, len))
				return len;
		if (!*begin)
			return 0;
	}
}

/* Return whether @word is a file: it has a '/', except in the FILE: of a probe. */
static bool is_path(const char *word, bool probes)
{
	size_t head = strcspn(word, " \t\n(\""), begin;

	if (!probes)
		return strchr(word, '/');
	if (option_probe_path(word, &begin))
		return false;
	return is_file(word, strlen(word)) ||
	       (memchr(word, '/', head) && !memchr(word, ':', head));
}

/* Parse a word: a file or not. Return 1 or -EINVAL. */
static int parse_free(struct option_parser *p, const char *word)
{
	if (is_path(word, p->command->words == WORDS_PROBES))
		return option_add_path(p, NULL, word) ? -EINVAL : 1;
	if (!*word)
		return refuse_empty(p);
	if (p->opts->word_count == OPTION_WORDS) {
		option_message(p, NULL, word, strlen(word));
		return option_message_many(p, "arguments", OPTION_WORDS);
	}
	p->opts->words[p->opts->word_count++] = word;
	return 1;
}

static int parse_word(struct option_parser *p, const char *word)
{
	switch (p->command->words) {
	case WORDS_RECORDING:
		if (!p->opts->file) {
			p->opts->file = word;
			return *word ? 1 : refuse_empty(p);
		}
		/* Fall through */
	case WORDS_STATEMENTS:
		return parse_statements(p, word);
	case WORDS_SESSION:
		return parse_session(p, word);
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
	/* -5 is a negative threshold, and is reported as such. */
	return (command->words != WORDS_STATEMENTS && command->words != WORDS_RECORDING) ||
	       (word[1] != '.' && !(word[1] >= '0' && word[1] <= '9'));
}

static int parse_all(struct option_parser *p, int argc, char *const argv[])
{
	bool only_words = false;
	int taken;

	for (int i = 1; i < argc; i += taken) {
		const char *next = i + 1 < argc ? argv[i + 1] : NULL;

		taken = 1;
		p->before = i > 1 ? argv[i - 1] : NULL;
		if (!only_words && !strcmp(argv[i], "--")) {
			only_words = true;
		} else if (only_words || !is_option(p->command, argv[i])) {
			taken = parse_word(p, argv[i]);
			p->row = NULL;
		} else if (argv[i][1] == '-') {
			taken = parse_long(p, argv[i], next);
		} else {
			taken = parse_short(p, argv[i], next);
		}
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
	struct option_parser p = { .command = command, .opts = opts, .err = err };
	const struct option_row *row;
	int ret;

	*opts = (struct options){
		.threshold_ns = command->threshold_ns,
		.text_bytes = command->text_bytes ? command->text_bytes : TEXT_BYTES,
		.columns.transactions = command->transactions,
	};
	for (size_t i = 0; command->options[i]; i++) {
		row = command->options[i];
		if (row->own)
			memset(row->own, 0, row->own_size);
	}
	ret = parse_all(&p, argc, argv);
	opts->has_threshold = p.threshold || p.minimum;
	if (ret)
		return ret;
	for (const struct option_rule *const *rule = command->rules;
	     rule && *rule && !opts->help && !opts->version; rule++) {
		if (!(*rule)->broken(opts))
			continue;
		option_message(&p, NULL, (*rule)->subject, strlen((*rule)->subject));
		return option_message_end(&p, (*rule)->cause, (*rule)->remedy);
	}
	if (!opts->columns.count)
		field_default(&opts->columns);
	return 0;
}
