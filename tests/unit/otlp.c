// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of cli/format/otlp: names, clients, ids; tests/e2e/test_otlp.py reads whole lines. */
#include <string.h>

#include "bpf/event.h"
#include "cli/format/otlp.h"
#include "cli/format/uuid.h"
#include "db/engine.h"
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

static const struct engine engine = { .name = "mysql" };
/* Of all statements, unless a test has its own. */
static const struct server unfound = { .engine = &engine, .product = "mysql",
				       .otel_system = "mysql" };
static const struct who session = { .pid = 7, .tid = 7, .database = "d\"b" };

static struct statement statement(const char *text)
{
	return (struct statement){
		.server = &unfound, .who = &session, .wall_ns = 1000, .duration_ns = 234,
		.span_text = text, .span_text_len = strlen(text),
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
		struct who who = session;

		strcpy(who.client, cases[i][0]);
		st.who = &who;
		CHECK(strstr(line(&st), cases[i][1]), "%s: %s", cases[i][0], out.buf);
	}
}

static void kinds(void)
{
	static const struct engine other = { .name = "memsqld" };
	static const struct engine postgres = { .name = "postgresql" };
	static const struct who unknown = { .user = "" };
	struct statement st = statement("select 1");
	struct server server = unfound;
	struct traceparent parent = { .trace = "0af7651916cd43dd8448eb211c80319c",
				      .span = "b7ad6b7169203331", .flags = 1 };

	CHECK(strstr(line(&st), "\"startTimeUnixNano\":\"1000\",\"endTimeUnixNano\":\"1234\""));
	CHECK(!strstr(out.buf, "parentSpanId") && !strstr(out.buf, "status"), "%s", out.buf);
	st.server = &server;
	server.otel_system = "mariadb";
	CHECK(strstr(line(&st), "\"db.system.name\",\"value\":{\"stringValue\":\"mariadb\"}"));
	server.engine = &other;
	server.otel_system = "other_sql";
	st.parent = &parent;
	strcpy(server.container, "0123456789ab");
	CHECK(strstr(line(&st), "\"other_sql\"") && strstr(out.buf, "\"container.id\""));
	CHECK(strstr(out.buf, "{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"") &&
	      strstr(out.buf,
		     ",\"parentSpanId\":\"b7ad6b7169203331\",\"flags\":769,"), "%s", out.buf);
	strcpy(server.container, "web");
	st.has_status = st.failed = true;
	CHECK(strstr(line(&st), "\"container.name\"") && strstr(out.buf, "\"_OTHER\"") &&
	      strstr(out.buf, "],\"status\":{\"code\":2}}]}]}]}\n"), "%s", out.buf);
	/* All optional members unknown. */
	server = (struct server){ .engine = &postgres, .product = "postgresql",
				  .otel_system = "postgresql" };
	st = (struct statement){ .server = &server, .who = &unknown };
	CHECK(strstr(line(&st), "\"name\":\"postgresql\""), "%s", out.buf);
}

static bool has(const char *key, const char *value)
{
	char want[256];

	snprintf(want, sizeof(want), "{\"key\":\"%s\",\"value\":{\"stringValue\":\"%s\"}}", key,
		 value);
	return strstr(out.buf, want);
}

static void errors(void)
{
	struct statement st = statement("select 1");
	struct who who = session;

	/* The text that is shown elsewhere is not in a span, nor is an attribute called db.user. */
	st.text = "select 'secret'";
	st.text_len = strlen(st.text);
	strcpy(who.user, "alice");
	st.who = &who;
	line(&st);
	CHECK(has("db.query.text", "select 1") && !strstr(out.buf, "secret"), "%s", out.buf);
	CHECK(has("dbslower.user", "alice") && !strstr(out.buf, "\"db.user\""), "%s", out.buf);
	/* MySQL's and MariaDB's code is the number; PostgreSQL has no other than the SQLSTATE. */
	st.has_status = st.failed = true;
	strcpy(st.sqlstate, "42S02");
	line(&st);
	CHECK(has("db.response.status_code", "42S02") && has("error.type", "42S02") &&
	      !strstr(out.buf, "dbslower.sqlstate"), "%s", out.buf);
	st.error_code = 1146;
	line(&st);
	CHECK(has("db.response.status_code", "1146") && has("error.type", "1146") &&
	      has("dbslower.sqlstate", "42S02"), "%s", out.buf);
}

static void servers(void)
{
	static const uint8_t dns[UUID_BYTES] = { 0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1,
						 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8 };
	struct server server = { .engine = &engine, .product = "mariadb", .otel_system = "mysql",
				 .version = "10.11\"", .has_uid = true, .uid = 101,
				 .container = "c", .directory = "/data", .pid = 7 };
	struct statement st = statement("select 1");
	char text[UUID_TEXT], name[100];

	/* The example of RFC 9562, and the lengths at which SHA-1 begins another block. */
	uuid_of_name(dns, "www.example.com", 15, text);
	CHECK(!strcmp(text, "2ed6657d-e927-568b-95e1-2665a8aea6a2"), "%s", text);
	memset(name, 'x', sizeof(name));
	uuid_of_name(dns, name, 39, text);
	CHECK(!strcmp(text, "2f80c0d1-1c62-579f-8d68-e61ad5592c9b"), "%s", text);
	uuid_of_name(dns, name, 40, text);
	CHECK(!strcmp(text, "e56fd57a-7633-5e1d-8f80-70e05ac413e5"), "%s", text);
	uuid_of_name(dns, name, 100, text);
	CHECK(!strcmp(text, "897f5b43-a3c8-582d-9c8d-9cfe358a534d"), "%s", text);

	strcpy(otlp.host, "h");
	st.server = &server;
	line(&st);
	CHECK(has("service.name", "mariadb") && has("service.version", "10.11\\\"") &&
	      has("service.instance.id", "2e03a705-0f5f-5f47-854a-eac5a031bf1b"), "%s", out.buf);
	/* Without a data directory, the process is the server. */
	*server.directory = '\0';
	*server.version = '\0';
	line(&st);
	CHECK(!strstr(out.buf, "service.version") &&
	      has("service.instance.id", "7017d794-d6b2-5b3b-9cd7-d82d920ceb33"), "%s", out.buf);
	server.pid = 0;
	CHECK(!strstr(line(&st), "service.instance.id"), "%s", out.buf);
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
	RUN(errors);
	RUN(servers);
	RUN(phases);
	RUN(without);
	return check_done();
}
