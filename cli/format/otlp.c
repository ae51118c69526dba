// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/otlp.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/hex.h"
#include "cli/format/escape.h"
#include "cli/format/json.h"
#include "cli/format/uuid.h"
#include "cli/version.h"
#include "db/engine.h"
#include "db/session/breakdown.h"
#include "host/clock.h"
#include "host/open.h"
#include "sql/command.h"
#include "sql/traceparent.h"

#define KIND_INTERNAL	1	/* SPAN_KIND_INTERNAL */
#define KIND_SERVER	2	/* SPAN_KIND_SERVER */
#define STATUS_ERROR	2	/* STATUS_CODE_ERROR */
#define FLAGS_REMOTE	0x300	/* the parent is known to be in another process */
#define CONTAINER_ID	12	/* minimum number of digits of an id */

/* The ids of a statement's span. */
struct span {
	const struct traceparent *parent;	/* NULL: it has a trace of its own */
	uint64_t trace[2], id;
};

/* splitmix64 by Steele, Lea and Flood: ids must be unique, but not secret. */
static uint64_t otlp_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return z ? z : otlp_random(state);
}

/* Early at boot getrandom() could block forever. */
static void otlp_seed(uint64_t random[2])
{
	if (getrandom(random, 2 * sizeof(*random), GRND_NONBLOCK) == 2 * sizeof(*random))
		return;
	random[0] = clock_ns(CLOCK_REALTIME);
	random[1] = clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 40;
}

/* End the last line of the file if an earlier run did not, so that the first span is valid. */
static void otlp_end_line(struct output *out)
{
	struct stat st;
	char last;

	if (!fstat(out->fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 &&
	    pread(out->fd, &last, 1, st.st_size - 1) == 1 && last != '\n')
		output_char(out, '\n');
}

/* Collect the fields that have an attribute, in the order of their positions. */
static void otlp_fields(struct otlp *otlp)
{
	otlp->nfields = 0;
	for (const struct field *field = field_rows; field->get; field++) {
		unsigned int i = otlp->nfields;

		if (!field->attribute_len || otlp->nfields == OTLP_FIELDS)
			continue;
		for (; i && otlp->fields[i - 1]->position > field->position; i--)
			otlp->fields[i] = otlp->fields[i - 1];
		otlp->fields[i] = field;
		otlp->nfields++;
	}
}

int otlp_open(struct otlp *otlp, const char *path, struct output *standard)
{
	struct utsname name;
	int fd;

	otlp->out = NULL;
	if (!path)
		return 0;
	otlp_fields(otlp);
	otlp_seed(otlp->random);
	if (!uname(&name))
		memcpy(otlp->host, name.nodename, strnlen(name.nodename, sizeof(otlp->host) - 1));
	if (output_is_standard(path)) {
		otlp->out = standard;
		return 0;
	}
	fd = open_output(path, false);
	if (fd < 0)
		return fd;
	otlp->out = &otlp->file;
	output_init(otlp->out, fd);
	otlp_end_line(otlp->out);
	return 0;
}

void otlp_host(struct otlp *otlp, const char *host)
{
	snprintf(otlp->host, sizeof(otlp->host), "%s", host);
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

void otlp_retry(struct otlp *otlp)
{
	struct output *out = otlp->out;

	if (!out)
		return;
	out->error = 0;
	out->len = 0;
	output_char(out, '\n');
}

void otlp_close(struct otlp *otlp)
{
	if (otlp->out == &otlp->file)
		close(otlp->file.fd);
	otlp->out = NULL;
}

/* Return the offset after leading blanks and comments. */
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

void otlp_operation(const struct statement *st, char operation[OTLP_OPERATION + 1])
{
	const char *text = st->span_text;
	size_t at = text ? skip_ahead(text, st->span_text_len) : 0, n = 0;

	if (text)
		at += command_skip(st->server->engine ? st->server->engine->dialect :
					FINGERPRINT_UNKNOWN, text + at, st->span_text_len - at);
	for (; text && at < st->span_text_len; at++) {
		char upper = text[at] >= 'a' ? (char)(text[at] - 'a' + 'A') : text[at];

		if (upper < 'A' || upper > 'Z' || n > OTLP_OPERATION)
			break;
		if (n < OTLP_OPERATION)
			operation[n] = upper;
		n++;
	}
	operation[n <= OTLP_OPERATION ? n : 0] = '\0';
}

/* The names of spans must be few: "SELECT shop", or the system without an operation. */
static void put_name(struct output *out, const struct statement *st)
{
	char operation[OTLP_OPERATION + 1];

	otlp_operation(st, operation);
	output_string(out, ",\"name\":\"");
	output_string(out, *operation ? operation : st->server->otel_system);
	if (*operation && *st->who->database) {
		output_char(out, ' ');
		escape_json(out, st->who->database, strlen(st->who->database), false);
	}
	output_char(out, '"');
}

void otlp_integer(struct output *out, uint64_t value)
{
	output_u64(out, value < INT64_MAX ? value : INT64_MAX);
}

/* In protobuf's JSON a 64-bit integer is a string. */
static void put_named(struct output *out, const char *prefix, const char *name,
		      uint64_t value)
{
	output_string(out, prefix);
	output_string(out, name);
	output_string(out, "\",\"value\":{\"intValue\":\"");
	otlp_integer(out, value);
	output_string(out, "\"}}");
}

static void put_parts(struct output *out, const char *prefix, const __u64 *ns)
{
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		put_named(out, prefix, breakdown_part_name((enum breakdown_part)i), ns[i]);
}

static void put_use(struct output *out, const char *prefix, uint32_t used,
		    const __u64 *use)
{
	for (int i = 0; i < USES; i++)
		if (used & 1u << i)
			put_named(out, prefix, breakdown_use_name((enum use)i), use[i]);
}

static void put_value(struct output *out, const struct field *field,
		      const struct field_value *value, const struct statement *st)
{
	if (field->type == FIELD_FLAG) {
		output_string(out, value->number ? "true}}" : "false}}");
		return;
	}
	if (field->type == FIELD_STRING || field->type == FIELD_LIST ||
	    field->type == FIELD_QUERY || field->type == FIELD_QUERY_OF)
		escape_json(out, value->text, value->len,
			    (field->type == FIELD_QUERY && st->truncated) ||
			    (field->type == FIELD_QUERY_OF && st->of_cut));
	else
		otlp_integer(out, value->number);
	output_string(out, "\"}}");
}

static void put_attributes(const struct otlp *otlp, const struct statement *st)
{
	struct output *out = otlp->out;
	struct field_value value;
	unsigned int comma = 1;		/* bytes of a key to omit: the first has no comma */

	output_string(out, ",\"attributes\":[");
	for (unsigned int i = 0; i < otlp->nfields; i++) {
		const struct field *field = otlp->fields[i];

		if (!field->get(st, field->which, &value))
			continue;
		if (field->type == FIELD_PARTS) {
			put_parts(out, field->attribute, st->why->ns);
		} else if (field->type == FIELD_USE) {
			put_use(out, field->attribute, st->why->used, st->why->use);
		} else {
			output_bytes(out, field->attribute + comma,
				     field->attribute_len - comma);
			put_value(out, field, &value, st);
		}
		comma = 0;
	}
	output_char(out, ']');
}

static void put_digits(struct output *out, uint64_t id)
{
	char digits[SPAN_DIGITS];

	for (int i = 0; i < SPAN_DIGITS; i++)
		digits[i] = HEX_DIGITS[id >> (60 - 4 * i) & 15];
	output_bytes(out, digits, sizeof(digits));
}

/* Append the beginning of a span with the id @span. */
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

/* Append a child span for each phase. Its length is the total time of the phase. */
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

static void put_string(struct output *out, const char *key, const char *value)
{
	json_string(out, key, value);
	output_string(out, value ? "}}" : "");
}

static void put_resource_string(struct output *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	output_string(out, ",{\"key\":\"");
	output_string(out, name);
	put_string(out, "\",\"value\":{\"stringValue\":\"", value);
}

/*
 * Append what identifies a server, also after a restart: the conventions want a UUID of it, in this
 * namespace.
 */
static void put_instance(const struct otlp *otlp, const struct server *server)
{
	static const uint8_t space[UUID_BYTES] = {
		0x4d, 0x63, 0x00, 0x9a, 0x8d, 0x0f, 0x11, 0xee,
		0xaa, 0xd7, 0x4c, 0x79, 0x6e, 0xd8, 0xe3, 0x20,
	};
	char name[sizeof(otlp->host) + sizeof(server->container) + sizeof(server->directory) + 32];
	char text[UUID_TEXT];
	int len = snprintf(name, sizeof(name), "%s\n%u\n%s\n%s\n%u", otlp->host, server->uid,
			   server->container, server->directory,
			   *server->directory ? 0 : server->pid);

	uuid_of_name(space, name, (size_t)len, text);
	put_resource_string(otlp->out, "service.instance.id", text);
}

/* Append the resource of the span, which is the server. */
static void put_resource(struct otlp *otlp, const struct statement *st)
{
	struct output *out = otlp->out;
	const struct server *server = st->server;
	bool id = strspn(server->container, HEX_DIGITS) == strlen(server->container) &&
		  strlen(server->container) >= CONTAINER_ID;

	put_string(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
		   "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"", server->product);
	if (server->pid) {
		put_instance(otlp, server);
		put_resource_string(out, "service.version", server->version);
	}
	put_resource_string(out, "host.name", otlp->host);
	put_resource_string(out, id ? "container.id" : "container.name", server->container);
	output_string(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"dbslower\","
			   "\"version\":\"");
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
	put_attributes(otlp, st);
	if (st->has_status && st->failed) {
		json_number(out, ",\"status\":{\"code\":", STATUS_ERROR);
		output_char(out, '}');
	}
	output_char(out, '}');
	put_phases(otlp, st, &span);
	output_string(out, "]}]}]}\n");
}
