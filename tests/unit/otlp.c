// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of cli/otlp: names, clients, ids; tests/e2e/test_otlp.py reads whole lines. */
#include <string.h>

#include "bpf/event.h"
#include "cli/otlp.h"
#include "sql/traceparent.h"
#include "tests/unit/check.h"

static struct output out;
static struct otlp otlp;

/* Return the line of @st as a string. */
static const char *line(const struct statement *st)
{
	out.len = 0;
	otlp_statement(&otlp, st);
	out.buf[out.len] = '\0';
	return out.buf;
}

static struct statement statement(const char *text)
{
	return (struct statement){
		.engine = "mysql", .otel_system = "mysql", .pid = 7, .tid = 7, .wall_ns = 1000,
		.duration_ns = 234, .database = "d\"b", .text = text, .text_len = strlen(text),
	};
}

static void names(void)
{
	static const char *const cases[][2] = {
		{ "select 1", "SELECT d\\\"b" }, { "\t(( Select 1", "SELECT d\\\"b" },
		{ "/* a */ /**/insert", "INSERT d\\\"b" }, { "begin", "BEGIN d\\\"b" },
		{ "", "mysql" }, { "1", "mysql" }, { "/* open", "mysql" }, { "/", "mysql" },
		{ "/*/ select", "mysql" }, { "abcdefghijklmnop q", "ABCDEFGHIJKLMNOP d\\\"b" },
		{ "abcdefghijklmnopq", "mysql" }, { "\xc3\xa9", "mysql" }, { "[", "mysql" },
		{ "{", "mysql" },
	};
	char want[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct statement st = statement(cases[i][0]);

		snprintf(want, sizeof(want), "\"name\":\"%s\"", cases[i][1]);
		CHECK(strstr(line(&st), want), "%s: %s", cases[i][0], out.buf);
	}
}

static void clients(void)
{
	static const char *const cases[][2] = {
		{ "10.0.0.7(53122)",
		  "\"client.address\",\"value\":{\"stringValue\":\"10.0.0.7\"}},"
		  "{\"key\":\"client.port\",\"value\":{\"intValue\":\"53122\"}}" },
		{ "::1(1)", "\"stringValue\":\"::1\"}},{\"key\":\"client.port\"" },
		{ "[local]", "\"network.transport\",\"value\":{\"stringValue\":\"unix\"}}" },
		{ "a()", "\"client.address\",\"value\":{\"stringValue\":\"a()\"}}" },
		{ "a(123456)", "\"stringValue\":\"a(123456)\"}}" },
		{ "(1)", "\"stringValue\":\"(1)\"}}" }, { "1)", "\"stringValue\":\"1)\"}}" },
		{ ")", "\"stringValue\":\")\"}}" }, { "a(x1)", "\"stringValue\":\"a(x1)\"}}" },
		{ "\xff", "\"stringValue\":\"\xef\xbf\xbd\"}}" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct statement st = statement("select 1");

		st.client = cases[i][0];
		CHECK(strstr(line(&st), cases[i][1]), "%s: %s", cases[i][0], out.buf);
	}
}

static void kinds(void)
{
	struct statement st = statement("select 1");
	struct traceparent parent = { .trace = "0af7651916cd43dd8448eb211c80319c",
				      .span = "b7ad6b7169203331", .flags = 1 };

	CHECK(strstr(line(&st), "\"startTimeUnixNano\":\"1000\",\"endTimeUnixNano\":\"1234\""));
	CHECK(!strstr(out.buf, "parentSpanId") && !strstr(out.buf, "status"), "%s", out.buf);
	st.otel_system = "mariadb";
	CHECK(strstr(line(&st), "\"db.system.name\",\"value\":{\"stringValue\":\"mariadb\"}"));
	st.engine = "memsqld";
	st.otel_system = "other_sql";
	st.parent = &parent;
	st.container = "0123456789ab";
	CHECK(strstr(line(&st), "\"other_sql\"") && strstr(out.buf, "\"container.id\""));
	CHECK(strstr(out.buf, "{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"") &&
	      strstr(out.buf,
		     ",\"parentSpanId\":\"b7ad6b7169203331\",\"flags\":769,"), "%s", out.buf);
	st.container = "web";
	st.has_status = st.failed = true;
	CHECK(strstr(line(&st), "\"container.name\"") && strstr(out.buf, "\"_OTHER\"") &&
	      strstr(out.buf, "],\"status\":{\"code\":2}}]}]}]}\n"), "%s", out.buf);
	/* All optional members unknown. */
	st = (struct statement){ .engine = "postgresql", .otel_system = "postgresql" };
	CHECK(strstr(line(&st), "\"name\":\"postgresql\""), "%s", out.buf);
}

static void phases(void)
{
	struct statement st = statement("select 1");
	struct event_breakdown why = { .start_ns = 500, .phases = {
		[PHASE_PARSE] = { .first_ns = 510, .ns = 20 },
		[PHASE_EXECUTE] = { .first_ns = 600, .ns = 100 } } };
	char want[256], id[SPAN_DIGITS + 1] = "";

	st.why = &why;
	CHECK(sscanf(strstr(line(&st), "\"spanId\":\"") + 10, "%16[0-9a-f]", id) == 1, "%s",
	      out.buf);
	snprintf(want, sizeof(want), "\"parentSpanId\":\"%s\",\"name\":\"execute\",\"kind\":1,"
		 "\"startTimeUnixNano\":\"1100\",\"endTimeUnixNano\":\"1200\"}]}]}]}\n", id);
	CHECK(strstr(out.buf, want), "%s", out.buf);
	CHECK(strstr(out.buf, "\"parse\",\"kind\":1,\"startTimeUnixNano\":\"1010\""), "%s",
	      out.buf);
	CHECK(!strstr(out.buf, "\"plan\"") && !strstr(out.buf, "\"rewrite\""), "%s", out.buf);
}

static void without(void)
{
	struct statement st = statement("select 1");
	struct otlp none;

	memset(&none, 0, sizeof(none));
	CHECK(!otlp_open(&none, NULL, &out) && !otlp_is_standard(&none));
	otlp_statement(&none, &st);
	CHECK(!otlp_flush(&none));
	otlp_close(&none);
}

int main(void)
{
	output_init(&out, -1);
	if (otlp_open(&otlp, "-", &out) || !otlp_is_standard(&otlp))
		return 1;
	RUN(names);
	RUN(clients);
	RUN(kinds);
	RUN(phases);
	RUN(without);
	return check_done();
}
