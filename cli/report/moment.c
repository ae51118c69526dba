// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/moment.h"

#include <string.h>

#include "cli/report/cells.h"

/*
 * Append the key of a session, "p12a" of process 12 or "c3-12a" of a connection of its server, and
 * a letter of the engine.
 */
static void mark_session(const struct report *r, struct output *out, const char *engine,
			 const struct report_session *session)
{
	unsigned int at = 0;

	while (at < r->nengines && r->engines[at] != engine)
		at++;
	if (session->connection)
		output_printf(out, "c%llu-", (unsigned long long)session->connection);
	else
		output_char(out, 'p');
	output_printf(out, "%u%c", session->pid, (char)('a' + at));
}

/*
 * Append @mark: start, duration, session, row of its text in a table, 1 if it failed; of each
 * holder the session, the time, 1 ahead in the queue and 2 idle. Times are in us, the start is
 * since the axis begins. A statement of an unknown session is left out.
 */
static void mark_write(const struct report *r, struct output *out, const struct report_mark *mark,
		       char table, size_t row)
{
	uint64_t from = report_axis_ms(&r->axis, 0) * 1000;
	uint64_t us = mark->wall_ns / 1000;

	if (!mark->wall_ns || (strchr("sg", table) && !report_session_known(&mark->session)))
		return;
	output_printf(out, "%s%llu %llu ", us < from ? "-" : "",
		      (unsigned long long)(us < from ? from - us : us - from),
		      (unsigned long long)mark->duration_ns / 1000);
	mark_session(r, out, mark->engine, &mark->session);
	output_printf(out, " %c%zu %u", table, row, mark->failed);
	for (unsigned int i = 0; i < mark->nholders; i++) {
		const struct report_mark_holder *holder = &mark->holders[i];

		output_char(out, ' ');
		mark_session(r, out, mark->engine, &holder->session);
		output_printf(out, " %llu %u", (unsigned long long)holder->blocked_ns / 1000,
			      holder->queued + 2 * holder->idle);
	}
	output_char(out, ',');
}

/* Return the number of the group of @mark in its table; 0: it is not shown. */
static size_t mark_group(const struct report *r, const struct report_mark *mark)
{
	size_t group = report_group(r, mark->engine, mark->hash);

	return group < REPORT_GROUPS ? group + 1 : 0;
}

/* Return whether @mark is one of those of a table, which have the order of @longest. */
static bool mark_is_kept(const struct report_longest *longest, const struct report_mark *kept,
			 const struct report_mark *mark)
{
	for (unsigned int i = 0; i < longest->count; i++)
		if (kept[i].wall_ns == mark->wall_ns && kept[i].duration_ns == mark->duration_ns &&
		    report_session_same(&kept[i].session, &mark->session))
			return true;
	return false;
}

static void marks_write(const struct report *r, struct output *out)
{
	for (unsigned int i = 0; i < r->slowest.count; i++)
		mark_write(r, out, &r->statement_marks[r->slowest_order[i]], 's', i);
	for (unsigned int i = 0; i < r->longest.count; i++)
		mark_write(r, out, &r->wait_marks[r->longest_order[i]], 'w', i);
	for (unsigned int i = 0; i < 2 * REPORT_COLUMNS; i++) {
		bool waits = i >= REPORT_COLUMNS;
		const struct report_longest *longest = waits ? &r->longest : &r->slowest;
		const struct report_mark *kept = waits ? r->wait_marks : r->statement_marks;

		for (unsigned int j = 0; j < r->marks[i].count; j++) {
			const struct report_mark *mark = &r->marks[i].marks[j];

			if (!mark_is_kept(longest, kept, mark))
				mark_write(r, out, mark, waits ? 'x' : 'g',
					   waits ? 0 : mark_group(r, mark));
		}
	}
}

void report_moment(const struct report *r, struct output *out)
{
	output_string(out, "<div id=\"moment\" hidden data-m=\"");
	marks_write(r, out);
	output_printf(out, "\"><p class=\"note\">Select a time, or click the start of a row of the "
		      "tables, to show the sessions at that time.</p>"
		      "<div class=\"tools\"><label>Moment <input type=\"range\" id=\"at\" "
		      "min=\"0\" max=\"%u\" value=\"0\"></label><button type=\"button\" "
		      "id=\"in\">Zoom in</button><button type=\"button\" id=\"out\">Zoom out"
		      "</button><p id=\"when\" role=\"status\"></p></div>"
		      "<svg class=\"lanes\" id=\"lanes\" viewBox=\"0 0 1040 50\" role=\"img\" "
		      "aria-label=\"Sessions: their statements, lock waits, and arrows to those "
		      "that they wait for. The tables of statements and lock waits have the "
		      "same.\">"
		      "</svg><ul id=\"who\" class=\"notes\"></ul></div>\n",
		      r->axis.count * 4 - 1);
}
