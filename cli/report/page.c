// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/page.h"

#include "cli/format/html.h"
#include "cli/format/short.h"
#include "cli/report/chart.h"
#include "cli/report/moment.h"
#include "cli/report/sessions.h"
#include "cli/report/table.h"

static void section_open(struct output *out, const char *id, const char *title)
{
	output_printf(out, "<section id=\"s-%s\" aria-labelledby=\"h-%s\"><h2 "
		      "id=\"h-%s\">%s</h2>\n", id,
		      id, id, title);
}

static void section_close(struct output *out)
{
	output_string(out, "</section>\n");
}

/* The only text of the page that is not HTML: in the title, html_text() is valid as well. */
static void page_title(const struct report *r, struct output *out)
{
	output_string(out, "Database statements");
	output_string(out, *r->host ? " on " : "");
	html_string(out, r->host);
	if (!r->axis.count)
		return;
	output_string(out, ", ");
	report_time(out, r->begin_ns, true);
	output_string(out, " UTC");
}

static void page_head(const struct report *r, struct output *out)
{
	output_string(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
		      "charset=\"utf-8\">\n<meta "
		      "http-equiv=\"Content-Security-Policy\" content=\"");
	output_string(out, report_policy);
	output_string(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, "
		      "initial-scale=1\">\n<meta name=\"referrer\" "
		      "content=\"no-referrer\">\n<title>");
	page_title(r, out);
	output_string(out, "</title>\n<style>");
	output_string(out, report_css);
	output_string(out, "</style></head><body>\n");
}

/* The controls, which the script makes visible. */
static void page_controls(const struct report *r, struct output *out)
{
	unsigned int last = r->axis.count ? r->axis.count - 1 : 0;
	uint64_t begin = r->axis.count ? report_axis_ms(&r->axis, 0) : 0;

	output_printf(out, "<form id=\"controls\" role=\"search\" aria-label=\"Filter\" hidden "
		      "data-from=\"%llu\" data-width=\"%llu\" data-shift=\"%u\" data-parts=\"",
		      (unsigned long long)begin,
		      (unsigned long long)(r->axis.count ? report_axis_width(&r->axis) : 1),
		      r->bucket_shift);
	for (unsigned int part = 0; part < REPORT_PARTS; part++)
		output_printf(out, "%s%s", part ? " " : "", report_part_name(part));
	output_string(out, "\"><label>Search <input type=\"search\" id=\"find\" "
		      "autocomplete=\"off\"></label>");
	output_printf(out, "<label>From <input type=\"range\" id=\"from\" min=\"0\" max=\"%u\" "
		      "value=\""
		      "0\"></label><label>To <input type=\"range\" id=\"to\" min=\"0\" max=\"%u\" "
		      "value=\""
		      "%u\"></label>", last, last, last);
	output_string(out, "<button type=\"button\" id=\"reset\">Show all</button><button "
		      "type=\"button\" "
		      "id=\"theme\" aria-pressed=\"false\">Dark</button><p id=\"status\" "
		      "role=\"status\">"
		      "</p></form>\n");
}

static void page_fact(struct output *out, const char *name, const char *value)
{
	output_printf(out, "<div><dt>%s</dt><dd data-f=\"%s\">%s</dd></div>", name, name, value);
}

static void page_count(struct output *out, const char *name, uint64_t count)
{
	char text[SHORT_TEXT];

	page_fact(out, name, short_count(text, count));
}

static void page_percentile(struct output *out, const char *name, const struct top_entry *all,
			    unsigned int permille)
{
	char text[SHORT_TEXT];

	page_fact(out, name, short_duration(text, top_percentile(all, permille)));
}

static const struct top_entry *all_of(const struct report *r)
{
	size_t count;
	const struct top_entry *const *all = top_sort(r->all, TOP_TOTAL, &count);

	return all ? all[0] : NULL;
}

static uint64_t lost_of(const struct report *r)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < r->nlosses; i++)
		sum += r->losses[i].count;
	return sum;
}

static void page_facts(const struct report *r, struct output *out, const struct top_entry *all)
{
	char text[SHORT_TEXT];

	output_string(out, "<dl class=\"facts\">");
	page_count(out, "statements", all ? all->calls : 0);
	if (all) {
		page_fact(out, "total time", short_duration(text, all->total_ns));
		page_percentile(out, "p50", all, 500);
		page_percentile(out, "p95", all, 950);
		page_percentile(out, "p99", all, 990);
		page_percentile(out, "longest", all, 1000);
		page_count(out, "errors", all->errors);
	}
	page_count(out, "lock waits", r->all_waits.count);
	if (r->all_waits.count) {
		page_fact(out, "waited for locks", short_duration(text, r->all_waits.ns));
		page_count(out, "deadlocks", r->all_waits.deadlocks);
		page_count(out, "failed waits", r->all_waits.failed);
	}
	if (r->has_losses)
		page_count(out, "lost in all", lost_of(r));
	output_string(out, "</dl>\n");
}

static void page_origin(struct output *out, const char *name, const char *value)
{
	if (!*value)
		return;
	output_printf(out, "<div><dt>%s</dt><dd>", name);
	html_string(out, value);
	output_string(out, "</dd></div>");
}

static bool has_sessions(const struct report *r)
{
	return r->slowest.count || r->longest.count;
}

static void page_nav(const struct report *r, struct output *out)
{
	output_string(out, "<nav aria-label=\"Sections\"><a href=\"#s-summary\">Summary</a>");
	if (r->axis.count)
		output_string(out, " <a href=\"#s-time\">Over time</a>");
	if (r->axis.count && has_sessions(r))
		output_string(out, " <a href=\"#s-sessions\">Sessions</a>");
	if (r->slowest.count)
		output_string(out, " <a href=\"#s-groups\">By fingerprint</a> <a "
			      "href=\"#s-slowest\">Slowest statements</a>");
	if (r->longest.count)
		output_string(out, " <a href=\"#s-locks\">Lock waits</a>");
	output_string(out, " <a href=\"#s-left-out\">Left out</a></nav>\n");
}

static void page_header(const struct report *r, struct output *out)
{
	output_string(out, "<header><h1>");
	page_title(r, out);
	output_string(out, "</h1>\n<dl class=\"origin\">");
	page_origin(out, "host", r->host);
	page_origin(out, "recording", r->source);
	page_origin(out, "threshold", r->threshold);
	page_origin(out, "dbslower", r->version);
	if (r->axis.count) {
		output_string(out, "<div><dt>time, UTC</dt><dd>");
		report_time(out, r->begin_ns, true);
		output_string(out, " to ");
		report_time(out, r->end_ns ? r->end_ns : r->begin_ns, true);
		output_string(out, "</dd></div>");
	}
	output_string(out, "</dl>\n");
	page_nav(r, out);
	output_string(out, "</header>\n");
	page_controls(r, out);
}

/* Left out */

static void note(struct output *out, uint64_t count, const char *text)
{
	if (count)
		output_printf(out, "<li>%llu %s</li>\n", (unsigned long long)count, text);
}

static void page_notes(const struct report *r, struct output *out)
{
	uint64_t folded, beyond = r->nsorted - r->shown;
	const struct top_entry *other = top_other(r->groups, &folded);
	const struct top_entry *all = all_of(r);

	output_string(out, "<ul class=\"notes\">");
	note(out, beyond, "fingerprints with less total time are summed up in one row.");
	if (r->bucket_shift)
		output_printf(out, "<li>Percentiles of a selected time have an error of at most "
			      "%u%%.</li>\n", 100 / (32 >> r->bucket_shift) + 1);
	note(out, folded, "fingerprints with the least total time were summed up while the table "
	     "of "
	     "fingerprints was full; one that came again was counted from 0.");
	note(out, other->calls, "statements are of these.");
	note(out, r->nested, "statements in routines, whose time is part of their callers', are "
	     "not counted.");
	if (all && all->calls + r->nested > r->slowest.count)
		note(out, all->calls + r->nested - r->slowest.count,
		     "statements that were faster are not listed one by one.");
	note(out, r->all_waits.count - r->longest.count, "shorter lock waits are only counted.");
	note(out, r->running, "statements had not ended: their duration is that so far.");
	note(out, r->undated, "statements without a known time are not in the charts.");
	note(out, r->transactions, "transactions are not shown.");
	note(out, r->more_servers, "more servers are not listed.");
	note(out, r->no_memory, "statements are missing from a group: out of memory.");
	if (r->has_losses)
		note(out, r->boundary, "statements ran when the recording began or ended and may "
		     "be "
		     "missing; this is not a loss.");
	output_printf(out, "<li>Charts have at most %u intervals. Sessions are those of the "
		      "listed statements and lock waits, and of the %u longest of each that ended "
		      "in an interval.</li>\n<li>Texts are cut at %u bytes, those of the slowest "
		      "call of a fingerprint at %u.</li></ul>\n", REPORT_COLUMNS, REPORT_MARKS,
		      REPORT_TEXT, TOP_SAMPLE);
}

/* Append the losses and the damage of the recording. */
static void page_losses(const struct report *r, struct output *out)
{
	if (r->ndamages || r->more_damages)
		output_string(out, "<ul class=\"notes\">");
	for (unsigned int i = 0; i < r->ndamages; i++) {
		output_string(out, "<li class=\"bad\">");
		html_string(out, r->damages[i]);
		output_string(out, "</li>\n");
	}
	note(out, r->more_damages, "more parts of the recording are missing.");
	if (r->ndamages || r->more_damages)
		output_string(out, "</ul>\n");
	if (r->nlosses)
		report_table_losses(r, out);
}

/* Sections */

static uint64_t sum_of(const struct report *r)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < REPORT_COLUMNS; i++)
		for (unsigned int part = 0; part < REPORT_PARTS; part++)
			sum += r->columns[i].part_ns[part];
	return sum;
}

static void page_charts(const struct report *r, struct output *out)
{
	section_open(out, "time", "Over time");
	output_string(out, "<h3>Durations</h3><p class=\"note\">Each statement at the time it "
		      "ended.<span id=\"hint\" hidden> Click or drag to select a time.</span></p>"
		      "\n");
	report_heat(r, out);
	output_string(out, "<h3>Load</h3><p class=\"note\">Statements that ran at the same time, "
		      "on "
		      "average.</p>\n");
	report_load(r, out);
	report_legend(r, out, sum_of(r));
	output_string(out, "<details><summary>Numbers by interval</summary>\n");
	report_table_intervals(r, out);
	output_string(out, "</details>\n");
	section_close(out);
}

/* Without scripts, the longest lock wait and the slowest statement are the moments. */
static void page_sessions(const struct report *r, struct output *out)
{
	const struct report_kept *wait = &r->waits[r->longest_order[0]].kept;
	const struct report_kept *slow = &r->statements[r->slowest_order[0]].kept;
	bool same;

	section_open(out, "sessions", "Sessions: who waited for whom");
	output_string(out, "<p class=\"note\">The longest statements and lock waits, and who held "
		      "the locks.</p>\n");
	report_timeline_legend(out);
	report_moment(r, out);
	output_string(out, "<div id=\"still\">");
	if (wait->wall_ns) {
		output_string(out, "<h3>Around the longest lock wait</h3>\n");
		report_timeline(r, out, wait);
	}
	/* The same time, if the statement ended soon after the wait. */
	same = wait->wall_ns && slow->wall_ns + slow->duration_ns - wait->wall_ns <=
				wait->duration_ns / 8 * 9;
	if (slow->wall_ns && report_session_known(&slow->session) && !same) {
		output_string(out, "<h3>Around the slowest statement</h3>\n");
		report_timeline(r, out, slow);
	}
	output_string(out, "</div>\n");
	section_close(out);
}

static void page_statements(const struct report *r, struct output *out)
{
	section_open(out, "groups", "Statements by fingerprint");
	report_table_groups(r, out);
	section_close(out);
	section_open(out, "slowest", "Slowest statements");
	report_table_statements(r, out);
	section_close(out);
}

static void page_waits(const struct report *r, struct output *out)
{
	section_open(out, "locks", "Lock waits");
	output_string(out, "<h3>Who waited for whom</h3>\n");
	report_graph(r, out);
	report_table_waits(r, out);
	section_close(out);
}

void report_page(const struct report *r, struct output *out)
{
	const struct top_entry *all = all_of(r);

	page_head(r, out);
	page_header(r, out);
	output_string(out, "<main>\n");
	section_open(out, "summary", "Summary");
	page_facts(r, out, all);
	page_losses(r, out);
	if (r->nservers)
		report_table_servers(r, out);
	section_close(out);
	if (r->axis.count)
		page_charts(r, out);
	if (r->axis.count && has_sessions(r))
		page_sessions(r, out);
	if (r->slowest.count)
		page_statements(r, out);
	if (r->longest.count)
		page_waits(r, out);
	section_open(out, "left-out", "Left out");
	page_notes(r, out);
	section_close(out);
	output_string(out, "</main>\n<script>");
	output_string(out, report_js);
	output_string(out, "</script></body></html>\n");
}
