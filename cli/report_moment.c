// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report_moment.h"

/*
 * Append the key of a session, "p12a": of process 12, c: of a connection, and a letter of the
 * engine. The unknown engine has that of the first one.
 */
static void mark_session(const struct report *r, struct output *out, const char *engine,
			 const struct report_session *session)
{
	unsigned int at = 0;

	while (at < r->nengines && *engine && r->engines[at] != engine)
		at++;
	output_char(out, session->connection ? 'c' : 'p');
	output_u64(out, session->connection ? session->connection : session->pid);
	output_char(out, (char)('a' + at));
}

/*
 * Append @mark: start, duration, session, row of its text in a table, 1 if it failed; of each
 * holder the session, the time, 1 ahead in the queue and 2 idle. Times are in us, the start is
 * since the axis begins.
 */
static void mark_write(const struct report *r, struct output *out, const struct report_mark *mark,
		       char table, size_t row)
{
	uint64_t from = report_axis_ms(&r->axis, report_axis_begin(&r->axis)) * 1000;
	uint64_t us = mark->wall_ns / 1000;

	if (!mark->wall_ns)
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
	for (size_t i = 0; i < r->nsorted && i < REPORT_GROUPS; i++)
		if (r->sorted[i]->hash == mark->hash && r->sorted[i]->engine == mark->engine)
			return i + 1;
	return 0;
}

static void marks_write(const struct report *r, struct output *out)
{
	for (unsigned int i = 0; i < r->slowest.count; i++)
		mark_write(r, out, &r->statement_marks[r->slowest_order[i]], 's', i);
	for (unsigned int i = 0; i < r->longest.count; i++)
		mark_write(r, out, &r->wait_marks[r->longest_order[i]], 'w', i);
	for (unsigned int i = 0; i < 2 * REPORT_COLUMNS; i++) {
		const struct report_longest *kept = i < REPORT_COLUMNS ? &r->slowest : &r->longest;

		for (unsigned int j = 0; j < r->marks[i].count; j++) {
			const struct report_mark *mark = &r->marks[i].marks[j];

			/* Those that are longer than the shortest that was kept are above. */
			if (kept->count == REPORT_KEPT &&
			    mark->duration_ns <= kept->ns[kept->least])
				mark_write(r, out, mark, kept == &r->slowest ? 'g' : 'x',
					   mark_group(r, mark));
		}
	}
}

void report_moment(const struct report *r, struct output *out)
{
	output_string(out, "<div id=\"moment\" hidden data-m=\"");
	marks_write(r, out);
	output_printf(out, "\"><div class=\"tools\"><label>Moment <input type=\"range\" id=\"at\" "
		      "min=\"0\" max=\"%u\" value=\"0\"></label><button type=\"button\" "
		      "id=\"in\">Zoom in</button><button type=\"button\" id=\"out\">Zoom out"
		      "</button><p id=\"when\" role=\"status\"></p></div>"
		      "<svg class=\"lanes\" id=\"lanes\" viewBox=\"0 0 1040 50\" role=\"img\" "
		      "aria-label=\"Sessions: their statements, lock waits, and arrows to those "
		      "that they wait for. The tables of statements and lock waits have the "
		      "same.\">"
		      "</svg><ul id=\"who\" class=\"notes\"></ul></div>\n",
		      report_axis_count(&r->axis) * 4 - 1);
}
