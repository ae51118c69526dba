// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/table.h"

#include <string.h>

#include "cli/format/breakdown.h"
#include "cli/format/html.h"
#include "cli/format/short.h"
#include "cli/report/cells.h"
#include "cli/report/chart.h"
#include "cli/report/sessions.h"

#define SUMMARY_COLUMNS	140	/* of a statement that is not unfolded */

/* Append the begin of a table. A heading that begins with # is of numbers. */
static void table_open(struct output *out, const char *id, const char *caption,
		       const char *const *headings)
{
	output_printf(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		      "aria-labelledby=\"%s-c\">"
		      "<table id=\"%s\"><caption id=\"%s-c\">%s</caption><thead><tr>", id, id, id,
		      caption);
	for (; *headings; headings++)
		output_printf(out, "<th scope=\"col\"%s>%s</th>",
			      **headings == '#' ? " class=\"n\"" : "",
			      *headings + (**headings == '#'));
	output_string(out, "</tr></thead><tbody>\n");
}

static void table_close(struct output *out)
{
	output_string(out, "</tbody></table></div>\n");
}

/* Append the begin of a cell that is sorted by @value. */
static void cell_open(struct output *out, uint64_t value)
{
	output_string(out, "<td class=\"n\" data-v=\"");
	output_u64(out, value);
	output_string(out, "\">");
}

static void cell_number(struct output *out, uint64_t value)
{
	char text[SHORT_TEXT];

	cell_open(out, value);
	output_string(out, short_count(text, value));
	output_string(out, "</td>");
}

static void cell_duration(struct output *out, uint64_t ns)
{
	cell_open(out, ns);
	report_duration(out, ns);
	output_string(out, "</td>");
}

static void cell_time(struct output *out, uint64_t wall_ns)
{
	cell_open(out, wall_ns);
	if (wall_ns)
		report_time(out, wall_ns, false);
	output_string(out, "</td>");
}

static void cell_text(struct output *out, const char *text)
{
	output_string(out, "<td>");
	html_string(out, text);
	output_string(out, "</td>");
}

/* Append the begin of a row that the script shows for the times in which @kept ran. */
static void row_of(const struct report *r, struct output *out, const struct report_kept *kept)
{
	uint64_t end = kept->wall_ns + kept->duration_ns;

	if (!kept->wall_ns || !r->axis.count) {
		output_string(out, "<tr>");
		return;
	}
	end = end < kept->wall_ns ? UINT64_MAX : end;
	output_printf(out, "<tr data-b=\"%u\" data-e=\"%u\">",
		      report_axis_column(&r->axis, kept->wall_ns),
		      report_axis_column(&r->axis, end));
}

void report_text(struct output *out, const struct report_text *text)
{
	if (text->bytes && text->len)
		html_lines(out, text->bytes, text->len, text->cut);
	else
		output_string(out, "unknown");
	output_string(out, text->bytes && text->cut ? "..." : "");
}

/* Append a statement: what does not fit into a line can be unfolded. */
static void statement_text(struct output *out, const struct report_text *text)
{
	bool known = text->bytes && text->len;
	bool fits = !known || (text->len <= SUMMARY_COLUMNS && !text->cut &&
			       !memchr(text->bytes, '\n', text->len));

	output_string(out, fits ? "<code>" : "<details><summary><code>");
	if (known)
		html_short(out, text->bytes, text->len, SUMMARY_COLUMNS);
	else
		output_string(out, "unknown");
	output_string(out, "</code>");
	if (fits)
		return;
	output_string(out, "</summary><pre>");
	report_text(out, text);
	output_string(out, "</pre></details>");
}

/* Servers, losses, intervals */

void report_table_servers(const struct report *r, struct output *out)
{
	static const char *const headings[] = {
		"Server", "Version", "#PID", "File", "Container", NULL,
	};

	table_open(out, "servers", "Servers", headings);
	for (unsigned int i = 0; i < r->nservers; i++) {
		const struct report_server *server = &r->servers[i];

		output_string(out, "<tr>");
		cell_text(out, server->engine);
		cell_text(out, server->version);
		if (server->pid)
			cell_number(out, server->pid);
		else
			cell_text(out, "");
		cell_text(out, server->path);
		cell_text(out, server->container);
		output_string(out, "</tr>\n");
	}
	table_close(out);
}

void report_table_losses(const struct report *r, struct output *out)
{
	static const char *const headings[] = { "Loss", "#Count", NULL };

	table_open(out, "losses", "Losses while it was recorded, as in the JSON summary", headings);
	for (unsigned int i = 0; i < r->nlosses; i++) {
		output_string(out, "<tr>");
		cell_text(out, r->losses[i].name);
		cell_number(out, r->losses[i].count);
		output_string(out, "</tr>\n");
	}
	table_close(out);
}

void report_table_intervals(const struct report *r, struct output *out)
{
	static const char *const headings[] = {
		"#Begin", "#Statements", "#Errors", "#Mean", "#Longest", "#Load", NULL,
	};
	uint64_t width_us = report_axis_width(&r->axis) * 1000;
	char text[SHORT_TEXT];

	table_open(out, "intervals", "Intervals in which statements ended or ran", headings);
	for (unsigned int i = 0; i < r->axis.count; i++) {
		const struct report_column *column = &r->columns[i];
		uint64_t load = 0;

		for (int part = 0; part < REPORT_PARTS; part++)
			load += column->part_ns[part];
		if (!column->calls && !load && !column->waits.count)
			continue;
		output_printf(out, "<tr data-b=\"%u\" data-e=\"%u\"", i, i);
		report_column_cell(out, column);
		output_char(out, '>');
		cell_time(out, report_axis_ms(&r->axis, i) * 1000000);
		cell_number(out, column->calls);
		cell_number(out, column->errors);
		cell_duration(out, column->calls ? column->total_ns / column->calls : 0);
		cell_duration(out, column->max_ns);
		cell_open(out, load);
		output_string(out, short_number(text, load / width_us));
		output_string(out, "</td></tr>\n");
	}
	table_close(out);
}

/* Groups */

static void group_details(struct output *out, const struct top_entry *e)
{
	struct report_text sample = { e->sample, e->sample_len, e->sample_cut };

	output_string(out, "<p>");
	html_string(out, e->engine);
	output_string(out, e->database ? ", database " : "");
	html_string(out, e->database);
	output_string(out, e->databases ? ", several databases" : "");
	output_printf(out, ", fingerprint %016llx</p>", (unsigned long long)e->hash);
	output_string(out, "<p>In all of the recording:</p>");
	if (e->why) {
		output_string(out, "<p>Time in ms: ");
		breakdown_parts_text(out, e->why->ns, 0);
		output_string(out, "</p><p>");
		breakdown_use_text(out, e->why->used, e->why->use, 0);
		output_string(out, "</p>");
	}
	output_string(out, "<p>Slowest:</p><pre>");
	report_text(out, &sample);
	output_string(out, "</pre>");
}

/* Append the numbers of a group, an index in ->sorted or REPORT_GROUPS, and the end of its row. */
static void group_numbers(const struct report *r, struct output *out, const struct top_entry *e,
			  size_t group)
{
	cell_number(out, e->calls);
	cell_duration(out, e->total_ns);
	cell_duration(out, e->total_ns / e->calls);
	cell_duration(out, top_percentile(e, 500));
	cell_duration(out, top_percentile(e, 950));
	cell_duration(out, top_percentile(e, 990));
	cell_duration(out, e->max_ns);
	cell_number(out, e->rows);
	cell_number(out, e->errors);
	output_string(out, "<td>");
	if (e->why)
		report_bar(out, e->why->ns);
	output_string(out, "</td><td>");
	if (r->axis.count)
		report_sparkline(r, out, group);
	output_string(out, "</td></tr>\n");
}

static void group_row(const struct report *r, struct output *out, size_t group)
{
	const struct top_entry *e = r->sorted[group];

	output_printf(out, "<tr id=\"g%zu\"", group + 1);
	report_cells(r, out, group);
	output_char(out, '>');
	cell_number(out, group + 1);
	output_string(out, "<td class=\"q\"><details><summary><code>");
	if (*e->fingerprint)
		html_string(out, e->fingerprint);
	else
		output_string(out, "unknown");
	output_string(out, "</code></summary>");
	group_details(out, e);
	output_string(out, "</details></td>");
	group_numbers(r, out, e, group);
}

/* Append a row of all groups that have none. */
static void rest_row(const struct report *r, struct output *out)
{
	size_t count;
	const struct top_entry *const *rest = top_sort(r->rest, TOP_TOTAL, &count);

	if (!rest)
		return;
	output_string(out, "<tr id=\"rest\"");
	report_cells(r, out, REPORT_GROUPS);
	output_string(out, "><td></td><td class=\"q\">all other fingerprints</td>");
	group_numbers(r, out, rest[0], REPORT_GROUPS);
}

void report_table_groups(const struct report *r, struct output *out)
{
	static const char *const headings[] = {
		"#No.", "Statement", "#Calls", "#Total", "#Mean", "#p50", "#p95", "#p99",
		"#Longest", "#Rows", "#Errors", "Time by part", "Calls (area) and mean (line)",
		NULL,
	};

	table_open(out, "groups", "The largest total time first", headings);
	for (size_t i = 0; i < r->shown; i++)
		group_row(r, out, i);
	rest_row(r, out);
	table_close(out);
}

/* Statements */

/* Append a link to the group of @s, if it is shown. */
static void group_link(const struct report *r, struct output *out, const struct report_statement *s)
{
	size_t group = report_group(r, s->kept.engine, s->hash);

	if (group < REPORT_GROUPS)
		output_printf(out, "<a href=\"#g%zu\">%zu</a>", group + 1, group + 1);
}

static void result_cell(struct output *out, const struct report_statement *s)
{
	output_string(out, s->failed ? "<td class=\"bad\">" : "<td>");
	output_string(out, s->kept.running ? "running" : s->failed ? "failed" : "");
	if (s->failed && *s->sqlstate)
		output_string(out, " ");
	if (s->failed)
		html_string(out, s->sqlstate);
	if (s->failed && s->error_code)
		output_printf(out, " %u", s->error_code);
	output_string(out, "</td>");
}

static void session_cell(struct output *out, const struct report_session *session)
{
	output_string(out, "<td class=\"s\">");
	report_session(out, session);
	output_string(out, "</td>");
}

static void statement_row(const struct report *r, struct output *out,
			  const struct report_statement *s)
{
	row_of(r, out, &s->kept);
	cell_time(out, s->kept.wall_ns);
	cell_duration(out, s->kept.duration_ns);
	output_string(out, "<td class=\"q\">");
	statement_text(out, &s->kept.text);
	output_string(out, "</td><td>");
	group_link(r, out, s);
	output_string(out, "</td><td>");
	if (s->has_why)
		report_bar(out, s->part_ns);
	output_string(out, "</td>");
	result_cell(out, s);
	if (s->has_rows)
		cell_number(out, s->rows);
	else
		cell_text(out, "");
	if (report_session_known(&s->kept.session))
		session_cell(out, &s->kept.session);
	else
		cell_text(out, "");
	cell_text(out, s->user);
	cell_text(out, s->database);
	cell_text(out, s->client);
	output_string(out, "</tr>\n");
}

void report_table_statements(const struct report *r, struct output *out)
{
	static const char *const headings[] = {
		"#Start", "#Duration", "Statement", "No.", "Time by part", "Result", "#Rows",
		"Session", "User", "Database", "Client", NULL,
	};

	table_open(out, "statements", "The slowest first", headings);
	for (unsigned int i = 0; i < r->slowest.count; i++)
		statement_row(r, out, &r->statements[r->slowest_order[i]]);
	table_close(out);
}

/* Lock waits */

static void holder_item(struct output *out, const struct report_holder *holder)
{
	output_string(out, "<li>");
	report_session(out, &holder->session);
	output_string(out, holder->queued ? ", ahead in the queue, " : ", ");
	report_duration(out, holder->blocked_ns);
	output_string(out, holder->idle ? ", idle in transaction, last: " :
			   holder->running ? ", running: " : ", last: ");
	statement_text(out, &holder->text);
	output_string(out, "</li>");
}

static void holders_cell(struct output *out, const struct report_lock_wait *wait)
{
	output_string(out, wait->nholders ? "<td class=\"q\"><ul>" : "<td class=\"q\">");
	for (unsigned int i = 0; i < wait->nholders; i++)
		holder_item(out, &wait->holders[i]);
	output_string(out, wait->nholders ? "</ul>" : "unknown");
	if (wait->more)
		output_printf(out, "and %u more", wait->more);
	else if (wait->nholders && !wait->all)
		output_string(out, "and possibly others");
	output_string(out, "</td>");
}

static void outcome_cell(struct output *out, const struct report_lock_wait *wait)
{
	output_printf(out, wait->deadlock ? "<td class=\"bad\">%s" : "<td>%s", wait->outcome);
	for (unsigned int i = 0; i < wait->ncycle; i++)
		output_printf(out, "%s%u", i ? " &#8594; " : ": ", wait->cycle[i]);
	output_string(out, wait->joined ? ", began before</td>" : "</td>");
}

static void wait_row(const struct report *r, struct output *out,
		     const struct report_lock_wait *wait)
{
	row_of(r, out, &wait->kept);
	cell_time(out, wait->kept.wall_ns);
	cell_duration(out, wait->kept.duration_ns);
	outcome_cell(out, wait);
	output_string(out, "<td>");
	html_string(out, wait->kind);
	output_string(out, *wait->kind ? " " : "");
	html_string(out, wait->object);
	output_printf(out, "%s%s</td>", *wait->mode ? ", " : "", wait->mode);
	session_cell(out, &wait->kept.session);
	output_string(out, "<td class=\"q\">");
	statement_text(out, &wait->kept.text);
	output_string(out, "</td>");
	holders_cell(out, wait);
	output_string(out, "</tr>\n");
}

void report_table_waits(const struct report *r, struct output *out)
{
	static const char *const headings[] = {
		"#Start", "#Duration", "Outcome", "Lock", "Waiter", "Its statement", "Lock holders",
		NULL,
	};

	table_open(out, "waits", "The longest first", headings);
	for (unsigned int i = 0; i < r->longest.count; i++)
		wait_row(r, out, &r->waits[r->longest_order[i]]);
	table_close(out);
}
