// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/log.h"

#include <string.h>

#include "bpf/event.h"
#include "bpf/plan.h"
#include "cli/format/escape.h"
#include "cli/format/field_table.h"
#include "cli/format/json.h"

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

/* Return where the line at @p is to be broken, or NULL. A newline there is not part of it. */
static const char *line_newline(const char *p, const char *end)
{
	return memchr(p, '\n', (size_t)(end - p));
}

/* Append the text in lines of its own, which @broken ends as line_newline() does. */
static void put_text(struct output *out, const struct statement *st,
		     const char *(*broken)(const char *p, const char *end))
{
	const char *p = st->text ? st->text : "", *end = p + st->text_len, *line;

	do {
		line = broken(p, end);
		output_string(out, "\n\t");
		escape_terminal(out, p, (size_t)((line ? line : end) - p), !line && st->truncated);
		p = line ? line + (*line == '\n') : end;
	} while (line);
	field_query_note(out, st);
}

/*
 * PostgreSQL's log: pgBadger matches messages at any position of an entry's first line, so the text
 * begins in the second one. It takes a level in a line, "ERROR: ", for the beginning of an entry.
 */

static const char *line_level(const char *p, const char *end)
{
	const char *newline = line_newline(p, end), *stop = newline ? newline : end;

	for (const char *at = p + 1; at + 1 < stop; at++)
		if (*at == ':' && (at[1] == ' ' || at[1] == '\t') && at[-1] >= 'A' && at[-1] <= 'Z')
			return at;
	return newline;
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
	put_text(out, st, line_level);
	output_char(out, '\n');
}

/*
 * Append the values of the parameters, which are unknown: themselves. Without, pgBadger deletes the
 * parameters from the text. It has more bytes than parameters, unless it is made up.
 */
static void pgbadger_parameters(struct output *out, const struct statement *st)
{
	const char *end = st->text ? st->text + st->text_len : st->text;
	unsigned int most = 0;

	for (const char *p = st->text; p < end && (p = memchr(p, '$', (size_t)(end - p)));) {
		unsigned int number = 0;

		while (++p < end && *p >= '0' && *p <= '9' && number < PARAMETERS_MAX)
			number = number * 10 + (unsigned int)(*p - '0');
		most = number > most ? number : most;
	}
	most = most < st->text_len ? most : (unsigned int)st->text_len;
	if (most)
		pgbadger_line(out, st, "DETAIL:  parameters: ");
	for (unsigned int i = 1; i <= most; i++)
		output_printf(out, "%s$%u = '$%u'", i > 1 ? ", " : "", i, i);
	if (most)
		output_char(out, '\n');
}

static void pgbadger_error(struct output *out, const struct statement *st)
{
	pgbadger_line(out, st, "ERROR:  statement failed");
	if (*st->sqlstate)
		output_printf(out, " with SQLSTATE %s", st->sqlstate);
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
	pgbadger_line(out, st, "LOG:  duration: ");
	output_fixed(out, st->duration_ns, 6);
	output_string(out, st->prepare ? " ms  parse <unnamed>: " : " ms  statement: ");
	put_text(out, st, line_level);
	output_char(out, '\n');
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
	put_text(out, st, line_newline);
	output_string(out, ";\n");
}

const struct format_log format_logs[] = {
	{ "pgbadger", pgbadger_statement },
	{ "slowlog", slowlog_statement },
	{ NULL, NULL },
};
