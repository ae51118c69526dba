// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of cli/format/metrics: labels, bounds, limits; and of heatmap: cells and shades. */
#include "cli/format/metrics.h"

#include <errno.h>
#include <unistd.h>

#include "cli/format/heatmap.h"
#include "cli/format/openmetrics.h"
#include "cli/format/otlp_metrics.h"
#include "db/engine.h"
#include "db/mysql/probes.h"
#include "db/postgres/probes.h"
#include "loader/owners.h"
#include "tests/unit/check.h"

static struct metrics metrics;
static struct output out;

/* Return a statement of a server that was not found. Its session is valid until the next one. */
static struct statement statement(const char *text, const char *user)
{
	static const struct server server = { .product = "mysql" };
	static struct who who;

	snprintf(who.user, sizeof(who.user), "%s", user);
	return (struct statement){
		.server = &server, .who = &who, .duration_ns = 10000, .text = text,
		.text_len = strlen(text), .span_text = text, .span_text_len = strlen(text),
	};
}

static void add(const char *text, const char *user)
{
	struct statement s = statement(text, user);

	metrics_add(&metrics, &s, 0, NULL);
}

static const char *last(enum metrics_label label)
{
	return metrics_label(metrics.series[metrics.count - 1], label);
}

static void labels(void)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "a", "a" }, { "\xff", "?" }, { "a\xc3", "a?" }, { "\t\r\x7f", "???" },
		{ "\"\\\na", "???a" },
		{ "\xc2\x9b|\xe2\x80\x8b", "?|?" },
		{ "\xc3\xa4", "\xc3\xa4" }, { "\xed\xa0", "??" },
	};

	CHECK(!metrics_open(&metrics));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		add("select 1", cases[i].from);
		CHECK(!strcmp(last(METRICS_USER), cases[i].to), "%zu: %s", i, last(METRICS_USER));
	}
	/* Texts that become equal are one series. */
	CHECK(metrics.count == 1 + sizeof(cases) / sizeof(cases[0]));
	add("select 1", "\xfe");
	CHECK(metrics.count == 1 + sizeof(cases) / sizeof(cases[0]));
	metrics_close(&metrics);
}

static void commands(void)
{
	static const char *const cases[][2] = {
		{ "Insert into t", "insert" }, { "/* a */ (SELECT 1", "select" }, { "set", "set" },
		{ "selec", "other" }, { "elect", "other" }, { "1", "other" }, { "", "other" },
		{ "selectselectselectselect", "other" },
	}, *const several[][2] = {
		{ "begin; update t", "update" }, { "BEGIN ; (select 1)", "select" },
		{ "begin;", "begin" }, { "begin", "begin" }, { "beginx; update", "other" },
		{ "set a = ?; set b = ?; delete", "delete" }, { "set a = 'b; c'; delete", "set" },
		{ "set a to \"b;c\"; delete", "set" }, { "set a = $$b;c$$; delete", "set" },
		{ "begin -- a;delete", "begin" }, { "begin /* a;delete */", "begin" },
		{ "begin; set a = 1; set b = 2; delete", "set" }, { "commit; begin", "commit" },
		{ "savepoint a; insert", "insert" }, { "start transaction; truncate", "truncate" },
	};
	static const struct server postgres = { .product = "pg", .engine = &engine_postgres };
	static const struct server maria = { .product = "maria", .engine = &engine_mysql };
	struct statement s;

	CHECK(!metrics_open(&metrics));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		add(cases[i][0], cases[i][0]);
		CHECK(!strcmp(last(METRICS_COMMAND), cases[i][1]), "%s: %s", cases[i][0],
		      last(METRICS_COMMAND));
	}
	for (size_t i = 0; i < sizeof(several) / sizeof(several[0]); i++) {
		s = statement(several[i][0], several[i][0]);
		s.server = &postgres;
		metrics_add(&metrics, &s, 0, NULL);
		CHECK(!strcmp(last(METRICS_COMMAND), several[i][1]), "%s: %s", several[i][0],
		      last(METRICS_COMMAND));
	}
	/* There, each is a statement of its own, and this is one. */
	s = statement("begin not atomic select 1; end", "a");
	s.server = &maria;
	metrics_add(&metrics, &s, 0, NULL);
	CHECK(!strcmp(last(METRICS_COMMAND), "begin"), "%s", last(METRICS_COMMAND));
	metrics_close(&metrics);
}

static void bounds(void)
{
	for (unsigned int i = 0; i < METRICS_BOUNDS; i++) {
		struct statement s = statement("select 1", "");
		double text = strtod(metrics_bound_text(i), NULL) * 1e9;

		CHECK(metrics_bound_ns(i) == (uint64_t)(text + 0.5), "%u: %s", i,
		      metrics_bound_text(i));
		CHECK(!metrics_open(&metrics));
		s.duration_ns = metrics_bound_ns(i);
		metrics_add(&metrics, &s, 0, NULL);
		s.duration_ns++;
		metrics_add(&metrics, &s, 0, NULL);
		CHECK(metrics.series[1]->bucket[i] == 1 && metrics.series[1]->bucket[i + 1] == 1);
		metrics_close(&metrics);
	}
}

/* Beyond the share of a Unix user, and the limit of all, statements are counted without labels. */
static void limits(void)
{
	struct metrics_tool tool = { .path = "x\"y", .summary = { .statements = 3 } };
	static const struct server servers[] = {
		{ .product = "mysql", .has_uid = true, .uid = 7 },
		{ .product = "mysql", .has_uid = true, .uid = 8 },
	};
	size_t share = OWNER_SHARE(METRICS_SERIES);
	char user[16];

	CHECK(!metrics_open(&metrics));
	for (size_t i = 0; i < 2 * METRICS_SERIES; i++) {
		struct statement s;

		snprintf(user, sizeof(user), "u%zu", i);
		s = statement("select 1", user);
		s.server = &servers[i / METRICS_SERIES];
		metrics_add(&metrics, &s, 0, NULL);
		if (i == share - 1)
			CHECK(!metrics.limited && metrics.count == share + 1);
		if (i == METRICS_SERIES - 1)
			CHECK(metrics.limited == METRICS_LIMIT_USER && metrics.count == share + 1);
	}
	CHECK(metrics.limited == (METRICS_LIMIT_USER | METRICS_LIMIT_ALL));
	CHECK(metrics.count == METRICS_SERIES + 1);
	CHECK(metrics.series[0]->count == METRICS_SERIES, "%llu",
	      (unsigned long long)metrics.series[0]->count);
	add("select 1", "u1");
	CHECK(metrics.series[0]->count == METRICS_SERIES + 1);
	output_init(&out, -1);
	metrics.count = 1;
	openmetrics_put(&out, &metrics, &tool);
	out.buf[out.len] = '\0';
	CHECK(strstr(out.buf, "dbslower_statement_duration_seconds_count{file=\"x\\\"y\"} 1001\n"));
	CHECK(strstr(out.buf, "dbslower_unlabelled_statements_total{file=\"x\\\"y\"} 1001\n"));
	CHECK(strstr(out.buf, "dbslower_events_total{file=\"x\\\"y\"} 3\n"));
	metrics.count = METRICS_SERIES + 1;
	metrics_close(&metrics);
}

/* Processes of an unknown user have a share of their own, also beside those of root. */
static void unknown_user(void)
{
	struct server server = { .product = "mysql", .pid = 5, .has_uid = true,
				 .directory = "/a" };
	struct statement s;
	size_t share = OWNER_SHARE(METRICS_SERIES);
	char user[16];

	CHECK(!metrics_open(&metrics));
	for (size_t i = 0; i <= share; i++) {
		snprintf(user, sizeof(user), "u%zu", i);
		add("select 1", user);
		CHECK(!*last(METRICS_UID));
	}
	CHECK(metrics.count == share + 1 && metrics.limited == METRICS_LIMIT_USER);
	s = statement("select 1", "root");
	s.server = &server;
	metrics_add(&metrics, &s, 0, NULL);
	CHECK(metrics.count == share + 2 && !strcmp(last(METRICS_UID), "0") &&
	      !strcmp(last(METRICS_SERVER), "/a"));
	/* The user is that of the process, also if its server was not found. */
	server = (struct server){ .product = "mysql", .has_uid = true, .uid = 9 };
	metrics_add(&metrics, &s, 0, NULL);
	CHECK(metrics.count == share + 3 && !strcmp(last(METRICS_UID), "9") &&
	      !*last(METRICS_SERVER));
	metrics_close(&metrics);
}

/* Append a line of OpenTelemetry to @out, and return how often it has @text. */
static int occurrences(struct otlp *otlp, const char *text)
{
	const struct metrics_tool tool = { .path = "x" };
	int n = 0;

	out.len = 0;
	otlp_metrics_put(otlp, &metrics, &tool);
	out.buf[out.len] = '\0';
	for (const char *at = out.buf; (at = strstr(at, text)); at++)
		n++;
	return n;
}

/* Only the series that counted are in the next line, and all after a failure. */
static void unchanged(void)
{
	struct otlp otlp = { .out = &out };

	CHECK(!metrics_open(&metrics));
	output_init(&out, -1);
	add("select 1", "a");
	add("select 1", "b");
	CHECK(occurrences(&otlp, "bucketCounts") == 2);
	CHECK(occurrences(&otlp, "bucketCounts") == 0);
	CHECK(occurrences(&otlp, "dbslower.events") == 1);
	add("select 1", "b");
	CHECK(occurrences(&otlp, "bucketCounts") == 1 && strstr(out.buf, "\"count\":\"2\""));
	CHECK(occurrences(&otlp, "dataPoints\":[]") == 4);
	CHECK(otlp_metrics_flush(&otlp, &metrics) == -EBADF);
	CHECK(!out.error && out.len == 1 && *out.buf == '\n');
	CHECK(occurrences(&otlp, "bucketCounts") == 2);
	metrics_close(&metrics);
}

/* Fine slots of 1 ns, 1 us, 1 ms and 2^63 ns. */
static void heatmap(void)
{
	struct histogram_row rows[] = {
		{ .fine = 1, .count = 1 }, { .fine = 6 * STAT_FINE + 15, .count = 1 },
		{ .fine = 16 * STAT_FINE + 14, .count = 1000 },
		{ .fine = 60 * STAT_FINE, .count = 9 },
	};
	struct heatmap map = { .scale = 2 };
	const char *cells = out.buf + 9;

	output_init(&out, -1);
	heatmap_line(&map, &out, 0, rows, 4);
	out.buf[out.len] = '\0';
	CHECK(out.len == 9 + 54 + 1 + 4 + 1 && !strcmp(cells + 54, " 1011\n"), "%s", out.buf);
	/* The logarithms of 2, 1000 and 9, of that of 1000. */
	CHECK(cells[0] == '.' || cells[0] == ':', "%s", out.buf);
	CHECK(cells[19] == '@' && strspn(cells + 1, " ") == 18, "%s", out.buf);
	CHECK(cells[53] == '-' && strspn(cells + 20, " ") == 33, "%s", out.buf);
	/* The scale stays that of the largest count. */
	out.len = 0;
	heatmap_line(&map, &out, 0, rows + 1, 1);
	CHECK(cells[0] == '.' && map.most == 1000, "%.*s", (int)out.len, out.buf);
	out.len = 0;
	heatmap_axis(&map, &out);
	out.buf[out.len] = '\0';
	CHECK(strstr(out.buf, "1ms") == cells + 19, "%s", out.buf);
	map.color = true;
	out.len = 0;
	heatmap_line(&map, &out, 0, rows + 2, 1);
	out.buf[out.len] = '\0';
	CHECK(strstr(out.buf, " \033[48;5;227m \033[0m "), "%s", out.buf);
}

int main(void)
{
	RUN(labels);
	RUN(commands);
	RUN(bounds);
	RUN(limits);
	RUN(unknown_user);
	RUN(unchanged);
	RUN(heatmap);
	return check_done();
}
