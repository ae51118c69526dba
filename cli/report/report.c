// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/cells.h"
#include "cli/report/page.h"
#include "cli/report/state.h"

#define DURATION_MAX	(1ull << 62)
#define TEXT_MAX	4096		/* of a name, a command line or a sentence */

/* Return a copy, "" of NULL, cut; NULL: no memory. */
static char *copy(const char *text)
{
	return strndup(text ? text : "", TEXT_MAX);
}

struct report *report_new(const struct report_config *config)
{
	struct report *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->host = copy(config->host);
	r->threshold = copy(config->threshold);
	r->version = copy(config->version);
	r->source = copy(config->source);
	r->columns = calloc(REPORT_COLUMNS, sizeof(*r->columns));
	r->marks = calloc(2 * REPORT_COLUMNS, sizeof(*r->marks));
	r->groups = top_new(TOP_ENTRIES);
	r->all = top_new(1);
	r->rest = top_new(1);
	if (!r->host || !r->threshold || !r->version || !r->source || !r->columns || !r->marks ||
	    !r->groups || !r->all || !r->rest) {
		report_free(r);
		return NULL;
	}
	r->begin_ns = config->begin_ns;
	r->end_ns = config->end_ns > config->begin_ns ? config->end_ns : 0;
	report_axis_set(&r->axis, r->begin_ns, r->end_ns);
	return r;
}

void report_server(struct report *r, const char *engine, const char *version, uint32_t pid,
		   const char *path, const char *container)
{
	char *to[] = { copy(engine), copy(version), copy(path), copy(container) };
	struct report_server *server = r->servers;
	bool copied = to[0] && to[1] && to[2] && to[3], known = false;

	for (unsigned int i = 0; copied && i < r->nservers && !known; i++, server++) {
		known = (server->pid == pid || !server->pid || !pid) &&
			!strcmp(server->path, to[2]) && !strcmp(server->container, to[3]) &&
			!strcmp(server->version, to[1]);
		if (known && !server->pid)
			server->pid = pid;
	}
	if (copied && !known && r->nservers < REPORT_SERVERS) {
		*server = (struct report_server){ to[0], to[1], to[2], to[3], pid };
		r->nservers++;
		return;
	}
	r->more_servers += !known;
	for (int i = 0; i < 4; i++)
		free(to[i]);
}

/* Return a copy of @name that lives as long as the report; those beyond the limit share one. */
static const char *engine_name(struct report *r, const char *name)
{
	name = name ? name : "";
	for (unsigned int i = 0; i < r->nengines; i++)
		if (!strncmp(r->engines[i], name, TEXT_MAX))
			return r->engines[i];
	if (r->nengines == REPORT_ENGINES || !(r->engines[r->nengines] = copy(name)))
		return "other";
	return r->engines[r->nengines++];
}

/* Return a time of the recording: what ran before or after it counts at its begin or end. */
static uint64_t within(const struct report *r, uint64_t wall_ns)
{
	if (r->begin_ns && wall_ns < r->begin_ns)
		return r->begin_ns;
	return r->end_ns && wall_ns > r->end_ns ? r->end_ns : wall_ns;
}

/* Add @ns of each part, or of an unknown one, to a column, in the proportion of @share to all. */
static void add_parts(struct report_column *column, const struct statement *s, double share)
{
	if (!s->why) {
		column->part_ns[REPORT_UNKNOWN] += (uint64_t)((double)s->duration_ns * share);
		return;
	}
	for (int i = 0; i < BREAKDOWN_PARTS; i++) {
		uint64_t ns = s->why->ns[i] < s->duration_ns ? s->why->ns[i] : s->duration_ns;

		column->part_ns[i] += (uint64_t)((double)ns * share);
	}
}

/* Spread the time of @s over the columns in which it ran, all parts evenly. */
static void add_load(struct report *r, const struct statement *s, uint64_t from, uint64_t to)
{
	unsigned int first = report_axis_column(&r->axis, from);
	unsigned int last = report_axis_column(&r->axis, to);

	if (first == last) {
		double all = s->duration_ns ? (double)(to - from) / (double)s->duration_ns : 0;

		add_parts(&r->columns[first], s, all < 1 ? all : 1);
		return;
	}
	for (unsigned int i = first; i <= last; i++) {
		uint64_t begin = report_axis_ms(&r->axis, i) * 1000000;
		uint64_t end = report_axis_ms(&r->axis, i + 1) * 1000000;

		begin = begin < from ? from : begin;
		end = end > to ? to : end;
		if (end > begin)
			add_parts(&r->columns[i], s,
				  (double)(end - begin) / (double)s->duration_ns);
	}
}

/* Count @s in the column in which it ended; @group is its index in ->sorted, or REPORT_GROUPS. */
static void add_time(struct report *r, const struct statement *s, size_t group, unsigned int at)
{
	struct report_column *column = &r->columns[at];
	const struct top_call call = {
		.engine = "", .hash = group, .fingerprint = "", .duration_ns = s->duration_ns,
		.rows = s->has_rows ? s->rows : 0, .failed = s->failed, .why = s->why,
	};

	column->cells[report_row(s->duration_ns)]++;
	column->calls++;
	column->errors += s->failed;
	column->total_ns += s->duration_ns;
	column->max_ns = s->duration_ns > column->max_ns ? s->duration_ns : column->max_ns;
	if (!r->calls[at])
		r->calls[at] = top_new(REPORT_GROUPS + 1);
	r->no_memory += !r->calls[at] || top_add(r->calls[at], &call);
}

/* Keep @s if it is one of the slowest, of all or of those that ended at its time. */
static void keep_statement(struct report *r, const struct statement *s, const struct top_call *call,
			   size_t group)
{
	uint64_t end = s->wall_ns + s->duration_ns, from = within(r, s->wall_ns);
	int at = report_longest_add(&r->slowest, s->duration_ns);
	struct report_mark mark;
	unsigned int column;

	report_mark_statement(&mark, s, call->engine, call->hash);
	if (at >= 0) {
		report_keep_statement(&r->statements[at], s, call->engine, call->hash);
		r->statement_marks[at] = mark;
	}
	if (!s->wall_ns || !r->axis.count || s->level)
		return;
	end = within(r, end < s->wall_ns ? s->wall_ns : end);
	column = report_axis_column(&r->axis, end);
	add_time(r, s, group, column);
	add_load(r, s, from, end);
	report_marks_add(&r->marks[column], &mark);
}

/* Count @call in the only group of @top. */
static void add_all(struct top *top, const struct top_call *call)
{
	struct top_call one = *call;

	one.text = NULL;
	one.fingerprint = one.engine = "";
	one.database = NULL;
	one.hash = 0;
	top_add(top, &one);
}

/* Add @s again: what is shown of it. */
static void show_statement(struct report *r, const struct statement *s, const struct top_call *call)
{
	size_t group = report_group(r, call->engine, call->hash);

	r->nested += !!s->level;
	r->running += s->running;
	r->undated += !s->wall_ns;
	if (!s->level && group == REPORT_GROUPS)
		add_all(r->rest, call);
	keep_statement(r, s, call, group);
}

void report_statement(struct report *r, const struct statement *statement)
{
	struct statement s = *statement;
	const struct family *family;
	struct top_call call = {
		.engine = engine_name(r, s.server->product),
		.database = s.who->database, .text = s.text, .text_len = s.text_len,
		.text_cut = s.truncated,
		.rows = s.has_rows ? s.rows : 0, .failed = s.failed, .why = s.why,
	};

	r->transactions += s.transaction && r->again;
	if (s.transaction)
		return;
	s.duration_ns = s.duration_ns < DURATION_MAX ? s.duration_ns : DURATION_MAX;
	call.duration_ns = s.duration_ns;
	family = families_find(&r->families, &s);
	call.hash = family->hash;
	call.fingerprint = family->fingerprint;
	if (r->again) {
		show_statement(r, &s, &call);
		return;
	}
	if (s.level)
		return;
	r->no_memory += !!top_add(r->groups, &call);
	add_all(r->all, &call);
}

int report_again(struct report *r)
{
	r->again = true;
	r->sorted = top_sort(r->groups, TOP_TOTAL, &r->nsorted);
	r->shown = !r->sorted ? 0 : r->nsorted < REPORT_GROUPS ? r->nsorted : REPORT_GROUPS;
	return r->sorted || !r->nsorted ? 0 : -ENOMEM;
}

static void add_wait(struct report_waits *waits, const struct lock_wait *wait)
{
	waits->count++;
	waits->ns += wait->duration_ns;
	waits->deadlocks += !!(wait->event->flags & LOCK_DEADLOCK);
	waits->failed += !!(wait->event->flags & LOCK_FAILED);
}

void report_wait(struct report *r, const struct lock_wait *wait)
{
	const char *engine = engine_name(r, wait->server->product);
	uint64_t end = wait->wall_ns + wait->duration_ns;
	struct report_mark mark;
	unsigned int column;
	int at;

	if (!r->again)
		return;
	add_wait(&r->all_waits, wait);
	report_mark_wait(&mark, wait, engine);
	at = report_longest_add(&r->longest, wait->duration_ns);
	if (at >= 0) {
		report_keep_wait(&r->waits[at], wait, engine);
		r->wait_marks[at] = mark;
	}
	if (!wait->wall_ns || !r->axis.count)
		return;
	end = within(r, end < wait->wall_ns ? wait->wall_ns : end);
	column = report_axis_column(&r->axis, end);
	add_wait(&r->columns[column].waits, wait);
	report_marks_add(&r->marks[REPORT_COLUMNS + column], &mark);
}

void report_losses(struct report *r, const struct summary *summary)
{
	r->nlosses = 0;
	r->has_losses = true;
	r->boundary = summary->boundary;
	for (size_t i = 0; i < LOSSES; i++)
		if (summary->lost[i])
			r->losses[r->nlosses++] = (struct report_loss){ loss_rows[i].name,
									summary->lost[i] };
}

void report_damage(struct report *r, const char *text)
{
	char *kept = r->ndamages < REPORT_DAMAGES ? copy(text) : NULL;

	if (kept)
		r->damages[r->ndamages++] = kept;
	else
		r->more_damages++;
}

int report_write(struct report *r, struct output *out)
{
	int err;

	r->bucket_shift = report_cells_shift(r);
	report_longest_sort(&r->slowest, r->slowest_order);
	report_longest_sort(&r->longest, r->longest_order);
	report_page(r, out);
	err = output_flush(out);
	return err ? err : r->no_memory ? -ENOMEM : 0;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	for (unsigned int i = 0; i < r->slowest.count; i++)
		report_drop_statement(&r->statements[i]);
	for (unsigned int i = 0; i < r->longest.count; i++)
		report_drop_wait(&r->waits[i]);
	for (unsigned int i = 0; i < r->nservers; i++) {
		free(r->servers[i].engine);
		free(r->servers[i].version);
		free(r->servers[i].path);
		free(r->servers[i].container);
	}
	for (unsigned int i = 0; i < r->nengines; i++)
		free(r->engines[i]);
	for (unsigned int i = 0; i < r->ndamages; i++)
		free(r->damages[i]);
	top_free(r->groups);
	top_free(r->all);
	top_free(r->rest);
	for (unsigned int i = 0; i < REPORT_COLUMNS; i++)
		top_free(r->calls[i]);
	free(r->columns);
	free(r->marks);
	free(r->host);
	free(r->threshold);
	free(r->version);
	free(r->source);
	free(r);
}
