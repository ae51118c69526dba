// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of the page of a report: escaping, structure, limits. With arguments it is a tool of
 * test_report_page.py: FILE writes a page with hostile texts to FILE, FILE COUNT one of that many
 * statements, and FILE COUNT TABLES one of statements on that many tables.
 */
#include "cli/report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/format/html.h"
#include "cli/report/axis.h"
#include "cli/report/marks.h"
#include "tests/fuzz/valid.h"
#include "tests/fuzz/valid_html.h"
#include "tests/unit/check.h"

#define MS	1000000ull
#define S	(1000 * MS)
#define BEGIN	(1790000000 * S)

static const char hostile[] =
	"</script><img src=x onerror=alert(1)>\"' onclick='alert(2)' \xff\xc3(\x1b[31m\x01\x7f "
	"\xe2\x80\xae" "evil\xe2\x80\xac &amp;<!-- ]]> --> <style>*{}</style>\n\t"
	"<svg onload=alert(3)>";

static struct output out;

/* Return all that was written to @fd, with a NUL; the caller frees it. */
static char *contents(int fd, size_t *len)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = malloc((size_t)size + 1);

	if (!text || pread(fd, text, (size_t)size, 0) != size)
		abort();
	text[size] = '\0';
	*len = (size_t)size;
	return text;
}

/* Return the page, checked; the caller frees it. */
static char *page(struct report *report)
{
	FILE *file = tmpfile();
	const char *at = "", *fault;
	char *text, *flat;
	size_t len;

	if (!file)
		abort();
	output_init(&out, fileno(file));
	CHECK(!report_write(report, &out));
	text = contents(fileno(file), &len);
	fclose(file);
	fault = valid_html(text, len, &at);
	CHECK(!fault, "%s: %.80s", fault, at);
	flat = strdup(text);
	for (char *c = flat; *c; c++)
		*c = *c == '\n' || *c == '\t' ? ' ' : *c;
	CHECK(strlen(text) == len && is_harmless(flat, len));
	free(flat);
	return text;
}

/* What follows is done twice, as events are added. */
#define TWICE(report) \
	for (int pass_ = 0; pass_ < 2; ++pass_ < 2 ? report_again(report) : 0)

static struct report *new_report(uint64_t seconds)
{
	struct report *report = report_new(&(struct report_config){
		.host = "db1", .begin_ns = BEGIN, .end_ns = BEGIN + seconds * S,
	});

	if (!report)
		abort();
	return report;
}

static const struct engine engine = { .name = "postgresql" };
static const struct server server = { .engine = &engine, .product = "postgresql" };
static const struct who session = { .pid = 100, .tid = 100 };

static struct statement statement(const char *text, uint64_t start_ms, uint64_t duration_ms)
{
	return (struct statement){
		.server = &server, .who = &session,
		.wall_ns = BEGIN + start_ms * MS, .duration_ns = duration_ms * MS,
		.text = text, .text_len = text ? strlen(text) : 0,
	};
}

static void escapes(void)
{
	static const struct {
		const char *from, *text, *lines;
	} cases[] = {
		{ "a<b>&\"'", "a&lt;b&gt;&amp;&#34;&#39;", "a&lt;b&gt;&amp;&#34;&#39;" },
		{ "a\n\tb", "a b", "a\n\tb" },
		{ "\xff<\x1b", "\\xff&lt;\\x1b", "\\xff&lt;\\x1b" },
		{ "\xe2\x80\xae", "\\u{202e}", "\\u{202e}" },
		{ "\xc3\xa4&", "\xc3\xa4&amp;", "\xc3\xa4&amp;" },
		{ "", "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *from = cases[i].from;

		output_init(&out, -1);
		html_text(&out, from, strlen(from), false);
		CHECK(out.len == strlen(cases[i].text) && !memcmp(out.buf, cases[i].text, out.len),
		      "%zu: %.*s", i, (int)out.len, out.buf);
		output_init(&out, -1);
		html_lines(&out, from, strlen(from), false);
		CHECK(out.len == strlen(cases[i].lines) &&
		      !memcmp(out.buf, cases[i].lines, out.len), "%zu: %.*s", i, (int)out.len,
		      out.buf);
	}
	output_init(&out, -1);
	html_short(&out, "abcdef<", 7, 3);
	CHECK(out.len == 6 && !memcmp(out.buf, "abc...", 6));
	output_init(&out, -1);
	html_string(&out, NULL);
	CHECK(!out.len);
}

/* The judge of the pages is not deaf. */
static void faults(void)
{
	static const char *const pages[] = {
		"<p onclick=\"x\"></p>", "<p class=x></p>", "<p", "</p>", "<img src=\"x\"/>",
		"<p class=\"<b>\"></p>", "a & b", "a > b", "<p><b></p></b>", "<p>", "&copy;",
		"<p style=\"color:red\"></p>", "<script></script><script></script>",
	};
	char text[200];
	const char *at;

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		snprintf(text, sizeof(text),
			 "<!DOCTYPE html>\n<style></style><script>a < b</script>%s", pages[i]);
		CHECK(valid_html(text, strlen(text), &at), "%s", pages[i]);
	}
	strcpy(text, "<!DOCTYPE html>\n<style></style><p class=\"a\">&lt;<svg/></p>"
		     "<script></script>");
	CHECK(!valid_html(text, strlen(text), &at), "%s", at);
	CHECK(valid_html("<p></p>", 7, &at));
}

/* Each time of a recording has its column, those outside the first or last one. */
static void axis(void)
{
	static const uint64_t lengths[] = { 0, 1, 239, 240, 241, 7200000, 86400000, 1ull << 42 };
	struct report_axis a;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		report_axis_set(&a, BEGIN, BEGIN + lengths[i] * MS);
		CHECK(a.count && a.count <= REPORT_COLUMNS, "%u", a.count);
		CHECK(lengths[i] < 120 || a.count > REPORT_COLUMNS / 2 - 1, "%u", a.count);
		for (uint64_t ms = 0; ms <= lengths[i]; ms += lengths[i] / 77 + 1) {
			unsigned int column = report_axis_column(&a, BEGIN + ms * MS);

			CHECK(column < a.count && report_axis_ms(&a, column) <= BEGIN / MS + ms &&
			      BEGIN / MS + ms < report_axis_ms(&a, column + 1), "%zu", i);
		}
		CHECK(!report_axis_column(&a, 0) && !report_axis_column(&a, BEGIN) &&
		      report_axis_column(&a, UINT64_MAX) == a.count - 1);
	}
	report_axis_set(&a, BEGIN, 0);
	CHECK(a.count == 1);
	report_axis_set(&a, 0, BEGIN);
	CHECK(!a.count);
	CHECK(report_row(0) == 0 && report_row(512) == 0 && report_row(1024) == 1 &&
	      report_row(UINT64_MAX) == REPORT_ROWS - 1);
}

/* Return the number of marks of a column that are longer than @ns. */
static unsigned int longer(const struct report_marks *marks, uint64_t ns)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < marks->count; i++)
		count += marks->marks[i].duration_ns > ns;
	return count;
}

/* A column has the longest marks of its time, whatever the order in which they came. */
static void marks(void)
{
	struct report_marks kept = { .count = 0 };
	struct report_mark all[300];
	unsigned int best = 0;
	uint64_t state = 1;

	for (unsigned int i = 0; i < 300; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		all[i].duration_ns = 1 + (state >> 20) % 1000000007;
		report_marks_add(&kept, &all[i]);
	}
	for (unsigned int i = 0; i < 300; i++)
		best += longer(&kept, all[i].duration_ns) < REPORT_MARKS;
	CHECK(kept.count == REPORT_MARKS && best == REPORT_MARKS, "%u", best);
}

static void extremes(void)
{
	static const uint64_t times[] = { 1, UINT64_MAX, 0, BEGIN, UINT64_MAX / 2 };
	struct event_breakdown why = { .ns = { UINT64_MAX, 1, UINT64_MAX } };
	struct report *report = new_report(1);

	TWICE(report) for (int i = 0; i < 25; i++) {
		struct statement s = statement("select 1", 0, 0);

		s.wall_ns = times[i % 5];
		s.duration_ns = times[i / 5];
		s.why = i & 1 ? &why : NULL;
		report_statement(report, &s);
	}
	free(page(report));
	report_free(report);
}

/* Return a wait of the session in @event and @info, which is valid until the next one. */
static struct lock_wait lock_wait(const struct event_lock *event, const struct lock_info *info,
				  uint64_t start_ms, uint64_t duration_ms)
{
	static struct who who;

	who = (struct who){ .pid = event->pid, .tid = event->tid,
			    .connection = info->self.connection };
	return (struct lock_wait){
		.server = &server, .who = &who, .event = event, .info = info,
		.wall_ns = BEGIN + start_ms * MS, .duration_ns = duration_ms * MS,
		.kind = "transactionid",
	};
}

/* Add a wait of backend @waiter for @holder. */
static void add_wait(struct report *report, uint32_t waiter, uint32_t holder, uint64_t start_ms,
		     uint64_t duration_ms)
{
	char text[] = "UPDATE accounts SET balance = balance - 5 WHERE id = 7 AND name <> 'x'";
	struct event_lock event = { .pid = waiter, .tid = waiter, .mode = 5, .field = { 4711 },
				    .flags = waiter == 9 ? LOCK_FAILED | LOCK_DEADLOCK : 0 };
	struct lock_info info = {
		.self = { .pid = waiter, .valid = true, .text = text, .len = sizeof(text) - 1 },
		.nholders = 1, .known = true, .holders = { {
			.pid = holder, .valid = true, .idle_valid = true, .idle = holder == 7,
			.queued = holder == 8,
			.blocked_ns = duration_ms * MS, .text = text, .len = sizeof(text) - 1,
		} },
	};
	struct lock_wait wait = lock_wait(&event, &info, start_ms, duration_ms);

	if (event.flags) {
		wait.ncycle = 2;
		wait.cycle[0] = waiter;
		wait.cycle[1] = holder;
	}
	report_wait(report, &wait);
}

static void empty(void)
{
	struct report *report = report_new(&(struct report_config){ .host = NULL });
	char *text = page(report);

	CHECK(strstr(text, "<h1>Database statements</h1>"));
	CHECK(!strstr(text, "id=\"statements\"") && !strstr(text, "id=\"waits\""));
	free(text);
	report_free(report);
	report = report_new(&(struct report_config){ .begin_ns = BEGIN, .end_ns = BEGIN + S });
	text = page(report);
	CHECK(strstr(text, "id=\"s-time\"") && !strstr(text, "s-sessions\""));
	free(text);
	report_free(report);
	report_free(NULL);
}

static size_t count_of(const char *text, const char *sought)
{
	size_t count = 0;

	for (; (text = strstr(text, sought)); text += strlen(sought))
		count++;
	return count;
}

/* The page states what is beyond its limits; the sums contain it. */
static void limits(void)
{
	struct report *report = new_report(1);
	char text[32], *written;

	TWICE(report) for (unsigned int i = 0; i < 3000; i++) {
		struct statement s;

		snprintf(text, sizeof(text), "select t%c%c%c.a", 'a' + i % 26, 'a' + i / 26 % 26,
			 'a' + i / 676);
		s = statement(text, i, 1 + i % 7);
		report_statement(report, &s);
		add_wait(report, 1000 + i, 7, i, 10);
	}
	for (unsigned int i = 0; i < 3000; i++) {
		report_server(report, "postgresql", "15", 1 + i % 100, "/p", NULL);
		report_damage(report, "gap <b>");
	}
	written = page(report);
	CHECK(strstr(written, "<dt>statements</dt><dd data-f=\"statements\">3000</dd>"));
	CHECK(strstr(written, "<dt>lock waits</dt><dd data-f=\"lock waits\">3000</dd>"));
	CHECK(count_of(written, "<tr id=\"g") == 60 && strstr(written, "<tr id=\"g60\""));
	CHECK(strstr(written, "<li>2800 statements that were faster"));
	CHECK(strstr(written, "<li>2800 shorter lock waits"));
	CHECK(strstr(written, "fingerprints with the least total time"));
	CHECK(strstr(written, "<li>2968 more parts of the recording"));
	CHECK(count_of(written, "gap &lt;b&gt;") == 32);
	CHECK(count_of(written, "<td>/p</td>") == 64);
	CHECK(strstr(written, "<li>1080 more servers are not listed"));
	CHECK(strlen(written) < 1 << 20, "%zu", strlen(written));
	free(written);
	report_free(report);
}

/* The slowest ones are kept, whatever the order. */
static void longest(void)
{
	struct report *report = new_report(1);
	char *written;

	TWICE(report) for (unsigned int i = 0; i < 1000; i++) {
		struct statement s = statement("select 1", i, 1 + i * 7919 % 1000);

		report_statement(report, &s);
	}
	written = page(report);
	CHECK(strstr(written, ">1.00s</td>") && count_of(written, ">801ms</td>") == 1);
	CHECK(!strstr(written, "data-v=\"800000000\""));
	free(written);
	report_free(report);
}

static void states(void)
{
	struct statement s;
	struct transaction transaction = { .open = true };
	struct report *report = new_report(1);
	struct summary summary = { .lost[LOSS_RING_FULL] = 12, .boundary = 3 };
	char *written;

	TWICE(report) {
		s = statement("select pg_sleep(9)", 0, 9000);
		s.running = true;
		report_statement(report, &s);
		s = statement(NULL, 0, 1);
		s.wall_ns = 0;
		s.failed = true;
		strcpy(s.sqlstate, "40P01");
		report_statement(report, &s);
		s.transaction = &transaction;
		report_statement(report, &s);
	}
	report_losses(report, &summary);
	written = page(report);
	CHECK(strstr(written, "<td>running</td>") && strstr(written, "failed 40P01"));
	CHECK(strstr(written, "<li>1 transactions") && strstr(written, "<li>3 statements ran"));
	CHECK(strstr(written, "<td>ring_full</td><td class=\"n\" data-v=\"12\">12</td>"));
	CHECK(strstr(written, "<code>unknown</code>"));
	free(written);
	report_free(report);
}

/* A server whose process becomes known, or is not any more, is the same one. */
static void servers(void)
{
	static const uint32_t pids[] = { 0, 7, 0, 8 };
	struct report *report = new_report(1);
	char *written;

	for (int i = 0; i < 4; i++)
		report_server(report, "PostgreSQL", "15", pids[i], "/p", NULL);
	report_server(report, "PostgreSQL", "16", 0, "/p", NULL);
	written = page(report);
	CHECK(count_of(written, "<td>/p</td>") == 3 && strstr(written, "data-v=\"8\""));
	free(written);
	report_free(report);
}

/* Waiters are left of those they wait for, also if one of these waited for them, but shorter. */
static void graph(void)
{
	for (uint64_t ms = 20; ms < 1000; ms += 500) {
		struct report *report = new_report(1);
		char *written, *at, name[16];
		long before = 0, x = 0;

		report_again(report);
		add_wait(report, 10, 40, 0, ms);
		for (uint32_t pid = 40; pid > 10; pid -= 10)
			add_wait(report, pid, pid - 10, 1000, 5000 + pid);
		written = page(report);
		CHECK(!strstr(written, "1 arrows of less than 1%") == (ms > 60));
		for (int pid = 40; pid; pid -= 10, before = x) {
			snprintf(name, sizeof(name), ">pid %d<", pid);
			at = strstr(strstr(written, "class=\"graph\""), name);
			while (memcmp(--at, "x=\"", 3))
				continue;
			x = atol(at + 3);
			CHECK(x > before);
		}
		free(written);
		report_free(report);
	}
}

/* A holder is idle in the timeline if it was, and was not active at that time for long. */
static void idle(void)
{
	for (uint64_t ms = 1; ms < 1000; ms += 900) {
		struct report *report = new_report(1);
		char *written;

		report_again(report);
		add_wait(report, 20, 7, 0, 5000);
		add_wait(report, 7, 30, 1000, ms);
		written = page(report);
		CHECK(!strstr(written, ">pid 7, idle</text>") == (ms > 1));
		CHECK(!strstr(written, ">pid 7</text>") == (ms == 1));
		free(written);
		report_free(report);
	}
}

/* Return the marks of a page, which end in the NUL. */
static char *marks_of(char *written)
{
	char *begin = strstr(written, "data-m=\"") + 8;

	*strchr(begin, '"') = '\0';
	return begin;
}

/* The moments have each statement once, also if others took as long, and none without a session. */
static void moments(void)
{
	struct report *report = new_report(1);
	char *written, *at;

	TWICE(report) for (unsigned int i = 0; i < 1000; i++) {
		struct statement s = statement("select 1", i, 100);
		const struct who who = { .pid = i };

		s.who = &who;
		report_statement(report, &s);
	}
	written = page(report);
	at = marks_of(written);
	CHECK(count_of(at, ",") > REPORT_KEPT + REPORT_COLUMNS / 2);
	for (unsigned int i = 0; i < 1000; i++) {
		char key[16];
		size_t count;

		snprintf(key, sizeof(key), " p%ua ", i);
		count = count_of(at, key);
		CHECK(i && i < REPORT_KEPT ? count == 1 : count <= !!i, "%u: %zu", i, count);
	}
	free(written);
	report_free(report);
}

/* Connections of the same number of two servers are two sessions. */
static void connections(void)
{
	struct event_lock event = { .pid = 1000 };
	struct lock_info info = {
		.self = { .pid = 1000, .connection = 8 }, .nholders = 1,
		.holders = { { .pid = 1000, .connection = 9, .blocked_ns = S } },
	};
	struct lock_wait wait = lock_wait(&event, &info, 0, 1000);
	struct report *report = new_report(1);
	char *written, *graph;

	report_again(report);
	report_wait(report, &wait);
	event.pid = info.self.pid = info.holders[0].pid = 2000;
	wait = lock_wait(&event, &info, 0, 1000);
	report_wait(report, &wait);
	written = page(report);
	graph = strstr(written, "class=\"graph\"");
	CHECK(count_of(graph, "<rect class=\"nd") == 4);
	CHECK(count_of(written, "<text class=\"yl\" x=\"162\"") == 4);
	CHECK(!strcmp(marks_of(written), "0 1000000 c8-1000a w0 0 c9-1000a 1000000 0,"
					 "0 1000000 c8-2000a w1 0 c9-2000a 1000000 0,"));
	free(written);
	report_free(report);
}

static struct report *sample(void)
{
	struct report *report = report_new(&(struct report_config){
		.host = hostile, .threshold = hostile, .version = "0.1.0", .source = "incident.rec",
		.begin_ns = BEGIN, .end_ns = BEGIN + 600 * S,
	});

	if (!report)
		abort();
	report_server(report, "postgresql", "15.14", 4242, "/usr/lib/postgresql/15/bin/postgres",
		      "");
	report_server(report, hostile, hostile, 0, hostile, hostile);
	report_damage(report, hostile);
	return report;
}

static void add_statements(struct report *report, unsigned int count)
{
	static const char *const texts[] = {
		"SELECT balance FROM accounts WHERE id = 17", "UPDATE accounts SET balance = 5",
		("SELECT *\nFROM orders o JOIN lines l ON l.o = o.id\nWHERE name = 'Smith'\n"
		 "\tAND l.price > 100\nORDER BY o.day DESC"),
		"INSERT INTO log VALUES (1, 'x')", "COMMIT",
	};
	uint64_t state = 1;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int which = i % 5;
		struct event_breakdown why = { .used = 1 };
		struct who who = { .pid = 100 + i % 20, .tid = 100 + i % 20, .user = "app" };
		struct statement s;

		state = state * 6364136223846793005u + 1442695040888963407u;
		s = statement(texts[which], (uint64_t)i * 600000 / count, 0);
		s.duration_ns = 20000ull << (state >> 60) << which / 2;
		if (i % 600 > 500)
			s.duration_ns *= 64;
		strcpy(who.database, i % 3 ? "shop" : "");
		s.who = &who;
		s.has_rows = true;
		s.rows = which;
		s.failed = i % 97 == 0;
		why.ns[BREAKDOWN_CPU] = s.duration_ns / 3;
		why.ns[i % BREAKDOWN_PARTS] += s.duration_ns - s.duration_ns / 3;
		s.why = i % 10 ? &why : NULL;
		report_statement(report, &s);
	}
}

/* Fill the @size bytes of @to with as much of the attacker's text as fits. */
static void fill(char *to, size_t size)
{
	size_t len = size <= sizeof(hostile) ? size - 1 : sizeof(hostile) - 1;

	memcpy(to, hostile, len);
	to[len] = '\0';
}

/* Texts of an attacker in each place that has one. */
static void add_hostile(struct report *report)
{
	struct event_lock event = { .pid = 66, .flags = LOCK_SESSION };
	struct lock_info info = { .nholders = 1, .more = 3, .self = { .connection = 66 } };
	struct lock_wait wait = lock_wait(&event, &info, 300000, 500);
	struct statement s = statement(hostile, 400000, 3000);
	struct engine hostile_engine = { .name = hostile };
	struct server hostile_server = { .engine = &hostile_engine, .product = hostile };
	struct who who = session;
	char text[sizeof(hostile)];

	memcpy(text, hostile, sizeof(text));
	fill(who.user, sizeof(who.user));
	fill(who.database, sizeof(who.database));
	fill(who.client, sizeof(who.client));
	fill(who.application, sizeof(who.application));
	fill(hostile_server.path, sizeof(hostile_server.path));
	fill(hostile_server.version, sizeof(hostile_server.version));
	fill(hostile_server.container, sizeof(hostile_server.container));
	s.server = &hostile_server;
	s.who = &who;
	memcpy(s.sqlstate, "<\"'&>", 6);
	s.failed = true;
	report_statement(report, &s);
	info.self.text = info.holders[0].text = text;
	info.self.len = info.holders[0].len = sizeof(text) - 1;
	info.holders[0].valid = info.self.valid = true;
	memcpy(info.object, hostile, sizeof(hostile));
	memcpy(info.name, hostile, sizeof(info.name) - 1);
	wait.kind = hostile;
	report_wait(report, &wait);
	event.flags = LOCK_LWLOCK;
	memcpy(event.name, hostile, sizeof(event.name) - 1);
	report_wait(report, &wait);
}

static void add_waits(struct report *report)
{
	for (unsigned int i = 0; i < 40; i++)
		add_wait(report, 100 + i % 6, 101 + i % 6 + i % 2, 250000 + i * 900, 400 + 60 * i);
	add_wait(report, 100, 7, 240000, 9000);
	add_wait(report, 102, 8, 262000, 3000);
	add_wait(report, 9, 101, 260000, 1000);
	add_wait(report, 101, 9, 260000, 1000);
}

static void hostile_page(void)
{
	struct report *report = sample();
	char *written;

	TWICE(report) {
		add_statements(report, 3000);
		add_hostile(report);
		add_waits(report);
	}
	written = page(report);
	CHECK(!strstr(written, "<img") && count_of(written, "</script") == 1);
	CHECK(count_of(written, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;") > 8);
	CHECK(strstr(written, "\\u{202e}") && strstr(written, "\\x1b[31m\\x01\\x7f"));
	free(written);
	report_free(report);
}

static void no_space(void)
{
	struct report *report = new_report(1);
	int fd = open("/dev/full", O_WRONLY);

	output_init(&out, fd);
	CHECK(report_write(report, &out) == -ENOSPC);
	close(fd);
	report_free(report);
}

/* Many fingerprints; the texts are long. */
static void add_tables(struct report *report, unsigned int count, unsigned int tables)
{
	static char text[5000];

	memset(text, ' ', sizeof(text));
	for (unsigned int i = 0; i < count; i++) {
		struct event_breakdown why = { .ns = { 1000, 2000 } };
		char number[16], *c = text;
		struct statement s;

		c += sprintf(c, "select ");
		/* Digits of a name are kept. */
		snprintf(number, sizeof(number), "t%u", i % tables);
		for (int j = 0; j < 120; j++)
			c += sprintf(c, "%s.column_%d, ", number, j);
		s = statement(text, (uint64_t)i * 600000 / count, 1 + i % 1000);
		s.text_len = (size_t)(c - text);
		s.why = &why;
		report_statement(report, &s);
	}
}

static int write_page(const char *path, unsigned int count, unsigned int tables)
{
	struct report *report = sample();
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644), err;

	if (fd < 0)
		return 1;
	TWICE(report) {
		if (tables)
			add_tables(report, count, tables);
		else
			add_statements(report, count ? count : 3000);
		if (!count)
			add_hostile(report);
		add_waits(report);
	}
	output_init(&out, fd);
	err = report_write(report, &out);
	report_free(report);
	return close(fd) || err;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return write_page(argv[1], argc > 2 ? (unsigned int)atoi(argv[2]) : 0,
				  argc > 3 ? (unsigned int)atoi(argv[3]) : 0);
	RUN(escapes);
	RUN(faults);
	RUN(axis);
	RUN(marks);
	RUN(empty);
	RUN(extremes);
	RUN(limits);
	RUN(longest);
	RUN(states);
	RUN(servers);
	RUN(graph);
	RUN(idle);
	RUN(moments);
	RUN(connections);
	RUN(hostile_page);
	RUN(no_space);
	return check_done();
}
