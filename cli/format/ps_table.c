// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/ps_table.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/format/escape.h"
#include "cli/format/json.h"

#define INDENT		2
#define MS_DECIMALS	6	/* of ns */

/* The state as pg_stat_activity calls it, and shorter; NULL: unknown. */
static const struct {
	const char *name, *label;
} states[] = {
	[PS_UNKNOWN] = { NULL, "-" },
	[PS_ACTIVE] = { "active", "active" },
	[PS_IDLE] = { "idle", "idle" },
	[PS_IN_TRANSACTION] = { "idle in transaction", "in xact" },
	[PS_ABORTED] = { "idle in transaction (aborted)", "aborted" },
};

/* A cell that is made from numbers. */
struct ps_cell {
	char buf[PS_BLOCKERS * 21 + 8];
};

/* Return the time from @since_ns to @now_ns. */
static uint64_t age(uint64_t since_ns, uint64_t now_ns)
{
	return since_ns < now_ns ? now_ns - since_ns : 0;
}

static const char *cell_number(struct ps_cell *cell, uint64_t number)
{
	snprintf(cell->buf, sizeof(cell->buf), "%llu", (unsigned long long)number);
	return cell->buf;
}

/* In seconds. */
static const char *cell_age(struct ps_cell *cell, uint64_t since_ns, uint64_t now_ns)
{
	if (!since_ns)
		return "-";
	cell->buf[output_format(cell->buf, age(since_ns, now_ns) / 1000000, 3)] = '\0';
	return cell->buf;
}

static const char *cell_id(const struct ps_session *s, uint64_t now_ns, struct ps_cell *cell)
{
	(void)now_ns;
	return cell_number(cell, ps_session_id(s));
}

static const char *cell_pid(const struct ps_session *s, uint64_t now_ns, struct ps_cell *cell)
{
	(void)now_ns;
	return cell_number(cell, s->who.pid);
}

static const char *cell_server(const struct ps_session *s, uint64_t now_ns, struct ps_cell *cell)
{
	(void)now_ns;
	return s->server->pid ? cell_number(cell, s->server->pid) : "-";
}

static const char *cell_engine(const struct ps_session *s, uint64_t now_ns, struct ps_cell *cell)
{
	(void)now_ns;
	(void)cell;
	return describe_title(s->server->engine, s->server->version);
}

static const char *cell_container(const struct ps_session *s, uint64_t now_ns,
				  struct ps_cell *cell)
{
	(void)now_ns;
	(void)cell;
	return s->server->container;
}

static const char *cell_state(const struct ps_session *s, uint64_t now_ns, struct ps_cell *cell)
{
	(void)now_ns;
	(void)cell;
	return states[s->state].label;
}

static const char *cell_transaction(const struct ps_session *s, uint64_t now_ns,
				    struct ps_cell *cell)
{
	return cell_age(cell, s->transaction_ns, now_ns);
}

static const char *cell_time(const struct ps_session *s, uint64_t now_ns, struct ps_cell *cell)
{
	return cell_age(cell, s->statement_ns ? s->statement_ns : s->state_ns, now_ns);
}

static const char *cell_blockers(const struct ps_session *s, uint64_t now_ns,
				 struct ps_cell *cell)
{
	size_t at = 0;

	(void)now_ns;
	for (unsigned int i = 0; i < s->nblockers; i++)
		at += (size_t)(s->blockers[i] ?
			snprintf(cell->buf + at, sizeof(cell->buf) - at, "%s%llu", i ? "," : "",
				 (unsigned long long)s->blockers[i]) :
			snprintf(cell->buf + at, sizeof(cell->buf) - at, "%sprepared",
				 i ? "," : ""));
	return at ? cell->buf : "";
}

struct ps_column {
	const char *name, *header;
	/* Return the text, maybe in @cell; "": unknown. NULL: it is at offset ->member. */
	const char *(*get)(const struct ps_session *s, uint64_t now_ns, struct ps_cell *cell);
	size_t member;
	unsigned int width;		/* 0: the statement */
	bool right;
};

#define STRING(member, width)	NULL, offsetof(struct ps_session, member), width, false

static const struct ps_column columns[] = {
	{ "id", "ID", cell_id, 0, 8, true },
	{ "pid", "PID", cell_pid, 0, 8, true },
	{ "server", "SERVER", cell_server, 0, 8, true },
	{ "engine", "ENGINE", cell_engine, 0, 10, false },
	{ "user", "USER", STRING(who.user, 12) },
	{ "db", "DB", STRING(who.database, 12) },
	{ "client", "CLIENT", STRING(who.client, 16) },
	{ "app", "APP", STRING(who.application, 12) },
	{ "backend", "BACKEND", STRING(who.backend, 18) },
	{ "container", "CONTAINER", cell_container, 0, 12, false },
	{ "state", "STATE", cell_state, 0, 7, false },
	{ "xact", "XACT(s)", cell_transaction, 0, 9, true },
	{ "time", "TIME(s)", cell_time, 0, 9, true },
	{ "wait", "WAIT", STRING(wait, 18) },
	{ "stage", "STAGE", STRING(stage, 24) },
	{ "blocked_by", "BLOCKED BY", cell_blockers, 0, 10, false },
	{ "query", "QUERY", NULL, 0, 0, false },
};

#define COLUMNS	(sizeof(columns) / sizeof(columns[0]))

int ps_table_columns(struct ps_table *table, const char *spec, struct suggestion *bad)
{
	size_t len, i;

	for (;; spec += len + 1) {
		len = strcspn(spec, ",");
		*bad = (struct suggestion){ .word = spec, .len = len };
		for (i = 0; i < COLUMNS; i++) {
			if (strlen(columns[i].name) == len && !memcmp(columns[i].name, spec, len))
				break;
			suggestion_add(bad, columns[i].name);
		}
		if (i == COLUMNS)
			return -ENOENT;
		if (table->count == PS_COLUMNS)
			return -E2BIG;
		table->column[table->count++] = &columns[i];
		if (!spec[len])
			return 0;
	}
}

void ps_table_names(struct output *out)
{
	for (size_t i = 0; i < COLUMNS; i++)
		output_printf(out, "%s%s", i ? ", " : "", columns[i].name);
}

/* Append @text aligned in column @i; the last one of a row is not padded. Return its width. */
static size_t table_cell(const struct ps_table *table, unsigned int i, const char *text)
{
	const struct ps_column *column = table->column[i];
	size_t len = strlen(text), width = escape_width(text, len) + (i > 0);
	size_t room = column->width + (i > 0), pad = width < room ? room - width : 0;

	output_spaces(table->out, (column->right ? pad : 0) + (i > 0));
	escape_terminal(table->out, text, len, false);
	if (!column->right && i + 1 < table->count)
		output_spaces(table->out, pad);
	return width + pad;
}

void ps_table_header(const struct ps_table *table)
{
	for (unsigned int i = 0; i < table->count; i++)
		table_cell(table, i, table->column[i]->header);
	output_char(table->out, '\n');
}

/* Append the statement, cut to what fits into a line of which @used columns are taken. */
static void table_statement(const struct ps_table *table, const struct ps_session *s, size_t used)
{
	size_t len = s->len, room = table->width > used ? table->width - used : 1;

	if (table->width)
		len = escape_fit(s->text, len, room, NULL);
	if (s->text) {
		escape_terminal(table->out, s->text, len, true);
	} else if (s->background && *s->who.backend) {
		/* As ps(1) has it. */
		output_char(table->out, '[');
		escape_terminal(table->out, s->who.backend, strlen(s->who.backend), true);
		output_char(table->out, ']');
	} else {
		output_char(table->out, '-');
	}
}

void ps_table_row(const struct ps_table *table, const struct ps_session *session,
		  unsigned int depth, uint64_t now_ns)
{
	size_t used = 0;

	for (unsigned int i = 0; i < table->count; i++) {
		const struct ps_column *column = table->column[i];
		const char *text = (const char *)session + column->member;
		struct ps_cell cell;

		if (column->get)
			text = column->get(session, now_ns, &cell);
		if (column->width) {
			used += table_cell(table, i, *text ? text : "-");
			continue;
		}
		output_spaces(table->out, (i > 0) + depth * INDENT);
		table_statement(table, session, used + (i > 0) + depth * INDENT);
	}
	output_char(table->out, '\n');
}

/* Append @key and the time from @since_ns on in ms, unless it is unknown. */
static void json_age(struct output *out, const char *key, uint64_t since_ns, uint64_t now_ns)
{
	if (!since_ns)
		return;
	output_string(out, key);
	output_fixed(out, age(since_ns, now_ns), MS_DECIMALS);
}

void ps_json(struct output *out, const struct ps_session *s, uint64_t now_ns)
{
	json_head(out, "{\"type\":\"session\",\"time\":\"", now_ns, s->server);
	json_number(out, ",\"pid\":", s->who.pid);
	json_who(out, &s->who);
	if (s->leader)
		json_number(out, ",\"leader_pid\":", s->leader);
	json_string(out, ",\"state\":\"", states[s->state].name);
	json_age(out, ",\"duration_ms\":", s->statement_ns, now_ns);
	json_age(out, ",\"state_ms\":", s->state_ns, now_ns);
	json_age(out, ",\"transaction_ms\":", s->transaction_ns, now_ns);
	json_known(out, ",\"wait\":\"", s->wait);
	json_known(out, ",\"stage\":\"", s->stage);
	for (unsigned int i = 0; i < s->nblockers; i++)
		json_number(out, i ? "," : ",\"blocked_by\":[", s->blockers[i]);
	output_string(out, s->nblockers ? "]" : "");
	if (s->text) {
		output_string(out, ",\"query\":\"");
		escape_json(out, s->text, s->len, s->cut);
		output_string(out, s->cut ? "\",\"truncated\":true" : "\",\"truncated\":false");
	}
	output_string(out, "}\n");
}
