// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of attributes are those of OpenTelemetry's semantic conventions for databases; what these
 * do not know begins with "dbslower.".
 */
#include "cli/otlp.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/escape.h"
#include "cli/json.h"
#include "cli/version.h"
#include "host/clock.h"
#include "sql/traceparent.h"
#include "db/breakdown.h"

#define KIND_INTERNAL	1	/* SPAN_KIND_INTERNAL */
#define KIND_SERVER	2	/* SPAN_KIND_SERVER */
#define STATUS_ERROR	2	/* STATUS_CODE_ERROR */
#define FLAGS_REMOTE	0x300	/* it is known whether the parent is elsewhere, and it is */
#define OPERATION_MAX	16
#define CONTAINER_ID	12	/* digits that an id has at least */

/* A statement's. */
struct span {
	const struct traceparent *parent;	/* whose trace it is; NULL: it has its own */
	uint64_t trace[2], id;
};

/* splitmix64 by Steele, Lea and Flood: ids must be unique, and need not be secret. */
static uint64_t otlp_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return z ? z : otlp_random(state);
}

/* Early at boot there is no randomness yet, and waiting for it could take forever. */
static void otlp_seed(uint64_t random[2])
{
	if (getrandom(random, 2 * sizeof(*random), GRND_NONBLOCK) == 2 * sizeof(*random))
		return;
	random[0] = clock_ns(CLOCK_REALTIME);
	random[1] = clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 40;
}

/* A line that an earlier run could not finish must not spoil the next one. */
static void otlp_mend(struct output *out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	char last;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n')
		output_char(out, '\n');
	if (fd >= 0)
		close(fd);
}

int otlp_open(struct otlp *otlp, const char *path, struct output *standard)
{
	struct utsname name;
	int fd;

	otlp->out = NULL;
	if (!path)
		return 0;
	otlp_seed(otlp->random);
	if (!uname(&name))
		memcpy(otlp->host, name.nodename, strnlen(name.nodename, sizeof(otlp->host) - 1));
	if (!strcmp(path, "-")) {
		otlp->out = standard;
		return 0;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0)
		return -errno;
	otlp->out = &otlp->file;
	output_init(otlp->out, fd);
	otlp_mend(otlp->out, path);
	return 0;
}

void otlp_stoppable(struct otlp *otlp, int stop_fd)
{
	if (otlp->out == &otlp->file)
		output_stoppable(otlp->out, stop_fd);
}

bool otlp_is_standard(const struct otlp *otlp)
{
	return otlp->out && otlp->out != &otlp->file;
}

int otlp_flush(struct otlp *otlp)
{
	return otlp->out ? output_flush(otlp->out) : 0;
}

void otlp_close(struct otlp *otlp)
{
	if (otlp->out == &otlp->file)
		close(otlp->file.fd);
	otlp->out = NULL;
}

/* An attribute behind the first of its list: the key, and what follows it. */
static void put_key(struct output *out, const char *key, const char *more)
{
	output_string(out, ",{\"key\":\"");
	output_string(out, key);
	output_string(out, more);
}

static void put_text(struct output *out, const char *key, const char *text, size_t len, bool cut)
{
	put_key(out, key, "\",\"value\":{\"stringValue\":\"");
	escape_json(out, text, len, cut);
	output_string(out, "\"}}");
}

static void put_string(struct output *out, const char *key, const char *value)
{
	if (value)
		put_text(out, key, value, strlen(value), false);
}

/* Integers of 64 bits are strings in protobuf's JSON. */
static void put_part(struct output *out, const char *group, const char *name, uint64_t value)
{
	put_key(out, group, name);
	json_number(out, "\",\"value\":{\"intValue\":\"", value);
	output_string(out, "\"}}");
}

static void put_number(struct output *out, const char *key, uint64_t value)
{
	put_part(out, key, "", value);
}

/* Behind the blanks and comments that stand first. */
static size_t skip_ahead(const char *text, size_t len)
{
	size_t at = 0;
	const char *end;

	for (;;) {
		while (at < len && (text[at] == ' ' || text[at] == '(' ||
				    (text[at] >= '\t' && text[at] <= '\r')))
			at++;
		if (len - at < 2 || text[at] != '/' || text[at + 1] != '*')
			return at;
		end = memmem(text + at + 2, len - at - 2, "*/", 2);
		if (!end)
			return len;
		at = (size_t)(end + 2 - text);
	}
}

/* The statement's first word in capitals; "" where it does not begin with a short one of letters. */
static void otlp_operation(const struct statement *st, char operation[OPERATION_MAX + 1])
{
	size_t at = st->text ? skip_ahead(st->text, st->text_len) : 0, n = 0;

	for (; st->text && at < st->text_len; at++) {
		char upper = st->text[at] >= 'a' ? (char)(st->text[at] - 'a' + 'A') : st->text[at];

		if (upper < 'A' || upper > 'Z' || n > OPERATION_MAX)
			break;
		if (n < OPERATION_MAX)
			operation[n] = upper;
		n++;
	}
	operation[n <= OPERATION_MAX ? n : 0] = '\0';
}

/* Few different ones: "SELECT shop", or the kind of server. */
static void put_name(struct output *out, const struct statement *st)
{
	char operation[OPERATION_MAX + 1];

	otlp_operation(st, operation);
	output_string(out, ",\"name\":\"");
	output_string(out, *operation ? operation : st->otel_system);
	if (*operation && st->database) {
		output_char(out, ' ');
		escape_json(out, st->database, strlen(st->database), false);
	}
	output_char(out, '"');
}

/* "10.0.0.7(53122)" of PostgreSQL has a port, "[local]" is no address. */
static void put_client(struct output *out, const char *client)
{
	size_t len = client ? strlen(client) : 0, digits = 0;

	if (!len)
		return;
	if (!strcmp(client, "[local]")) {
		put_string(out, "network.transport", "unix");
		return;
	}
	if (client[len - 1] == ')')
		while (digits + 1 < len && client[len - 2 - digits] >= '0' &&
		       client[len - 2 - digits] <= '9')
			digits++;
	if (!digits || digits > 5 || digits + 2 >= len || client[len - 2 - digits] != '(') {
		put_string(out, "client.address", client);
		return;
	}
	put_text(out, "client.address", client, len - digits - 2, false);
	put_key(out, "client.port", "\",\"value\":{\"intValue\":\"");
	output_bytes(out, client + len - 1 - digits, digits);
	output_string(out, "\"}}");
}

static void put_query(struct output *out, const struct statement *st)
{
	if (!st->text)
		return;
	put_text(out, "db.query.text", st->text, st->text_len, st->truncated);
	if (st->truncated) {
		put_key(out, "dbslower.query.truncated", "\",\"value\":{\"boolValue\":true}}");
		if (st->has_query_bytes)
			put_number(out, "dbslower.query.bytes", st->query_bytes);
	}
}

static void put_failure(struct output *out, const struct statement *st)
{
	char code[OUTPUT_NUMBER];
	size_t len = output_format(code, st->error_code, 0);

	if (st->error_code) {
		put_text(out, "db.response.status_code", code, len, false);
		put_text(out, "error.type", code, len, false);
	} else if (st->has_status && st->failed) {
		put_string(out, "error.type", "_OTHER");
	}
}

static void put_why(struct output *out, const struct event_breakdown *why)
{
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		put_part(out, "dbslower.why.", breakdown_part_name((enum breakdown_part)i),
			 why->ns[i]);
	for (int i = 0; i < USES; i++)
		if (why->used & 1u << i)
			put_part(out, "dbslower.use.", breakdown_use_name((enum use)i),
				 why->use[i]);
}

static void put_attributes(struct output *out, const struct statement *st)
{
	json_string(out,
		    ",\"attributes\":[{\"key\":\"db.system.name\",\"value\":{\"stringValue\":\"",
		    st->otel_system);
	output_string(out, "}}");
	put_query(out, st);
	put_string(out, "db.namespace", st->database);
	put_string(out, "db.user", st->user);
	put_client(out, st->client);
	put_number(out, "process.pid", st->pid);
	if (st->tid != st->pid)
		put_number(out, "thread.id", st->tid);
	if (st->connection_id)
		put_number(out, "dbslower.connection_id", st->connection_id);
	if (st->has_rows)
		put_number(out, "dbslower.rows", st->rows);
	put_failure(out, st);
	if (st->why)
		put_why(out, st->why);
	output_char(out, ']');
}

static void put_digits(struct output *out, uint64_t id)
{
	static const char hex[] = "0123456789abcdef";
	char digits[SPAN_DIGITS];

	for (int i = 0; i < SPAN_DIGITS; i++)
		digits[i] = hex[id >> (60 - 4 * i) & 15];
	output_bytes(out, digits, sizeof(digits));
}

/* Begins a span that is called @span. */
static void put_ids(struct output *out, const struct span *of, uint64_t span)
{
	output_string(out, "{\"traceId\":\"");
	if (of->parent) {
		output_string(out, of->parent->trace);
	} else {
		put_digits(out, of->trace[0]);
		put_digits(out, of->trace[1]);
	}
	output_string(out, "\",\"spanId\":\"");
	put_digits(out, span);
	output_char(out, '"');
}

static void put_times(struct output *out, int kind, uint64_t start_ns, uint64_t duration_ns)
{
	json_number(out, ",\"kind\":", (uint64_t)kind);
	json_number(out, ",\"startTimeUnixNano\":\"", start_ns);
	json_number(out, "\",\"endTimeUnixNano\":\"", start_ns + duration_ns);
	output_char(out, '"');
}

/* Below the statement's span one for each phase, as long as it took in all. */
static void put_phases(struct otlp *otlp, const struct statement *st, const struct span *of)
{
	struct output *out = otlp->out;

	for (int i = 0; st->why && i < PHASES; i++) {
		const struct breakdown_phase *phase = &st->why->phases[i];

		if (!phase->first_ns)
			continue;
		output_char(out, ',');
		put_ids(out, of, otlp_random(&otlp->random[0]));
		output_string(out, ",\"parentSpanId\":\"");
		put_digits(out, of->id);
		json_string(out, "\",\"name\":\"", breakdown_phase_name((enum phase)i));
		put_times(out, KIND_INTERNAL, st->wall_ns + (phase->first_ns - st->why->start_ns),
			  phase->ns);
		output_char(out, '}');
	}
}

static void put_parent(struct output *out, const struct traceparent *parent)
{
	if (!parent)
		return;
	json_string(out, ",\"parentSpanId\":\"", parent->span);
	json_number(out, ",\"flags\":", (uint64_t)(FLAGS_REMOTE | parent->flags));
}

/* What the span is of: the server. */
static void put_resource(struct otlp *otlp, const struct statement *st)
{
	struct output *out = otlp->out;
	bool id = st->container &&
		  strspn(st->container, "0123456789abcdef") == strlen(st->container) &&
		  strlen(st->container) >= CONTAINER_ID;

	json_string(out,
		    "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\","
			 "\"value\":{\"stringValue\":\"", st->engine);
	output_string(out, "}}");
	put_string(out, "host.name", *otlp->host ? otlp->host : NULL);
	put_string(out, id ? "container.id" : "container.name", st->container);
	output_string(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"dbslower\",\"version\":\"");
	output_bytes(out, version_text, strcspn(version_text, " "));
	output_string(out, "\"},\"spans\":[");
}

void otlp_statement(struct otlp *otlp, const struct statement *st)
{
	struct output *out = otlp->out;
	struct span span = { .parent = st->parent };

	if (!out)
		return;
	span.id = otlp_random(&otlp->random[0]);
	span.trace[0] = otlp_random(&otlp->random[0]);
	span.trace[1] = otlp_random(&otlp->random[1]);
	put_resource(otlp, st);
	put_ids(out, &span, span.id);
	put_parent(out, st->parent);
	put_name(out, st);
	put_times(out, KIND_SERVER, st->wall_ns, st->duration_ns);
	put_attributes(out, st);
	if (st->has_status && st->failed) {
		json_number(out, ",\"status\":{\"code\":", STATUS_ERROR);
		output_char(out, '}');
	}
	output_char(out, '}');
	put_phases(otlp, st, &span);
	output_string(out, "]}]}]}\n");
}
