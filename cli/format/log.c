// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/log.h"

#include <string.h>

#include "bpf/event.h"
#include "bpf/plan.h"
#include "cli/format/escape.h"
#include "cli/format/field_table.h"
#include "cli/format/json.h"
#include "sql/command.h"
#include "sql/lexer.h"

#define DIGITS		"0123456789"
#define LETTERS		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define PARAMETERS_MAX	65535	/* of a message of its protocol */
#define BLOCK_BYTES	8192	/* of PostgreSQL's temporary files, unless built otherwise */

/* Append @name; other bytes than those of names are in hexadecimal, after @open. */
static void put_name(struct output *out, const char *name, const char *open, const char *close)
{
	size_t len;

	for (;; name++) {
		len = strspn(name, DIGITS LETTERS "_-.");
		output_bytes(out, name, len);
		name += len;
		if (!*name)
			return;
		output_printf(out, "%s%02x%s", open, (unsigned int)(uint8_t)*name, close);
	}
}

/* Append @len bytes of a text as a line of its own. */
static void put_line(struct output *out, const char *p, size_t len, bool truncated)
{
	output_string(out, "\n\t");
	escape_terminal(out, p, len, truncated);
}

typedef void put_fn(struct output *out, const char *p, size_t len, bool truncated);

/* Append @len bytes of a text in lines of its own, each by @put. */
static void put_lines(struct output *out, const char *p, size_t len, bool truncated, put_fn *put)
{
	const char *end = p + len, *newline;

	do {
		newline = memchr(p, '\n', (size_t)(end - p));
		put(out, p, (size_t)((newline ? newline : end) - p), !newline && truncated);
		p = newline ? newline + 1 : end;
	} while (newline);
}

static void put_text(struct output *out, const struct statement *st, put_fn *put)
{
	put_lines(out, st->text ? st->text : "", st->text_len, st->truncated, put);
	field_query_note(out, st);
}

/*
 * PostgreSQL's log: pgBadger matches messages at any position of an entry's first line, so the text
 * begins in the second one. It takes a level in a line, "ERROR: ", for the beginning of an entry.
 */

/* As put_line(), broken before the colon of what may be a level. */
static void put_levels(struct output *out, const char *p, size_t len, bool truncated)
{
	size_t from = 0;

	for (size_t at = 1; at < len; at++) {
		if (p[at] != ':' || p[at - 1] < 'A' || p[at - 1] > 'Z' ||
		    (at + 1 < len && !lexer_is_blank(p[at + 1])))
			continue;
		put_line(out, p + from, at - from, false);
		from = at;
	}
	put_line(out, p + from, len - from, truncated);
}

/* Return whether pgBadger accepts @client: a host, or an address, and perhaps its port. */
static bool pgbadger_accepts(const char *client)
{
	size_t host = strspn(client, DIGITS LETTERS "-.");
	size_t address = strspn(client, DIGITS ":abcdef");

	if (!strcmp(client, "[local]"))
		return true;
	client += host > address ? host : address;
	return !client[strspn(client, "(" DIGITS ")")];
}

/* Append the beginning of a line, "%m [%p]: user=%u,db=%d,app=%a,client=%r ", and @level. */
static void pgbadger_line(struct output *out, const struct statement *st, const char *level)
{
	static const char *const keys[] = { ": user=", ",db=", ",app=" };
	const char *const names[] = { st->who->user, st->who->database, st->who->application };
	char time[JSON_TIME];

	json_time_text(time, st->wall_ns + st->duration_ns);
	output_printf(out, "%.10s %.12s UTC [%u]", time, time + 11, st->who->pid);
	for (int i = 0; i < 3; i++) {
		output_string(out, keys[i]);
		if (*names[i])
			put_name(out, names[i], "[", "]");
		else
			output_string(out, "[unknown]");
	}
	output_string(out, ",client=");
	if (*st->who->client && pgbadger_accepts(st->who->client))
		output_string(out, st->who->client);
	output_char(out, ' ');
	output_string(out, level);
}

/* End an entry that is about a statement by its text. */
static void pgbadger_text(struct output *out, const struct statement *st)
{
	output_char(out, '\n');
	pgbadger_line(out, st, "STATEMENT:  ");
	put_text(out, st, put_levels);
	output_char(out, '\n');
}

/* Skip a token of PostgreSQL. Return the number of the parameter that it is, or 0. */
static unsigned int skip_token(struct lexer *l)
{
	unsigned int number = 0;
	int c = lexer_peek(l, 0);

	if (c == '$' && lexer_is_digit(lexer_peek(l, 1))) {
		for (l->pos++; lexer_is_digit(c = lexer_peek(l, 0)); l->pos++)
			if (number <= PARAMETERS_MAX)
				number = number * 10 + (unsigned int)(c - '0');
		return number <= PARAMETERS_MAX ? number : 0;
	}
	if (c == '$' && lexer_skip_dollar(l))
		return 0;
	if (lexer_lower(c) == 'e' && lexer_peek(l, 1) == '\'') {
		l->pos++;
		lexer_skip_quoted(l, BACKSLASH_ESCAPE);
	} else if (c == '\'' || c == '"') {
		lexer_skip_quoted(l, c == '"' ? BACKSLASH_PLAIN : BACKSLASH_SESSION);
	} else if (lexer_is_name_start(l, c)) {
		lexer_skip_word(l);
	} else if (lexer_is_digit(c)) {
		lexer_skip_number(l);
	} else {
		l->pos++;
	}
	return 0;
}

/*
 * Append the values of the parameters, which are unknown: themselves. Without, pgBadger deletes the
 * parameters from the text. It has more bytes than parameters, unless it is made up.
 */
static void pgbadger_parameters(struct output *out, const struct statement *st)
{
	struct lexer l = { .text = (const unsigned char *)st->text, .end = st->text_len,
			   .cut = st->truncated, .settled = true };
	unsigned int most = 0;

	while (st->text && l.pos < l.end) {
		unsigned int number = lexer_skip_blank(&l) ? 0 : skip_token(&l);

		most = number > most ? number : most;
	}
	most = most < st->text_len ? most : (unsigned int)st->text_len;
	if (!most)
		return;
	pgbadger_line(out, st, "DETAIL:  parameters: ");
	for (unsigned int i = 1; i <= most; i++)
		output_printf(out, "%s$%u = '$%u'", i > 1 ? ", " : "", i, i);
	output_char(out, '\n');
}

static void pgbadger_error(struct output *out, const struct statement *st)
{
	pgbadger_line(out, st, "ERROR:  statement failed");
	if (*st->sqlstate)
		output_printf(out, " with SQLSTATE %s", st->sqlstate);
	if (st->no_text)
		output_char(out, '\n');
	else
		pgbadger_text(out, st);
}

static void pgbadger_statement(struct output *out, const struct statement *st)
{
	const struct event_breakdown *why = st->why;

	if (why && why->ns[BREAKDOWN_LOCK]) {
		pgbadger_line(out, st, "LOG:  process ");
		output_u64(out, st->who->pid);
		output_string(out, " acquired lock on unknown object after ");
		output_fixed(out, why->ns[BREAKDOWN_LOCK], 6);
		output_string(out, " ms");
		pgbadger_text(out, st);
	}
	if (why && why->used & 1u << USE_TEMP_WRITTEN && why->use[USE_TEMP_WRITTEN]) {
		pgbadger_line(out, st, "LOG:  temporary file: path \"unknown\", size ");
		output_u64(out, why->use[USE_TEMP_WRITTEN] * BLOCK_BYTES);
		pgbadger_text(out, st);
	}
	if (st->failed)
		pgbadger_error(out, st);
	if (st->failed && st->no_text)
		return;
	pgbadger_line(out, st, "LOG:  duration: ");
	output_fixed(out, st->duration_ns, 6);
	output_string(out, st->prepare ? " ms  parse <unnamed>: " : " ms  statement: ");
	put_text(out, st, put_levels);
	output_char(out, '\n');
	if (st->of && !st->level && command_runs(st->text, st->text_len) == COMMAND_EXECUTE) {
		pgbadger_line(out, st, "DETAIL:  prepare: ");
		put_lines(out, st->of, st->of_len, st->of_cut, put_levels);
		output_char(out, '\n');
	}
	pgbadger_parameters(out, st);
}

/* The slow log of MySQL and MariaDB. */

/* Append @key and @name. */
static void slowlog_name(struct output *out, const char *key, const char *name)
{
	output_string(out, key);
	put_name(out, name, "\\x", "");
}

/* Append the lines of MariaDB's log_slow_verbosity=query_plan, if the plan has any of it. */
static void slowlog_plan(struct output *out, const struct statement *st)
{
	static const struct {
		const char *key;
		enum plan bit;
	} table[] = {
		{ "\n# Full_scan: ", PLAN_FULL_SCAN }, { "  Full_join: ", PLAN_FULL_JOIN },
		{ "  Tmp_table: ", PLAN_TMP_TABLE }, { "  Tmp_table_on_disk: ", PLAN_TMP_DISK },
		{ "\n# Filesort: ", PLAN_FILESORT },
		{ "  Filesort_on_disk: ", PLAN_FILESORT_DISK },
		{ "  Priority_queue: ", PLAN_PRIORITY_QUEUE },
	};

	if (!st->has_plan || !(st->plan & ~PLAN_INDEX))
		return;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		output_string(out, table[i].key);
		output_string(out, st->plan & 1u << table[i].bit ? "Yes" : "No");
	}
}

/*
 * MySQL's log has all of this in one line, MariaDB's in two, of which the second begins with the
 * rows affected. mysqldumpslow and mariadb-dumpslow require their own, and the order.
 */
static void slowlog_numbers(struct output *out, const struct statement *st, bool mysql)
{
	const char *next = mysql || !st->has_affected ? "  " : "\n# ";

	output_string(out, "# Query_time: ");
	output_fixed(out, st->duration_ns / 1000, 6);
	if (st->has_lock) {
		output_string(out, "  Lock_time: ");
		output_fixed(out, st->lock_ns / 1000, 6);
	}
	if (st->has_counts || st->has_examined)
		json_number(out, "  Rows_sent: ", st->sent);
	if (st->has_examined)
		json_number(out, "  Rows_examined: ", st->examined);
	if (st->has_affected) {
		output_string(out, next);
		json_number(out, "Rows_affected: ", st->affected);
		next = "  ";
	}
	if (*st->who->database) {
		output_string(out, next);
		slowlog_name(out, "Schema: ", st->who->database);
		next = "  ";
	}
	if (st->has_status && (!st->failed || st->error_code)) {
		output_string(out, next);
		json_number(out, "Last_errno: ", st->error_code);
	}
	slowlog_plan(out, st);
	if (*st->who->database) {
		slowlog_name(out, "\nuse ", st->who->database);
		output_char(out, ';');
	}
}

static void slowlog_statement(struct output *out, const struct statement *st)
{
	/* The products' logs differ, and a recording has no more of a product than its names. */
	bool mysql = !strcmp(st->server->otel_system, "mysql");
	char time[JSON_TIME];

	if (st->prepare)
		return;
	json_time_text(time, st->wall_ns + st->duration_ns);
	if (mysql)
		output_printf(out, "# Time: %.26sZ\n", time);
	else
		output_printf(out, "# Time: %.2s%.2s%.2s %.8s\n", time + 2, time + 5, time + 8,
			      time + 11);
	slowlog_name(out, "# User@Host: ", st->who->user);
	slowlog_name(out, "[", st->who->user);
	slowlog_name(out, "] @ ", st->who->client);
	output_string(out, " []");
	if (st->who->connection)
		json_number(out, "  Id: ", st->who->connection);
	output_char(out, '\n');
	slowlog_numbers(out, st, mysql);
	json_number(out, "\nSET timestamp=", st->wall_ns / 1000000000);
	output_char(out, ';');
	put_text(out, st, put_line);
	output_string(out, ";\n");
}

const struct format_log format_logs[] = {
	{ "pgbadger", pgbadger_statement },
	{ "slowlog", slowlog_statement },
	{ NULL, NULL },
};
