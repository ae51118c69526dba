/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/format/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/event.h"
#include "bpf/plan.h"
#include "db/engine.h"

#define HELP_WIDTH	11	/* of a column's name and the space after it */
#define USE_ALL		((1u << USES) - 1)

static bool get_string(const char *text, struct field_value *value)
{
	if (!text)
		return false;
	value->text = text;
	value->len = strlen(text);
	return true;
}

static bool get_number(uint64_t number, bool known, struct field_value *value)
{
	value->number = number;
	return known;
}

/* The string at offset @which of struct who. */
static bool get_who(const struct statement *st, unsigned int which, struct field_value *value)
{
	const char *text = (const char *)st->who + which;

	return *text && get_string(text, value);
}

static bool get_container(const struct statement *st, unsigned int which,
			  struct field_value *value)
{
	(void)which;
	return *st->server->container && get_string(st->server->container, value);
}

static bool get_engine(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_string(st->server->engine->name, value);
}

static bool get_system(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_string(st->server->otel_system, value);
}

static bool get_time(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(0, !st->transaction || st->transaction->dated, value);
}

static bool get_begin(const struct statement *st, unsigned int which, struct field_value *value)
{
	return st->transaction && get_time(st, which, value);
}

static bool get_end(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->duration_ns, st->transaction && !st->transaction->open, value);
}

static bool get_idle(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return st->transaction &&
	       get_number(st->transaction->idle_ns, st->transaction->counted, value);
}

static bool get_statements(const struct statement *st, unsigned int which,
			   struct field_value *value)
{
	(void)which;
	return st->transaction &&
	       get_number(st->transaction->statements, st->transaction->counted, value);
}

static bool get_transaction_state(const struct statement *st, unsigned int which,
				  struct field_value *value)
{
	static const char *const names[] = {
		[TRANSACTION_IS_COMMITTED] = "commit", [TRANSACTION_IS_ROLLED_BACK] = "rollback",
		[TRANSACTION_IS_PREPARED] = "prepare", [TRANSACTION_IS_RUNNING] = "running",
		[TRANSACTION_IS_IDLE] = "idle", [TRANSACTION_IS_ABORTED] = "aborted",
	};

	(void)which;
	return st->transaction && get_string(names[st->transaction->state], value);
}

static bool get_pid(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->who->pid, true, value);
}

static bool get_tid(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->who->tid, true, value);
}

/* The thread, unless it is the process's only or first one. */
static bool get_thread(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->who->tid, st->who->tid != st->who->pid, value);
}

static bool get_ms(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->duration_ns, !st->transaction || st->transaction->dated, value);
}

static bool get_error_ms(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->duration_error_ns, st->duration_error_ns, value);
}

/* PostgreSQL's name for the client of a Unix-domain socket. */
static bool client_is_local(const char *client)
{
	return !strcmp(client, "[local]");
}

/*
 * Return the number of digits of the port at the end of @client, of @len bytes, as PostgreSQL has
 * it: "10.0.0.7(53122)"; 0 if there is none.
 */
static size_t client_port(const char *client, size_t len)
{
	size_t digits = 0;

	if (!len || client[len - 1] != ')')
		return 0;
	while (digits + 1 < len && client[len - 2 - digits] >= '0' &&
	       client[len - 2 - digits] <= '9')
		digits++;
	if (digits > 5 || digits + 2 >= len || client[len - 2 - digits] != '(')
		return 0;
	return digits;
}

static bool get_transport(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return client_is_local(st->who->client) && get_string("unix", value);
}

static bool get_address(const struct statement *st, unsigned int which, struct field_value *value)
{
	size_t digits;

	(void)which;
	if (!get_string(st->who->client, value) || !value->len || client_is_local(value->text))
		return false;
	digits = client_port(value->text, value->len);
	value->len -= digits ? digits + 2 : 0;
	return true;
}

static bool get_port(const struct statement *st, unsigned int which, struct field_value *value)
{
	size_t len = strlen(st->who->client), digits = client_port(st->who->client, len);

	(void)which;
	value->number = 0;
	for (size_t i = digits; i; i--)
		value->number = value->number * 10 + (uint64_t)(st->who->client[len - 1 - i] - '0');
	return digits;
}

static bool get_connection(const struct statement *st, unsigned int which,
			   struct field_value *value)
{
	(void)which;
	return get_number(st->who->connection, st->who->connection, value);
}

/* As text: many readers of JSON round a number of this size. In SQL it is signed. */
static bool get_query_id(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	snprintf(value->buf, sizeof(value->buf), "%lld", (long long)st->query_id);
	return st->query_id && get_string(value->buf, value);
}

static bool get_rows(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->rows, st->has_rows, value);
}

static bool get_examined(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->examined, st->has_examined, value);
}

static bool get_lock(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->lock_ns, st->has_lock, value);
}

/* The words of the bits; @which: unless there are none. */
static bool get_plan(const struct statement *st, unsigned int which, struct field_value *value)
{
#define PLAN_NAME(bit, name)	name,
	static const char *const names[] = { PLAN_TABLE(PLAN_NAME) };
#undef PLAN_NAME

	value->text = value->buf;
	value->len = 0;
	for (int i = 0; i < PLAN_BITS; i++)
		if (st->plan & 1u << i)
			value->len += (size_t)snprintf(value->buf + value->len,
						       sizeof(value->buf) - value->len, "%s%s",
						       value->len ? "," : "", names[i]);
	return st->has_index && (value->len || !which);
}

static bool get_fetches(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->fetches, st->fetches, value);
}

static bool get_status(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return st->has_status && get_string(st->failed ? "error" : "ok", value);
}

/* The status, "died", or "running" or "prepare", which in JSON are types of the record. */
static bool get_state(const struct statement *st, unsigned int which, struct field_value *value)
{
	if (st->running || st->prepare || st->died)
		return get_string(st->running ? "running" : st->died ? "died" : "prepare", value);
	return get_status(st, which, value);
}

static bool get_died(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->died, st->died, value);
}

static bool get_errno(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->error_code, st->error_code, value);
}

static bool get_sqlstate(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return *st->sqlstate && get_string(st->sqlstate, value);
}

/* OpenTelemetry's conventions: MySQL's and MariaDB's error number, PostgreSQL's SQLSTATE. */
static bool get_code(const struct statement *st, unsigned int which, struct field_value *value)
{
	if (!st->error_code)
		return get_sqlstate(st, which, value);
	value->text = value->buf;
	value->len = output_format(value->buf, st->error_code, 0);
	return true;
}

/* The SQLSTATE if the number is the code. */
static bool get_other_code(const struct statement *st, unsigned int which,
			   struct field_value *value)
{
	return st->error_code && get_sqlstate(st, which, value);
}

static bool get_error(const struct statement *st, unsigned int which, struct field_value *value)
{
	if (get_code(st, which, value))
		return true;
	return st->has_status && st->failed && get_string("_OTHER", value);
}

static bool get_breakdown(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	(void)value;
	return st->why;
}

static bool get_workers(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	(void)value;
	return st->why && st->why->workers.count;
}

static bool get_phases(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	(void)value;
	for (int i = 0; st->why && i < PHASES; i++)
		if (st->why->phases[i].first_ns)
			return true;
	return false;
}

static bool get_use(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	(void)value;
	return st->why && st->why->used & USE_ALL;
}

static bool get_part(const struct statement *st, unsigned int which, struct field_value *value)
{
	return st->why && get_number(st->why->ns[which], true, value);
}

static bool get_phase(const struct statement *st, unsigned int which, struct field_value *value)
{
	return st->why && get_number(st->why->phases[which].ns, st->why->phases[which].first_ns,
				     value);
}

static bool get_tags(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	(void)value;
	return st->tags;
}

/* get_text() reads a length behind each text. */
#define LENGTH_FOLLOWS(text)							\
	_Static_assert(offsetof(struct statement, text ## _len) ==		\
		       offsetof(struct statement, text) + sizeof(char *), "no padding")
LENGTH_FOLLOWS(text);
LENGTH_FOLLOWS(of);
LENGTH_FOLLOWS(span_text);
LENGTH_FOLLOWS(span_of);

/* The text at offset @which of struct statement. */
static bool get_text(const struct statement *st, unsigned int which, struct field_value *value)
{
	const char *at = (const char *)st + which;

	memcpy(&value->text, at, sizeof(value->text));
	memcpy(&value->len, at + sizeof(value->text), sizeof(value->len));
	return value->text;
}

/* The other text of @st is that behind it or, in a routine, its caller's. */
static bool get_of(const struct statement *st, unsigned int which, struct field_value *value)
{
	return !st->level && get_text(st, which, value);
}

static bool get_caller(const struct statement *st, unsigned int which, struct field_value *value)
{
	return st->level && get_text(st, which, value);
}

static bool get_of_cut(const struct statement *st, unsigned int which, struct field_value *value)
{
	return get_number(st->of_cut, st->of && (st->level != 0) == which, value);
}

static bool get_level(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->level, st->level, value);
}

/* The length of the whole text: as the server knows it, else of a text that is not cut. */
static bool get_query_bytes(const struct statement *st, unsigned int which,
			    struct field_value *value)
{
	(void)which;
	if (st->has_query_bytes)
		return get_number(st->query_bytes, true, value);
	return get_number(st->original_len ? st->original_len : st->text_len,
			  st->text && !st->truncated, value);
}

static bool get_truncated(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->truncated, st->text, value);
}

/* Only for truncated text: */
static bool get_cut(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(true, st->text && st->truncated, value);
}

static bool get_cut_bytes(const struct statement *st, unsigned int which, struct field_value *value)
{
	(void)which;
	return get_number(st->query_bytes, st->text && st->truncated && st->has_query_bytes, value);
}

#define TAG	"tag."

#define LEFT(name, head, columns, text)						\
	.column = name, .header = head, .width = columns, .help = text
#define RIGHT(name, head, columns, text)	LEFT(name, head, columns, text), .right = true
#define WHO(member)							\
	.type = FIELD_STRING, .get = get_who, .which = offsetof(struct who, member)
#define TEXT_BY(getter, kind, member)					\
	.type = kind, .get = getter, .which = offsetof(struct statement, member)
#define TEXT(kind, member)	TEXT_BY(get_text, kind, member)
#define JSON_KEY(text)		.json = text, .json_len = sizeof(text) - 1
#define JSON(name)		JSON_KEY(",\"" name "\":")
#define JSON_STRING(name)	JSON_KEY(",\"" name "\":\"")
#define JSON_HEAD(name)		.json = name	/* written by json_head() */
#define OTLP_KEY(at, text)	.position = at, .attribute = ",{\"key\":\"" text,	\
				.attribute_len = sizeof(",{\"key\":\"" text) - 1
#define OTLP(at, name)		OTLP_KEY(at, name "\",\"value\":{\"intValue\":\"")
#define OTLP_STRING(at, name)	OTLP_KEY(at, name "\",\"value\":{\"stringValue\":\"")
#define OTLP_FLAG(at, name)	OTLP_KEY(at, name "\",\"value\":{\"boolValue\":")
#define OTLP_GROUP(at, prefix)	OTLP_KEY(at, prefix)
#define STATEMENTS	.of = FIELD_OF_STATEMENTS
#define TRANSACTIONS	.of = FIELD_OF_TRANSACTIONS
#define PART(part, name, text)							\
	{ RIGHT(name, #part, 8, text), STATEMENTS, .needs = FIELD_NEEDS_BREAKDOWN,		\
	  .type = FIELD_MS, .get = get_part, .which = BREAKDOWN_ ## part },
#define PHASE(name, head, phase)							\
	{ RIGHT(name, head, 8, "milliseconds of this phase (postgresql)"), STATEMENTS, \
	  .needs = FIELD_NEEDS_BREAKDOWN | FIELD_NEEDS_PHASES,			\
	  .type = FIELD_MS, .get = get_phase, .which = phase }

/* Scripts depend on the widths of the default columns. */
const struct field field_rows[] = {
	{ LEFT("time", "TIME(s)", 14, "start in seconds after dbslower's; with -t the time of day"),
	  STATEMENTS, JSON_HEAD("time"), .type = FIELD_TIME, .get = get_time },
	{ LEFT("begin", "BEGIN(s)", 14, "begin in seconds after dbslower's; with -t a time of day"),
	  TRANSACTIONS, JSON_STRING("begin"), .type = FIELD_TIME, .get = get_begin },
	{ LEFT("end", "END(s)", 14, "end; none if it is open"),
	  TRANSACTIONS, JSON_STRING("end"), .type = FIELD_TIME, .get = get_end },
	{ LEFT("pid", "PID", 7, "process of the server"),
	  JSON("pid"), OTLP(10, "process.pid"), .type = FIELD_NUMBER, .get = get_pid },
	{ LEFT("tid", "TID", 7, "thread of the server"),
	  JSON("tid"), .type = FIELD_NUMBER, .get = get_tid },
	{ OTLP(11, "thread.id"), .type = FIELD_NUMBER, .get = get_thread },
	{ RIGHT("ms", "MS", 8, "duration in milliseconds"),
	  JSON("duration_ms"), .type = FIELD_MS, .get = get_ms },
	{ JSON("duration_error_ms"), STATEMENTS, .type = FIELD_MS, .get = get_error_ms },
	{ RIGHT("idle", "IDLE", 8, "... in which no statement ran"),
	  TRANSACTIONS, JSON("idle_ms"), .type = FIELD_MS, .get = get_idle },
	{ RIGHT("statements", "STMTS", 5, "number of statements in it"),
	  TRANSACTIONS, JSON("statements"), .type = FIELD_NUMBER, .get = get_statements },
	{ LEFT("state", "STATE", 8, "commit, rollback, prepare; open: running, idle or aborted"),
	  TRANSACTIONS, JSON_STRING("state"), .type = FIELD_STRING,
	  .get = get_transaction_state },
	{ LEFT("user", "USER", 12, "database user"), .needs = FIELD_NEEDS_IDENTITY,
	  JSON_STRING("user"), OTLP_STRING(6, "dbslower.user"), WHO(user) },
	{ LEFT("db", "DB", 12, "database"), .needs = FIELD_NEEDS_IDENTITY,
	  JSON_STRING("database"), OTLP_STRING(5, "db.namespace"), WHO(database) },
	{ LEFT("client", "CLIENT", 21, "address of the client"),
	  .needs = FIELD_NEEDS_IDENTITY,
	  JSON_STRING("client"), WHO(client) },
	{ LEFT("app", "APP", 12, "application of the client"),
	  .needs = FIELD_NEEDS_IDENTITY,
	  JSON_STRING("application"), OTLP_STRING(21, "dbslower.application"),
	  WHO(application) },
	{ LEFT("backend", "BACKEND", 18, "what the session serves: client, .."),
	  .needs = FIELD_NEEDS_IDENTITY,
	  JSON_STRING("backend"), OTLP_STRING(23, "dbslower.backend"), WHO(backend) },
	{ OTLP_STRING(7, "network.transport"), .type = FIELD_STRING, .get = get_transport },
	{ OTLP_STRING(8, "client.address"), .type = FIELD_STRING, .get = get_address },
	{ OTLP(9, "client.port"), .type = FIELD_NUMBER, .get = get_port },
	{ LEFT("container", "CONTAINER", 12, "container of the server"),
	  .needs = FIELD_NEEDS_IDENTITY,
	  .type = FIELD_STRING, .get = get_container },
	{ RIGHT("conn", "CONN", 8, "connection number in the server (mysql)"),
	  JSON("connection_id"), OTLP(12, "dbslower.connection_id"),
	  .type = FIELD_NUMBER, .get = get_connection },
	{ RIGHT("query_id", "QUERY_ID", 20, "query ID (postgresql)"),
	  STATEMENTS, .needs = FIELD_NEEDS_QUERY_ID, JSON_STRING("query_id"),
	  OTLP_STRING(20, "dbslower.query_id"), .type = FIELD_STRING, .get = get_query_id },
	{ RIGHT("rows", "ROWS", 8, "number of rows, as counted by the server"),
	  STATEMENTS, .needs = FIELD_NEEDS_ROWS,
	  JSON("rows"), OTLP(13, "dbslower.rows"), .type = FIELD_NUMBER, .get = get_rows },
	{ RIGHT("examined", "EXAMINED", 8, "number of rows read (mysql)"),
	  STATEMENTS, .needs = FIELD_NEEDS_ROWS, JSON("rows_examined"),
	  .type = FIELD_NUMBER, .get = get_examined },
	{ RIGHT("locked", "LOCKED", 8, "milliseconds until locks were granted (mariadb)"),
	  STATEMENTS, .needs = FIELD_NEEDS_ROWS, JSON("lock_ms"),
	  .type = FIELD_MS, .get = get_lock },
	{ LEFT("query_plan", "QUERY_PLAN", 20, "scans, sorts, temporary tables (mysql)"),
	  STATEMENTS, .needs = FIELD_NEEDS_ROWS, JSON("query_plan"),
	  .type = FIELD_LIST, .get = get_plan },
	{ OTLP_STRING(22, "dbslower.query_plan"), .type = FIELD_LIST, .get = get_plan, .which = 1 },
	{ RIGHT("fetches", "FETCHES", 7, "messages that read a suspended portal (postgresql)"),
	  STATEMENTS, JSON("fetches"), OTLP(19, "dbslower.fetches"),
	  .type = FIELD_NUMBER, .get = get_fetches },
	{ RIGHT("level", "LEVEL", 5, "with --nested: 1 or more in a routine (mysql)"), STATEMENTS,
	  JSON("level"), OTLP(25, "dbslower.level"), .type = FIELD_NUMBER, .get = get_level },
	{ LEFT("status", "STATUS", 6,
	       "ok, error (failed, cancelled, timed out), died, running or prepare"),
	  STATEMENTS, .type = FIELD_STRING, .get = get_state },
	{ JSON_STRING("status"), .type = FIELD_STRING, .get = get_status },
	{ JSON("died"), .type = FIELD_FLAG, .get = get_died },
	{ RIGHT("errno", "ERRNO", 6, "error number of the server (mysql)"),
	  STATEMENTS, JSON("errno"), .type = FIELD_NUMBER, .get = get_errno },
	{ LEFT("sqlstate", "SQLSTATE", 8, "SQLSTATE of the error"),
	  STATEMENTS, JSON_STRING("sqlstate"), .type = FIELD_STRING, .get = get_sqlstate },
	{ OTLP_STRING(14, "db.response.status_code"), .type = FIELD_STRING, .get = get_code },
	{ OTLP_STRING(15, "error.type"), .type = FIELD_STRING, .get = get_error },
	{ OTLP_STRING(16, "dbslower.sqlstate"), .type = FIELD_STRING, .get = get_other_code },
	{ LEFT("engine", "ENGINE", 10, "database engine, as postgresql"),
	  .type = FIELD_STRING, .get = get_engine },
	{ OTLP_STRING(1, "db.system.name"), .type = FIELD_STRING, .get = get_system },
	BREAKDOWN_TABLE(PART)
	PHASE("parse", "PARSE", PHASE_PARSE),
	PHASE("rewrite", "REWRITE", PHASE_REWRITE),
	PHASE("plan", "PLAN", PHASE_PLAN),
	PHASE("execute", "EXECUTE", PHASE_EXECUTE),
	{ JSON("why_ms"), OTLP_GROUP(17, "dbslower.why_ns."),
	  .type = FIELD_PARTS, .get = get_breakdown },
	{ JSON("waits"), .type = FIELD_WAITS, .get = get_breakdown },
	{ JSON("workers"), .type = FIELD_WORKERS, .get = get_workers },
	{ JSON("phases_ms"), .type = FIELD_PHASES, .get = get_phases },
	{ JSON("use"), OTLP_GROUP(18, "dbslower.use."), .type = FIELD_USE, .get = get_use },
	{ LEFT("tag.NAME", "", 16, "tag NAME of a sqlcommenter comment in the text"), STATEMENTS,
	  .needs = FIELD_NEEDS_TAGS, JSON("tags"), .type = FIELD_TAGS, .get = get_tags },
	{ LEFT("query", "QUERY", 0, "text of the statement; of a transaction's longest one"),
	  JSON_STRING("query"), TEXT(FIELD_QUERY, text) },
	{ OTLP_STRING(2, "db.query.text"), TEXT(FIELD_QUERY, span_text) },
	{ JSON("query_bytes"), .type = FIELD_NUMBER, .get = get_query_bytes },
	{ JSON("truncated"), .type = FIELD_FLAG, .get = get_truncated },
	{ OTLP_FLAG(3, "dbslower.query.truncated"), .type = FIELD_FLAG, .get = get_cut },
	{ OTLP(4, "dbslower.query.bytes"), .type = FIELD_NUMBER, .get = get_cut_bytes },
	{ JSON_STRING("query_base64"), TEXT(FIELD_QUERY_BYTES, text) },
	{ JSON_STRING("query_of"), TEXT_BY(get_of, FIELD_QUERY_OF, of) },
	{ JSON("query_of_truncated"), .type = FIELD_FLAG, .get = get_of_cut },
	{ OTLP_STRING(24, "dbslower.query_of"), TEXT_BY(get_of, FIELD_QUERY_OF, span_of) },
	{ JSON_STRING("caller"), TEXT_BY(get_caller, FIELD_QUERY_OF, of) },
	{ JSON("caller_truncated"), .type = FIELD_FLAG, .get = get_of_cut, .which = 1 },
	{ OTLP_STRING(26, "dbslower.caller"), TEXT_BY(get_caller, FIELD_QUERY_OF, span_of) },
	{ .get = NULL },
};

const struct field *const *field_members(void)
{
	/* Collected once: most rows have none. */
	static const struct field *members[sizeof(field_rows) / sizeof(*field_rows)];
	size_t count = 0;

	if (members[0])
		return members;
	for (const struct field *field = field_rows; field->get; field++)
		if (field->json_len)
			members[count++] = field;
	return members;
}

/* Return whether @field is a column of transactions, or else of statements. */
static bool field_is_of(const struct field *field, bool transactions)
{
	return field->column &&
	       (!field->of || (field->of == FIELD_OF_TRANSACTIONS) == transactions);
}

static const struct field *field_find(const char *name, size_t len, bool transactions)
{
	size_t tag = sizeof(TAG) - 1;

	for (const struct field *field = field_rows; field->get; field++) {
		bool is_tag = field->type == FIELD_TAGS && len > tag;

		if (field_is_of(field, transactions) && (is_tag || strlen(field->column) == len) &&
		    !memcmp(field->column, name, is_tag ? tag : len))
			return field;
	}
	return NULL;
}

int field_parse(struct field_list *list, const char *spec, const char **bad, size_t *bad_len)
{
	const char *name = spec;

	for (;;) {
		size_t len = strcspn(name, ",");
		const struct field *found = field_find(name, len, list->transactions);

		*bad = name;
		*bad_len = len;
		if (!found)
			return len ? -ENOENT : -EINVAL;
		if (list->count == FIELD_LIST_MAX)
			return -E2BIG;
		list->tag[list->count] = name + sizeof(TAG) - 1;
		list->tag_len[list->count] = len - (sizeof(TAG) - 1);
		list->field[list->count++] = found;
		if (!name[len])
			return 0;
		name += len + 1;
	}
}

static const char *field_defaults(bool transactions)
{
	return transactions ? "begin,end,pid,ms,idle,statements,state,user,db,query" :
			      "time,pid,ms,query";
}

void field_default(struct field_list *list)
{
	const char *bad;
	size_t bad_len;

	list->count = 0;
	field_parse(list, field_defaults(list->transactions), &bad, &bad_len);
}

uint32_t field_needs(const struct field_list *list)
{
	uint32_t needs = 0;

	for (unsigned int i = 0; i < list->count; i++)
		needs |= list->field[i]->needs;
	return needs;
}

void field_names(struct output *out, bool transactions)
{
	const char *before = "";

	for (const struct field *field = field_rows; field->get; field++) {
		if (!field_is_of(field, transactions))
			continue;
		output_string(out, before);
		output_string(out, field->column);
		before = ", ";
	}
}

void field_suggest(struct suggestion *s, bool transactions)
{
	for (const struct field *field = field_rows; field->get; field++)
		if (field_is_of(field, transactions))
			suggestion_add(s, field->column);
}

void field_help(struct output *out, bool transactions)
{
	output_printf(out, "\nColumns, for -o (default: %s):\n", field_defaults(transactions));
	for (const struct field *field = field_rows; field->get; field++) {
		size_t width = field->column ? strlen(field->column) : 0;

		if (!field_is_of(field, transactions))
			continue;
		output_string(out, "  ");
		output_string(out, field->column);
		output_spaces(out, width < HELP_WIDTH ? HELP_WIDTH - width : 1);
		output_string(out, field->help);
		output_char(out, '\n');
	}
}
