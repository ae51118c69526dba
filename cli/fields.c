/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/fields.h"

#include <errno.h>
#include <string.h>

#include "bpf/event.h"
#include "cli/escape.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define NS_PER_S 1000000000ull

/* One value: text that may be foreign, in @buf or elsewhere; NULL: not known. */
struct cell {
	const char *text;
	size_t len;
	unsigned int which;		/* the column's */
	char buf[32];
};

struct column {
	const char *name, *header, *help;
	unsigned int width;		/* 0: as wide as it is */
	bool right;			/* aligned */
	/* Fills a cell; NULL: the query, which is not one */
	void (*get)(struct column_view *view, const struct statement *st, struct cell *cell);
	unsigned int which;		/* of those that differ in nothing else */
};

/* An empty one stays a "-": a row keeps its number of words. */
static void cell_string(struct cell *cell, const char *text)
{
	if (!text || !*text)
		return;
	cell->text = text;
	cell->len = strlen(text);
}

static void cell_number(struct cell *cell, uint64_t value, unsigned int decimals)
{
	cell->text = cell->buf;
	cell->len = output_format(cell->buf, value, decimals);
}

/* Nanoseconds to the nearest microsecond, as printf rounds. */
static uint64_t microseconds(uint64_t ns)
{
	return ns / 1000 + (ns % 1000 >= 500);
}

/* A statement that was running at the start has a negative time. */
static void get_time(struct column_view *view, const struct statement *st, struct cell *cell)
{
	bool before = st->start_ns < view->start_ns;
	uint64_t ns = before ? view->start_ns - st->start_ns : st->start_ns - view->start_ns;

	cell->text = cell->buf;
	cell->buf[0] = '-';
	cell->len = before + output_format(cell->buf + before, microseconds(ns), 6);
}

/* Only once a minute: localtime_r() takes a lock and searches the time zone's table. */
static void wall_minute(struct column_view *view, uint64_t minute)
{
	char text[OUTPUT_NUMBER];

	output_clock(text, minute * 60 * NS_PER_S, 3);
	memcpy(view->wall_text, text, sizeof(view->wall_text));
	view->wall_minute = minute;
}

static void get_wall(struct column_view *view, const struct statement *st, struct cell *cell)
{
	uint64_t us = st->wall_ns / 1000, minute = us / 60000000, rest = us % 60000000;
	char *seconds = cell->buf + sizeof(view->wall_text);

	if (minute != view->wall_minute)
		wall_minute(view, minute);
	memcpy(cell->buf, view->wall_text, sizeof(view->wall_text));
	*seconds = '0';		/* the leading one, where it is below 10 */
	cell->text = cell->buf;
	cell->len = sizeof(view->wall_text) + (rest < 10000000);
	cell->len += output_format(cell->buf + cell->len, rest, 6);
}

static void get_pid(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	cell_number(cell, st->pid, 0);
}

static void get_tid(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	cell_number(cell, st->tid, 0);
}

static void get_ms(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	cell_number(cell, microseconds(st->duration_ns), 3);
}

static void get_user(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	cell_string(cell, st->user);
}

static void get_db(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	cell_string(cell, st->database);
}

static void get_client(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	cell_string(cell, st->client);
}

static void get_container(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	cell_string(cell, st->container);
}

static void get_connection(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	if (st->connection_id)
		cell_number(cell, st->connection_id, 0);
}

static void get_errno(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	if (st->error_code)
		cell_number(cell, st->error_code, 0);
}

static void get_rows(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	if (st->has_rows)
		cell_number(cell, st->rows, 0);
}

static void get_status(struct column_view *view, const struct statement *st, struct cell *cell)
{
	const char *ended = st->failed ? "error" : "ok";

	(void)view;
	cell_string(cell, st->running ? "running" : st->has_status ? ended : NULL);
}

static void get_engine(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	cell_string(cell, st->engine);
}

static void get_part(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	if (st->why)
		cell_number(cell, microseconds(st->why->ns[cell->which]), 3);
}

static void get_phase(struct column_view *view, const struct statement *st, struct cell *cell)
{
	(void)view;
	if (st->why && st->why->phases[cell->which].first_ns)
		cell_number(cell, microseconds(st->why->phases[cell->which].ns), 3);
}

#define PART(name, header, help, which)		{ name, header, help, 8, true, get_part, which }
#define PHASE(name, header, which)					\
	{ name, header, "milliseconds of this phase (postgresql)", 8, true, get_phase, which }

/* The first is the time; the default output has the widths that scripts know. */
static const struct column columns[] = {
	{ "time", "TIME(s)", "its start, seconds since dbslower's own; the time of day with -t",
	  14, false, get_time, 0 },
	{ "pid", "PID", "the server's process", 7, false, get_pid, 0 },
	{ "tid", "TID", "the server's thread", 7, false, get_tid, 0 },
	{ "ms", "MS", "how long it took, in milliseconds", 8, true, get_ms, 0 },
	{ "user", "USER", "the database user", 12, false, get_user, 0 },
	{ "db", "DB", "the database", 12, false, get_db, 0 },
	{ "client", "CLIENT", "where the connection comes from", 21, false, get_client, 0 },
	{ "container", "CONTAINER", "the container that the server runs in", 12, false,
	  get_container, 0 },
	{ "conn", "CONN", "the server's number for the connection (mysql)", 8, true,
	  get_connection, 0 },
	{ "rows", "ROWS", "the number of rows, as the server counts", 8, true, get_rows, 0 },
	{ "status", "STATUS", "ok; error: failed, was cancelled or timed out; running",
	  6, false, get_status, 0 },
	{ "errno", "ERRNO", "the server's number for the error (mysql)", 6, true, get_errno, 0 },
	{ "engine", "ENGINE", "postgresql or mysql", 10, false, get_engine, 0 },
	PART("cpu", "CPU", "milliseconds of it on a CPU", BREAKDOWN_CPU),
	PART("runqueue", "RUNQUEUE", "... waiting for a CPU", BREAKDOWN_RUNQUEUE),
	PART("disk", "DISK", "... for storage", BREAKDOWN_DISK),
	PART("fsync", "FSYNC", "... for what was written to be there", BREAKDOWN_FSYNC),
	PART("lock", "LOCK", "... for a row, a table, an advisory lock", BREAKDOWN_LOCK),
	PART("lwlock", "LWLOCK", "... for a lock inside the server (postgresql)", BREAKDOWN_LWLOCK),
	PART("futex", "FUTEX", "... for a mutex or a condition", BREAKDOWN_FUTEX),
	PART("network", "NETWORK", "... for the client", BREAKDOWN_NETWORK),
	PART("sleep", "SLEEP", "... asleep", BREAKDOWN_SLEEP),
	PART("ipc", "IPC", "... for another process of the server", BREAKDOWN_IPC),
	PART("other", "OTHER", "... for what is not known", BREAKDOWN_OTHER),
	PHASE("parse", "PARSE", PHASE_PARSE),
	PHASE("rewrite", "REWRITE", PHASE_REWRITE),
	PHASE("plan", "PLAN", PHASE_PLAN),
	PHASE("execute", "EXECUTE", PHASE_EXECUTE),
	{ "query", "QUERY", "the statement's text", 0, false, NULL, 0 },
};

static const struct column wall_column = {
	"time", "TIME", "the time of day", 15, false, get_wall, 0,
};

static const struct column *column_find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (strlen(columns[i].name) == len && !memcmp(columns[i].name, name, len))
			return &columns[i];
	}
	return NULL;
}

int column_parse(struct column_list *list, const char *spec, const char **bad, size_t *bad_len)
{
	const char *name = spec;

	for (;;) {
		size_t len = strcspn(name, ",");
		const struct column *found = column_find(name, len);

		*bad = name;
		*bad_len = len;
		if (!found)
			return len ? -ENOENT : -EINVAL;
		if (list->count == COLUMN_MAX)
			return -E2BIG;
		list->column[list->count++] = found;
		if (!name[len])
			return 0;
		name += len + 1;
	}
}

void column_default(struct column_list *list)
{
	const char *bad;
	size_t bad_len;

	list->count = 0;
	column_parse(list, "time,pid,ms,query", &bad, &bad_len);
}

#define HELP_WIDTH	11	/* of a name and the space behind it */

/* Whether one of the columns is filled by @get. */
static bool column_has(const struct column_list *list,
		       void (*get)(struct column_view *, const struct statement *, struct cell *))
{
	for (unsigned int i = 0; i < list->count; i++)
		if (list->column[i]->get == get)
			return true;
	return false;
}

bool column_wants_rows(const struct column_list *list)
{
	return column_has(list, get_rows);
}

bool column_wants_identity(const struct column_list *list)
{
	return column_has(list, get_user) || column_has(list, get_db) ||
	       column_has(list, get_client) || column_has(list, get_container);
}

bool column_wants_why(const struct column_list *list)
{
	return column_has(list, get_part) || column_wants_phases(list);
}

bool column_wants_phases(const struct column_list *list)
{
	return column_has(list, get_phase);
}

void column_names(struct output *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (i)
			output_string(out, ", ");
		output_string(out, columns[i].name);
	}
}

void column_help(struct output *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		size_t width = strlen(columns[i].name);

		output_string(out, "  ");
		output_string(out, columns[i].name);
		output_spaces(out, width < HELP_WIDTH ? HELP_WIDTH - width : 1);
		output_string(out, columns[i].help);
		output_char(out, '\n');
	}
}

void column_init(struct column_view *view, const struct column_list *list, uint64_t start_ns,
		 bool wall)
{
	*view = (struct column_view){ .list = *list, .start_ns = start_ns, .wall = wall };
	for (unsigned int i = 0; wall && i < list->count; i++) {
		if (list->column[i] == &columns[0])
			view->list.column[i] = &wall_column;
	}
	wall_minute(view, 0);
}

/* Adds @text in @column's width; nothing follows the last one. */
static void put_cell(struct output *out, const struct column *column, const char *text, size_t len,
		     bool last)
{
	size_t width = column->width && (column->right || !last) ? escape_width(text, len) : 0;
	size_t pad = column->width > width ? column->width - width : 0;

	if (column->right)
		output_spaces(out, pad);
	escape_terminal(out, text, len, false);
	if (!last)
		output_spaces(out, column->right ? 1 : pad + 1);
}

/* Never cut to a width, wherever it stands: what is cut is marked as such. */
static void put_query(struct output *out, const struct statement *st, bool last)
{
	if (!st->text)
		output_string(out, st->running ? "[text not known]" :
				   st->no_text ? "[no text]" : "[text unreadable]");
	else
		escape_terminal(out, st->text, st->text_len, st->truncated);
	if (st->text && st->truncated) {
		output_string(out, st->has_query_bytes ? " [cut: " : " [cut at ");
		output_u64(out, st->original_len ? st->original_len : st->text_len);
		if (st->has_query_bytes) {
			output_string(out, " of ");
			output_u64(out, st->query_bytes);
		}
		output_string(out, " bytes]");
	}
	if (!last)
		output_char(out, ' ');
}

void column_header(struct output *out, const struct column_view *view)
{
	for (unsigned int i = 0; i < view->list.count; i++) {
		const struct column *column = view->list.column[i];

		put_cell(out, column, column->header, strlen(column->header),
			 i + 1 == view->list.count);
	}
	output_char(out, '\n');
}

void column_row(struct output *out, struct column_view *view, const struct statement *st)
{
	for (unsigned int i = 0; i < view->list.count; i++) {
		const struct column *column = view->list.column[i];
		bool last = i + 1 == view->list.count;
		struct cell cell = { .which = column->which };

		if (!column->get) {
			put_query(out, st, last);
			continue;
		}
		column->get(view, st, &cell);
		if (cell.text)
			put_cell(out, column, cell.text, cell.len, last);
		else
			put_cell(out, column, "-", 1, last);
	}
	output_char(out, '\n');
}
