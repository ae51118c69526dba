// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recordings: what was written is read again, and damage is found. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "bpf/event.h"
#include "bpf/lock_event.h"
#include "bpf/plan.h"
#include "cli/format/field_json.h"
#include "cli/format/json.h"
#include "cli/format/locks_json.h"
#include "db/engines.h"
#include "db/recording/reader.h"
#include "db/recording/shape.h"
#include "db/recording/writer.h"
#include "sql/fingerprint.h"
#include "sql/traceparent.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define ID	0x1122334455667788ull

static struct writer writer;
static struct output sink;

/* --- files */

static int file_new(void)
{
	int fd = memfd_create("recording", 0);

	if (fd < 0)
		abort();
	return fd;
}

/* Return the content of @fd in *@data, which the caller frees. */
static size_t file_read(int fd, uint8_t **data)
{
	struct stat st;

	if (fstat(fd, &st))
		abort();
	*data = malloc((size_t)st.st_size + 1);
	if (!*data || pread(fd, *data, (size_t)st.st_size, 0) != st.st_size)
		abort();
	return (size_t)st.st_size;
}

/* Make @data the content of @fd. */
static void file_write(int fd, const uint8_t *data, size_t len)
{
	if (ftruncate(fd, 0) || pwrite(fd, data, len, 0) != (ssize_t)len)
		abort();
}

static bool files_equal(int a, int b, const char *what)
{
	uint8_t *one, *other;
	size_t len = file_read(a, &one), len2 = file_read(b, &other), i = 0;
	bool equal = len == len2 && !memcmp(one, other, len);

	while (!equal && i < len && i < len2 && one[i] == other[i])
		i++;
	i = i > 300 ? i - 300 : 0;
	CHECK(equal, "%s: %zu and %zu bytes, at %zu\n# %.400s\n# %.400s", what, len, len2, i,
	      (char *)one + i, (char *)other + i);
	free(one);
	free(other);
	return equal;
}

/* --- random events */

static char *random_text(char *to, size_t size, bool printable)
{
	size_t len = random_below(size);

	for (size_t i = 0; i < len; i++)
		to[i] = (char)(printable ? 'a' + random_below(26) : 1 + random_below(255));
	to[len] = '\0';
	return to;
}

/* Return 0 often, and numbers of all sizes. */
static uint64_t random_number(unsigned int bits)
{
	return random_below(4) ? random_next() >> (64 - bits + random_below(bits)) : 0;
}

static struct {
	struct who who;
	char text[20000];
	struct event_breakdown why;
	char event[BREAKDOWN_WAITS][WAIT_EVENT];
	struct traceparent parent;
	struct event_lock lock;
	struct lock_info info;
	char texts[LOCK_HOLDERS_KEPT + 1][64];
	char kind[24];
} made;

static struct server servers[200];

/* Half of the servers were not found; some of these differ only in the user, if he is known. */
static void make_servers(void)
{
	static const struct engine other = { .name = "app", .otel_system = "other_sql",
					     .dialect = FINGERPRINT_UNKNOWN };
	static const char *const versions[] = { "", "11.4", "\xff" };
	static const uint32_t uids[] = { 0, 7, 1000, UINT32_MAX - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(servers); i++) {
		size_t which = random_below(3);
		const struct engine *engine = which < 2 ? engine_table[which] : &other;
		struct server *s = &servers[i];

		*s = (struct server){
			.engine = engine, .otel_system = engine->otel_system,
			.product = random_below(2) ? "mariadb" : "postgresql",
			.path = "/usr/sbin/db \xe2\x82\xac",
			.pid = i % 2 ? 1 + (uint32_t)random_below(50) : 0,
		};
		s->has_uid = s->pid || random_below(3);
		s->uid = s->has_uid ? uids[random_below(4)] : 0;
		strcpy(s->version, versions[random_below(3)]);
		if (random_below(2))
			strcpy(s->container, "c0ffee");
		if (s->pid && random_below(2))
			random_text(s->directory, sizeof(s->directory), true);
	}
}

/* A session with names, some of which are unknown, or the last one. Valid until the next one. */
static const struct who *random_who(void)
{
	struct who *who = &made.who;

	if (!random_below(8))
		return who;
	*who = (struct who){ .pid = (uint32_t)random_number(31),
			     .connection = random_number(63) };
	who->tid = random_below(2) ? who->pid : (uint32_t)random_number(31);
	if (random_below(2))
		random_text(who->user, sizeof(who->user), false);
	if (random_below(2))
		random_text(who->database, 9, true);
	if (random_below(2))
		random_text(who->client, sizeof(who->client), true);
	if (random_below(2))
		random_text(who->application, sizeof(who->application), true);
	if (random_below(2))
		random_text(who->backend, sizeof(who->backend), true);
	return who;
}

/* A few texts with literals, and any bytes. */
static void random_query(struct statement *s)
{
	static const char *const texts[] = {
		"select %zu from t where a = '%zu' -- dbslower", "insert into t values (%zu, %zu)",
		"%zu", "'%zu", "\"%zu\" '%zu' %zu%zu", "", "update t set x = %zu where y = %zu",
	};
	size_t which = random_below(sizeof(texts) / sizeof(*texts) + 2);

	s->text = made.text;
	if (which < sizeof(texts) / sizeof(*texts)) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		s->text_len = (size_t)snprintf(made.text, sizeof(made.text), texts[which],
					       random_next() >> random_below(64),
					       random_below(1000), random_below(9), (size_t)0);
#pragma GCC diagnostic pop
		return;
	}
	s->text_len = random_below(which % 2 ? 200 : sizeof(made.text));
	for (size_t i = 0; i < s->text_len; i++)
		made.text[i] = (char)random_next();
}

static void random_why(struct statement *s)
{
	struct event_breakdown *why = &made.why;
	static const uint32_t calls[] = { BREAKDOWN_NO_CALL, BREAKDOWN_OTHERS, BREAKDOWN_STOP,
					  0, 1, 74, 98, 999 };

	static const char *const events[] = { "", "IO:WALSync", "Lock:relation", "IO:77" };

	*why = (struct event_breakdown){ .used = 0 };
	s->why = why;
	s->events = random_below(2) ? made.event : NULL;
	for (size_t i = 0; i < BREAKDOWN_WAITS; i++)
		strcpy(made.event[i], events[random_below(4)]);
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		why->ns[i] = random_number(64);
	for (size_t i = 0, n = random_below(BREAKDOWN_WAITS + 1); i < n; i++)
		why->waits[i] = (struct breakdown_wait){
			.call = calls[random_below(8)], .sleeps = 1 + (uint32_t)random_number(31),
			.ns = random_number(64),
		};
	why->workers.count = random_below(3);
	for (int i = 0; why->workers.count && i < BREAKDOWN_PARTS; i++)
		why->workers.ns[i] = random_number(64);
	for (int i = 0; i < PHASES; i++) {
		why->phases[i].first_ns = random_below(2);
		why->phases[i].ns = why->phases[i].first_ns ? random_number(62) : 0;
	}
	why->used = (uint32_t)random_number(USES);
	for (int i = 0; i < USES; i++)
		why->use[i] = why->used & 1u << i ? random_number(64) : 0;
}

static void random_rows(struct statement *s)
{
	s->has_counts = random_below(2);
	if (!s->has_counts)
		return;
	s->has_rows = !s->failed;
	s->rows = random_number(64);
	s->has_affected = random_below(2);
	*(s->has_affected ? &s->affected : &s->sent) = s->rows;
}

static void random_error(struct statement *s)
{
	s->failed = s->unended = random_below(2);
	if (!s->failed)
		return;
	s->error_code = (uint32_t)random_number(32);
	if (random_below(2))
		memcpy(s->sqlstate, "42P01", 6);
}

/* A statement with random members, many of them absent. */
static struct statement random_statement(uint64_t start_ns)
{
	struct statement s = {
		.server = &servers[random_below(ARRAY_SIZE(servers))], .who = random_who(),
		.start_ns = start_ns, .wall_ns = start_ns + 17000000000000000 + random_below(3),
		.duration_ns = random_number(60), .running = !random_below(20),
		.has_status = random_below(2),
	};

	s.query_id = random_below(2) ? random_number(3) * 0x9e3779b97f4a7c15u : 0;
	s.prepare = !s.running && !random_below(10);
	random_error(&s);
	random_rows(&s);
	s.fetches = (uint32_t)random_number(32);
	s.has_examined = random_below(2);
	s.examined = s.has_examined ? random_number(64) : 0;
	s.has_lock = random_below(2);
	s.lock_ns = s.has_lock ? random_number(64) : 0;
	s.has_index = random_below(2);
	s.has_plan = s.has_index && random_below(2);
	s.plan = s.has_index ? (uint16_t)random_below(1 << PLAN_BITS) : 0;
	s.no_text = !random_below(5);
	if (!s.no_text && random_below(10))
		random_query(&s);
	s.truncated = s.text && random_below(2);
	s.has_query_bytes = random_below(3);
	s.query_bytes = s.has_query_bytes ? random_below(2) ? s.text_len : random_number(64) : 0;
	s.original_len = s.text && !random_below(4) ? random_number(20) : 0;
	if (s.original_len && random_below(2)) {
		made.parent = (struct traceparent){ "0af7651916cd43dd8448eb211c80319c",
						    "b7ad6b7169203331", (uint8_t)random_next() };
		s.parent = &made.parent;
	}
	if (random_below(2))
		random_why(&s);
	return s;
}

static struct lock_backend random_backend(int number)
{
	struct lock_backend b = {
		.pid = (uint32_t)random_number(31), .connection = random_number(63),
		.queued = random_below(2), .valid = random_below(2), .running = random_below(2),
		.idle_valid = random_below(2), .idle = random_below(2), .cut = random_below(2),
		.blocked_ns = random_number(60), .idle_ns = random_number(60),
	};

	if (random_below(2))
		random_text(b.kind, sizeof(b.kind), true);
	if (random_below(2)) {
		b.text = made.texts[number];
		b.len = random_below(sizeof(made.texts[0]));
		for (size_t i = 0; i < b.len; i++)
			b.text[i] = (char)random_next();
	}
	return b;
}

static void random_info(struct lock_wait *wait)
{
	struct lock_info *info = &made.info;

	*info = (struct lock_info){ .relation = (uint32_t)random_number(32),
				    .known = random_below(2),
				    .more = (unsigned int)random_number(8) };
	random_text(info->name, sizeof(info->name), false);
	random_text(info->object, sizeof(info->object), false);
	random_text(info->index, sizeof(info->index), true);
	info->self = random_backend(LOCK_HOLDERS_KEPT);
	info->nholders = (unsigned int)random_below(LOCK_HOLDERS_KEPT + 1);
	for (unsigned int i = 0; i < info->nholders; i++)
		info->holders[i] = random_backend((int)i);
	wait->info = info;
}

static struct lock_wait random_wait(uint64_t start_ns)
{
	static const char *const kinds[] = { "relation", "tuple", "transactionid", "row", "",
					     "advisory", "lwlock", "of a later version" };
	struct lock_wait wait = {
		.server = &servers[random_below(ARRAY_SIZE(servers))], .who = random_who(),
		.event = &made.lock, .kind = kinds[random_below(8)],
		.start_ns = start_ns, .wall_ns = start_ns + 17000000000000000,
		.duration_ns = random_number(60), .running = random_below(2),
		.ncycle = (unsigned int)random_below(3) * 8,
	};

	made.lock = (struct event_lock){
		.pid = wait.who->pid, .tid = wait.who->tid,
		.flags = (uint32_t)random_below(32), .kind = (uint32_t)random_number(32),
		.mode = (uint32_t)random_below(12), .block = (uint32_t)random_number(32),
		.offset = (uint32_t)random_number(16),
	};
	wait.joined = made.lock.flags & LOCK_JOINED;
	random_text(made.lock.name, sizeof(made.lock.name), false);
	for (int i = 0; i < 4; i++)
		made.lock.field[i] = (uint32_t)random_number(32);
	for (unsigned int i = 0; i < wait.ncycle; i++)
		wait.cycle[i] = (uint32_t)random_number(31);
	if (random_below(4))
		random_info(&wait);
	return wait;
}

/* --- reading */

/* Print what is known of a server and a session, but may be absent from JSON. */
static void print_session(struct output *out, const struct server *server, const struct who *who)
{
	output_printf(out, "%s dialect %d, %s, user %d %u, session %u %u %llu",
		      server->engine->name, (int)server->engine->dialect, server->otel_system,
		      server->has_uid, server->uid, who->pid, who->tid,
		      (unsigned long long)who->connection);
	json_string(out, ", directory \"", server->directory);
	json_string(out, ", user \"", who->user);
	json_string(out, ", database \"", who->database);
	json_string(out, ", client \"", who->client);
	json_string(out, ", application \"", who->application);
	json_string(out, ", backend \"", who->backend);
	output_char(out, '\n');
}

/* Print an event as JSON, and what that lacks. */
static void print_statement(struct output *out, const struct statement *s)
{
	print_session(out, s->server, s->who);
	output_string(out, s->unended ? "unended " : "");
	field_json(out, s);
}

static void print_wait(struct output *out, const struct lock_wait *wait)
{
	print_session(out, wait->server, wait->who);
	output_printf(out, "%u %u ", wait->event->pid, wait->event->tid);
	locks_json_wait(out, wait);
}

static void print_event(struct output *out, const struct decode_event *event)
{
	if (event->type == RECORDING_STATEMENT)
		print_statement(out, &event->statement);
	else if (event->type == RECORDING_WAIT)
		print_wait(out, &event->wait);
}

struct content {
	struct reader_damage damage;
	int status;			/* of reader_open() */
	size_t statements, waits, others, nblocks;
	uint64_t first, last;		/* ->rows of the statements */
	bool ordered;			/* these increase by 1 */
};

/* Read the recording @fd. Print its statements and waits on @out, unless it is NULL. */
static struct content content_read(int fd, struct output *out)
{
	static struct reader reader;
	struct decode_event *event;
	struct content c = { .status = reader_open(&reader, fd, NULL, NULL), .ordered = true };
	int ret = 0;

	while (!c.status && (ret = reader_next(&reader, &event)) > 0) {
		if (event->type == RECORDING_STATEMENT) {
			if (!c.statements++)
				c.first = event->statement.rows;
			else
				c.ordered &= event->statement.rows == c.last + 1;
			c.last = event->statement.rows;
		}
		c.waits += event->type == RECORDING_WAIT;
		c.others += event->type != RECORDING_STATEMENT && event->type != RECORDING_WAIT;
		if (out)
			print_event(out, event);
	}
	CHECK(!ret, "%d", ret);
	c.damage = reader.damage;
	c.nblocks = reader.nblocks;
	reader_close(&reader);
	return c;
}

static bool damaged(const struct content *c)
{
	return c->status || c->damage.missing || c->damage.broken || c->damage.cut ||
	       c->damage.unended || c->damage.unstarted;
}

/* End the first user's block. */
static int commit(enum recording_kind kind)
{
	return writer_commit(&writer, writer.users, kind);
}

/* Begin a recording in a new file. Return it. */
static int record_begin(uint64_t memory, uint64_t limit)
{
	int fd = memory ? -1 : file_new();

	memset(&writer, 0, sizeof(writer));
	writer_open(&writer, ID, memory, 4096);
	if (!memory)
		CHECK(!writer_file(&writer, fd, limit), "new");
	encode_option(&writer.users->encode, "start_ns", "1000");
	if (memory || limit)
		encode_option(&writer.users->encode, LIMIT_OPTION, "1");
	CHECK(!commit(RECORDING_START), "start");
	return fd;
}

/* --- tests */

static void crc_of_the_standard(void)
{
	struct crc32c crc;

	crc32c_init(&crc);
	CHECK(crc32c_of(&crc, "123456789", 9) == 0xe3069283, "as in RFC 3720");
	CHECK(crc32c_of(&crc, "", 0) == 0, "nothing");
}

static void numbers(void)
{
	struct encoder e = { .limit = 1000 };
	struct decoder d;

	for (int i = 0; i < 20000; i++) {
		uint64_t a = random_number(64), b = random_number(64);

		e.len = 0;
		encode_number(&e, a);
		encode_difference(&e, a, b);
		d = (struct decoder){ e.data, e.data + e.len, false };
		CHECK(decode_number(&d) == a && decode_difference(&d, b) == a && !d.failed &&
		      d.at == d.end, "%llu", (unsigned long long)a);
		d = (struct decoder){ e.data, e.data + e.len - 1, false };
		decode_number(&d);
		decode_difference(&d, b);
		CHECK(d.failed, "cut");
	}
	encoder_free(&e);
	d = (struct decoder){ (const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
			      NULL, false };
	d.end = d.at + 10;
	decode_number(&d);
	CHECK(d.failed, "more than 64 bits");
}

/* Texts that differ in literals, or in anything. */
static void differences(void)
{
	struct encoder e = { .limit = 100000 };
	char base[300], text[300], back[300];
	unsigned int found = 0;

	for (int i = 0; i < 50000; i++) {
		static const char alphabet[] = "a 019'\"";
		size_t n = random_below(40), m = random_below(40), len;
		enum shape_change change;
		struct decoder d;

		for (size_t k = 0; k < n; k++)
			base[k] = alphabet[random_below(7)];
		for (size_t k = 0; k < m; k++)
			text[k] = k < n && random_below(3) ? base[k] : alphabet[random_below(7)];
		e.len = 0;
		if (!shape_difference(&e, base, n, text, m))
			continue;
		found++;
		d = (struct decoder){ e.data, e.data + e.len, false };
		len = shape_apply(&d, base, n, back, sizeof(back), &change);
		CHECK(!d.failed && d.at == d.end && len == m && !memcmp(back, text, m), "%d", i);
		CHECK((change == SHAPE_SAME) == (n == m && !memcmp(base, text, n)), "%d", i);
		CHECK(shape_hash(base, n) == shape_hash(text, m), "%.*s, %.*s", (int)n, base,
		      (int)m, text);
	}
	CHECK(found > 500, "%u", found);
	encoder_free(&e);
}

/* Texts that differ in numbers have the same fingerprint in all dialects, if the base is plain. */
static void fingerprints_of_numbers(void)
{
	static const char *const words[] = {
		"1", "22", "1", "22", "7", "e5", "x1", ".", "-", "/", "*", "+", "=", "(", ")", ",",
		" ", " ", " ", " ", "select", "limit", "in", "values", "as", "interval", "t1", "_",
		";", "<", "\n", "offset", "'", "\"", "$", "`", "\\", "#", "@", ":", "?", "\xff",
	};
	struct encoder e = { .limit = 100000 };
	unsigned int found = 0, plain = 0;

	for (int i = 0; i < 400000; i++) {
		char base[400], text[400], back[400], one[2][400];
		size_t n = 0, m = 0, count = i % 8 ? 36 : 42;
		enum shape_change change;
		struct decoder d;

		for (unsigned int k = 0; k < 14; k++) {
			const char *word = words[random_below((unsigned int)count)];

			n += (size_t)sprintf(base + n, "%s", word);
			m += (size_t)sprintf(text + m, "%s", *word >= '0' && *word <= '9' &&
					     random_below(2) ? "904" : word);
		}
		e.len = 0;
		if (!shape_difference(&e, base, n, text, m))
			continue;
		d = (struct decoder){ e.data, e.data + e.len, false };
		shape_apply(&d, base, n, back, sizeof(back), &change);
		found += change == SHAPE_NUMBERS;
		if (change != SHAPE_NUMBERS || !shape_is_plain(base, n))
			continue;
		plain++;
		for (int dialect = 0; dialect <= FINGERPRINT_UNKNOWN; dialect++) {
			fingerprint_make((enum fingerprint_dialect)dialect, base, n, false, one[0],
					 sizeof(one[0]));
			fingerprint_make((enum fingerprint_dialect)dialect, text, m, false, one[1],
					 sizeof(one[1]));
			CHECK(!strcmp(one[0], one[1]), "%s, %s: %s, %s", base, text, one[0],
			      one[1]);
		}
	}
	CHECK(plain > 5000 && found > plain, "%u of %u", plain, found);
	encoder_free(&e);
}

/* Make @s a transaction, which has fewer members. */
static void make_transaction(struct statement *s, struct transaction *t)
{
	*t = (struct transaction){
		.state = (enum transaction_state)random_below(TRANSACTION_STATES),
		.open = random_below(2), .dated = random_below(2), .counted = random_below(2),
	};
	t->statements = t->counted ? random_number(64) : 0;
	t->idle_ns = t->counted ? random_number(64) : 0;
	s->transaction = t;
	s->running = random_below(2);
	s->prepare = s->has_status = s->has_rows = s->has_counts = false;
	s->has_examined = s->has_lock = s->has_index = s->has_plan = false;
	s->plan = 0;
	s->failed = false;
	s->unended = true;
	s->error_code = s->fetches = 0;
	s->sqlstate[0] = '\0';
	s->query_id = 0;
	s->why = NULL;
	s->parent = NULL;
}

/* Statements and waits with random members are the same after reading, as JSON. */
static void round_trip(void)
{
	int fd = record_begin(0, 0), want = file_new(), have = file_new();
	struct content c;
	size_t statements = 0, waits = 0, transactions = 0;

	make_servers();
	output_init(&sink, want);
	for (int i = 0; i < 6000; i++) {
		/* In order, as the events of blocks that overlap are merged by their ends. */
		uint64_t end_ns = (1ull << 61) + (uint64_t)i * 1000;

		if (random_below(4)) {
			struct statement s = random_statement(end_ns);
			struct transaction t;

			s.start_ns -= s.duration_ns;
			s.wall_ns -= s.duration_ns;
			if (!random_below(4)) {
				make_transaction(&s, &t);
				transactions++;
			}
			encode_statement(&writer.users->encode, &s);
			/* An open one is a running one, for the readers. */
			if (s.transaction)
				s.running = t.open;
			print_statement(&sink, &s);
			statements++;
		} else {
			struct lock_wait wait = random_wait(end_ns);

			wait.start_ns -= wait.duration_ns;
			wait.wall_ns -= wait.duration_ns;
			encode_wait(&writer.users->encode, &wait);
			print_wait(&sink, &wait);
			waits++;
		}
		if (writer_due(&writer, (uint64_t)i * 20000000))
			CHECK(!commit(RECORDING_EVENTS), "%d", i);
	}
	CHECK(!commit(RECORDING_END) && !output_flush(&sink), "end");
	writer_close(&writer);
	output_init(&sink, have);
	c = content_read(fd, &sink);
	CHECK(!output_flush(&sink) && !damaged(&c) && c.nblocks > 10, "%zu", c.nblocks);
	CHECK(c.statements == statements && c.waits == waits && transactions > 500, "%zu %zu",
	      c.statements, c.waits);
	files_equal(want, have, "events");
	close(fd);
	close(want);
	close(have);
}

/* Members that JSON does not show. */
static void other_members(void)
{
	static struct reader reader;
	const struct summary sums[2] = {
		{ .statements = 1, .boundary = 9, .untraced_ns = 12, .lost = {
			[LOSS_RING_FULL] = 2, [LOSS_TABLE_FULL] = 3, [LOSS_START_WITHOUT_END] = 4,
			[LOSS_END_WITHOUT_START] = 5, [LOSS_WHO_UNKNOWN] = 6,
			[LOSS_TEXT_UNREADABLE] = 7, [LOSS_TEXT_TRUNCATED] = 8,
			[LOSS_TEXT_DROPPED] = 10, [LOSS_WHY_DROPPED] = 11 } },
		{ .statements = UINT64_MAX },
	};
	const struct recorded_cost cost = { .cpu_ns = 5, .has_bpf = true, .bpf_ns = 0 };
	const struct server server = {
		.engine = engine_table[0], .product = "mariadb", .otel_system = "mysql",
		.version = "1", .pid = 1, .has_uid = true, .directory = "/data",
	};
	const struct recorded_user users[] = {
		{ .known = true, .uid = UINT32_MAX, .statements = UINT64_MAX, .waits = 3 },
		{ .waits = 1, .last_ns = 1000 },
	};
	struct statement s = random_statement(5000);
	struct decode_event *event;
	int fd = record_begin(0, 0);

	s.server = &server;
	s.text = NULL;
	s.original_len = 0;
	s.parent = NULL;
	encode_statement(&writer.users->encode, &s);
	encode_status(&writer.users->encode, 77, &sums[0], &sums[1], &cost, users, 2);
	CHECK(!commit(RECORDING_END), "end");
	CHECK(!reader_open(&reader, fd, NULL, NULL), "open");
	CHECK(reader_next(&reader, &event) == 1 && event->type == RECORDING_OPTIONS &&
	      event->option.key_len == 6 && !memcmp(event->option.key, "layout", 6), "layout");
	CHECK(reader_next(&reader, &event) == 1 && event->type == RECORDING_OPTIONS &&
	      event->option.key_len == 8 && !memcmp(event->option.value, "1000", 4), "option");
	CHECK(reader_next(&reader, &event) == 1 && event->type == RECORDING_STATEMENT, "statement");
	CHECK(event->statement.server->has_uid && !event->statement.server->uid, "uid");
	CHECK(event->statement.server->engine == server.engine &&
	      !strcmp(event->statement.server->product, server.product) &&
	      !strcmp(event->statement.server->otel_system, server.otel_system), "engine");
	CHECK(event->statement.server->pid == 1 &&
	      !strcmp(event->statement.server->directory, "/data"), "dir");
	CHECK(reader_next(&reader, &event) == 1 && event->type == RECORDING_STATUS, "status");
	CHECK(event->end_ns == 77 && event->status.cost.has_bpf && !event->status.cost.bpf_ns &&
	      event->status.cost.cpu_ns == 5, "cost");
	CHECK(!memcmp(&event->status.statements, &sums[0], sizeof(sums[0])) &&
	      !memcmp(&event->status.waits, &sums[1], sizeof(sums[1])), "sums");
	CHECK(event->status.nusers == 2 && event->status.users[0].known &&
	      event->status.users[0].uid == UINT32_MAX &&
	      event->status.users[0].statements == UINT64_MAX &&
	      event->status.users[0].waits == 3 && !event->status.users[1].known &&
	      event->status.users[1].waits == 1 && event->status.users[1].last_ns == 1000,
	      "users");
	CHECK(!reader_next(&reader, &event), "the end");
	reader_close(&reader);
	writer_close(&writer);
	close(fd);
}

/* Each name of our layout is read as the number that it has. */
static void layouts(void)
{
	static struct layout layout;
	char text[LAYOUT_TEXT];
	size_t len = layout_write(text), names = 0;

	CHECK(len < sizeof(text) - 100 && strlen(text) == len && text[len - 1] == '\n', "%zu", len);
	layout_read(&layout, text, len);
	for (int of = 0; of < LAYOUT_LISTS; of++) {
		const struct layout_list *list = &layout.lists[of];

		for (unsigned int i = 0; i < list->count; i++)
			CHECK(list->to[i] == (int)i, "%d: %u is %d", of, i, list->to[i]);
		names += list->count;
	}
	for (const char *at = text; *at; at++)
		names -= *at == ' ';
	CHECK(!names && layout.lists[LAYOUT_LOSSES].count == LOSSES, "%zu", names);
	layout_read(&layout, "losses", 6);
	CHECK(!layout.lists[LAYOUT_LOSSES].count && !layout.lists[LAYOUT_PARTS].count, "none");
	strcpy(text, "  parts  disk  tape:z cpu:n cpu\nnosuch cpu\n\nstatement text sent:n");
	layout_read(&layout, text, strlen(text));
	CHECK(layout.lists[LAYOUT_PARTS].count == 4, "%u", layout.lists[LAYOUT_PARTS].count);
	CHECK(!memcmp(layout.lists[LAYOUT_PARTS].to, "\x03\xff\xff\x00", 4), "parts");
	/* A text has a value, so that a flag of this name is something else. */
	CHECK(!layout.lists[LAYOUT_STATEMENT].member[0], "text");
	CHECK(!strcmp(layout.lists[LAYOUT_STATEMENT].member[1]->name, "sent"), "sent");
	for (len = 0; len + 2 < sizeof(text); len += 2)
		memcpy(text + len, "a ", 2);
	memcpy(text, "plan ", 5);
	layout_read(&layout, text, len);
	CHECK(layout.lists[LAYOUT_PLAN].count == MEMBERS_MAX, "%u",
	      layout.lists[LAYOUT_PLAN].count);
}

static const struct engine postgres = { .name = "postgresql" };
static const struct server plain_server = {
	.engine = &postgres, .product = "postgresql", .otel_system = "postgresql",
	.version = "15", .path = "/p",
};
static const struct who plain_who = { .pid = 1, .tid = 1 };

static struct statement plain_statement(uint64_t number, const char *text, size_t len)
{
	return (struct statement){
		.server = &plain_server, .who = &plain_who, .start_ns = 1000 + number,
		.wall_ns = 1000 + number, .duration_ns = 1, .has_counts = true, .has_rows = true,
		.rows = number, .sent = number, .text = text, .text_len = len,
	};
}

/* More sessions, servers and texts than the dictionaries have, used again in any order. */
static void full_dictionaries(void)
{
	int fd = record_begin(0, 0), want = file_new(), have = file_new();
	struct server server = plain_server;
	struct who who = plain_who;
	struct content c;
	char text[64];

	output_init(&sink, want);
	for (int i = 0; i < 60000; i++) {
		size_t which = random_below(9000);
		size_t len = (size_t)snprintf(text, sizeof(text), "select x%c%c%c where a = %zu",
					      (char)('a' + which % 26),
					      (char)('a' + which / 26 % 26),
					      (char)('a' + which / 676), random_below(100));
		struct statement s = plain_statement((uint64_t)i, text, len);

		who.pid = who.tid = 1 + (uint32_t)which;
		snprintf(server.version, sizeof(server.version), "%zu", which % 900);
		s.server = &server;
		s.who = &who;
		encode_statement(&writer.users->encode, &s);
		print_statement(&sink, &s);
	}
	CHECK(!commit(RECORDING_END) && !output_flush(&sink), "end");
	output_init(&sink, have);
	c = content_read(fd, &sink);
	CHECK(!output_flush(&sink) && !damaged(&c) && c.nblocks == 2, "%zu", c.nblocks);
	files_equal(want, have, "statements");
	writer_close(&writer);
	close(fd);
	close(want);
	close(have);
}

/* Texts with a whole recording in them, and blocks that are damaged around these. */
static void recording_in_text(void)
{
	int inner = record_begin(0, 0), fd;
	struct statement s = plain_statement(7, "select 'wrong'", 14);
	uint8_t *head, *data;
	size_t size, len;
	struct content c;

	encode_statement(&writer.users->encode, &s);
	CHECK(!commit(RECORDING_END), "inner");
	writer_close(&writer);
	size = file_read(inner, &head);
	fd = file_new();
	memset(&writer, 0, sizeof(writer));
	writer_open(&writer, ID ^ 1, 0, 4096);
	CHECK(!writer_file(&writer, fd, 0), "outer");
	encode_option(&writer.users->encode, "start_ns", "1000");
	CHECK(!commit(RECORDING_START), "start");
	for (uint64_t i = 0; i < 3; i++) {
		s = plain_statement(i, (char *)head, size);
		encode_statement(&writer.users->encode, &s);
		CHECK(!commit(i < 2 ? RECORDING_EVENTS : RECORDING_END), "block");
	}
	writer_close(&writer);
	c = content_read(fd, NULL);
	CHECK(!damaged(&c) && c.statements == 3 && c.ordered && c.nblocks == 4, "%zu", c.nblocks);
	/* Without its own head, a block is searched for others, and there are two in its text. */
	len = file_read(fd, &data);
	data[writer.begin] ^= 1;
	file_write(fd, data, len);
	c = content_read(fd, NULL);
	CHECK(c.statements == 2 && c.first == 1 && c.ordered && c.damage.missing == 1, "%zu",
	      c.statements);
	/* Also if the block start has none, from which the ID is known. */
	data[0] ^= 1;
	file_write(fd, data, len);
	c = content_read(fd, NULL);
	CHECK(c.statements == 2 && c.first == 1 && c.ordered && c.damage.unstarted, "%zu",
	      c.statements);
	free(data);
	free(head);
	close(fd);
	close(inner);
}

/* The rest of a block that becomes too large is dropped and counted; later blocks are written. */
static void block_limit(void)
{
	static char large[1 << 20];
	int fd = record_begin(0, 0);
	struct content c;

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (char)('a' + i % 23);
	for (uint64_t i = 0; i < 12; i++) {
		struct statement s = plain_statement(i, large, sizeof(large));

		encode_statement(&writer.users->encode, &s);
	}
	CHECK(writer.users->encode.events.failed, "it does not fit");
	CHECK(!commit(RECORDING_EVENTS) && writer.dropped == 1, "dropped");
	for (uint64_t i = 0; i < 3; i++) {
		struct statement s = plain_statement(7 + i, large, sizeof(large) - i);

		encode_statement(&writer.users->encode, &s);
		CHECK(writer_due(&writer, i), "%llu", (unsigned long long)i);
	}
	CHECK(!commit(RECORDING_END) && writer.dropped == 1, "end");
	writer_close(&writer);
	c = content_read(fd, NULL);
	CHECK(c.statements == 10 && c.ordered && !c.damage.broken, "%zu", c.statements);
	close(fd);
}

/* Write @count statements with texts of random length, each in one of small blocks. */
static void write_statements(uint64_t count)
{
	char text[3000];

	for (uint64_t i = 0; i < count; i++) {
		struct statement s = plain_statement(i, text, random_below(sizeof(text)));

		for (size_t k = 0; k < s.text_len; k++)
			text[k] = (char)random_next();
		encode_statement(&writer.users->encode, &s);
		if (!random_below(20) || writer_full(&writer, writer.users))
			CHECK(!commit(RECORDING_EVENTS), "commit");
	}
}

/* After the ring has been around, it has the newest statements, without a gap. */
static void ring(void)
{
	static const uint64_t counts[] = { 10, 600, 705, 1400, 3000, 20000 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		for (int end = 0; end < 2; end++) {
			int fd = record_begin(0, WRITER_RING_MIN);
			struct content c;
			struct stat st;

			write_statements(counts[i]);
			CHECK(!commit(end ? RECORDING_END : RECORDING_EVENTS), "");
			writer_close(&writer);
			CHECK(!fstat(fd, &st) && st.st_size <= WRITER_RING_MIN, "size");
			c = content_read(fd, NULL);
			CHECK(!c.status && !c.damage.unstarted && !c.damage.broken &&
			      !c.damage.missing && !c.damage.cut && c.damage.unended == !end,
			      "%zu %d: missing %llu, broken %llu", i, end,
			      (unsigned long long)c.damage.missing,
			      (unsigned long long)c.damage.broken);
			CHECK(c.ordered && c.last == counts[i] - 1, "%zu: %llu", i,
			      (unsigned long long)c.last);
			/* A lap less two blocks is there, at least. */
			CHECK(c.first == 0 || c.statements > 550, "%zu", c.statements);
			CHECK(c.first == 0 || counts[i] > 600, "%zu", i);
			close(fd);
		}
	}
}

/* The newest blocks are kept in memory and written to files, in turn. */
static void memory_ring(void)
{
	int fd;
	struct content c;

	record_begin(WRITER_RING_MIN, 0);
	for (int turn = 0; turn < 3; turn++) {
		write_statements(3000);
		CHECK(!commit(RECORDING_EVENTS), "keep");
		CHECK(writer.kept <= WRITER_RING_MIN, "%llu", (unsigned long long)writer.kept);
		fd = file_new();
		CHECK(!writer_file(&writer, fd, 0), "file");
		CHECK(!writer.kept && !writer.users->first, "nothing is left");
		for (uint64_t i = 3000; i < 3005; i++) {
			struct statement s = plain_statement(i, "x", 1);

			encode_statement(&writer.users->encode, &s);
		}
		CHECK(!commit(RECORDING_END), "end");
		writer_no_file(&writer);
		c = content_read(fd, NULL);
		CHECK(!damaged(&c) && c.ordered && c.last == 3004 && c.statements > 550,
		      "%d: %zu, last %llu, missing %llu", turn, c.statements,
		      (unsigned long long)c.last, (unsigned long long)c.damage.missing);
		close(fd);
	}
	writer_close(&writer);
}

#define FLOOD		20000		/* statements of one user .. */
#define OTHERS		150		/* .. and of another */

static const struct summary no_summary;
static const struct recorded_cost no_cost;

/* Write a statement of user @uid, and the blocks that are due. */
static void write_of(uint32_t uid, uint64_t number)
{
	struct server server = plain_server;
	struct writer_user *user = writer_user(&writer, uid);
	char text[1000];
	struct statement s = plain_statement(number, text, random_below(sizeof(text)));

	for (size_t k = 0; k < s.text_len; k++)
		text[k] = (char)random_next();
	server.has_uid = true;
	server.uid = uid;
	s.server = &server;
	s.start_ns = (1 + number) * 1000000;
	encode_statement(&user->encode, &s);
	while ((user = writer_due(&writer, s.start_ns)))
		CHECK(!writer_commit(&writer, user, RECORDING_EVENTS), "commit");
}

/* End the file, with what was displaced. */
static void write_end(uint64_t ns)
{
	struct recorded_user users[WRITER_USERS];
	struct writer_user *user;

	while ((user = writer_due(&writer, UINT64_MAX)))
		CHECK(!writer_commit(&writer, user, RECORDING_EVENTS), "commit");
	CHECK(!writer_reserve(&writer, writer.users), "reserve");
	encode_status(&writer.users->encode, ns, &no_summary, &no_summary, &no_cost, users,
		      writer_displaced(&writer, users));
	CHECK(!commit(RECORDING_END), "end");
}

/* Read the file of shares(): all statements of user 8, and the newest of user 7, by their ends. */
static void check_shares(int fd, size_t row, uint64_t limit)
{
	static struct reader reader;
	struct decode_event *event;
	uint64_t count[9] = { 0 }, end_ns = 0, bytes = 0, last = 0;
	size_t users = 0;
	int ret;

	CHECK(!reader_open(&reader, fd, NULL, NULL) && !reader.damage.unended, "open");
	CHECK(!reader.damage.cut, "cut");
	while ((ret = reader_next(&reader, &event)) > 0) {
		CHECK(event->end_ns >= end_ns, "order");
		end_ns = event->end_ns;
		if (event->type == RECORDING_STATUS) {
			const struct recorded_user *told = event->status.users;

			users = event->status.nusers;
			CHECK(users == 2 && told[0].uid == 8 && told[1].uid == 7, "users");
			CHECK(!told[0].statements && !told[0].last_ns, "user 8");
			CHECK(FLOOD - told[1].statements <= count[7] + 1 &&
			      told[1].last_ns && told[1].last_ns < end_ns, "user 7");
		}
		if (event->type != RECORDING_STATEMENT)
			continue;
		count[event->statement.server->uid]++;
		bytes += event->statement.text_len;
		last = event->statement.rows;
	}
	CHECK(!ret && users == 2 && !reader.damage.broken, "%d", ret);
	CHECK(count[8] == OTHERS, "%zu: %llu of %llu", row, (unsigned long long)count[8],
	      (unsigned long long)count[7]);
	CHECK(last == FLOOD + OTHERS - 1, "%llu", (unsigned long long)last);
	CHECK(bytes > limit / 2 && bytes < limit, "%llu", (unsigned long long)bytes);
	reader_close(&reader);
}

/* A flood by one user displaces its own statements, in a file and in memory; it is counted. */
static void shares(void)
{
	static const struct { uint64_t memory, limit, least; } rows[] = {
		{ 0, 1 << 20, 1 << 20 }, { 0, 8 << 20, 8 << 20 }, { 1 << 20, 0, 1 << 20 },
		{ 2 << 20, 1 << 20, 1 << 20 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t number = 0;
		struct stat st;
		int fd = record_begin(rows[i].memory, rows[i].limit);

		while (number < OTHERS / 3)
			write_of(8, number++);
		while (number < FLOOD + OTHERS)
			write_of(number % (3 * FLOOD / OTHERS / 2 + 1) ? 7 : 8, number), number++;
		if (rows[i].memory) {
			fd = file_new();
			CHECK(!writer_file(&writer, fd, rows[i].limit), "file");
		}
		write_end(number * 1000000 + 1);
		CHECK(!fstat(fd, &st) && (!rows[i].limit || st.st_size <= (off_t)rows[i].limit),
		      "size");
		check_shares(fd, i, rows[i].least);
		writer_close(&writer);
		close(fd);
	}
}

/* Read a file of @users users, who wrote @sent statements: what is not there is counted. */
static void check_users(int fd, const uint64_t *sent, uint32_t users, uint64_t last,
			uint64_t room)
{
	static struct reader reader;
	struct decode_event *event;
	uint64_t have[12] = { 0 }, told = 0, present = 0, all = 0, newest = 0, bytes = 0;
	bool displaced = false;
	int ret;

	CHECK(!reader_open(&reader, fd, NULL, NULL) && !reader.damage.unended &&
	      !reader.damage.cut, "open");
	while ((ret = reader_next(&reader, &event)) > 0) {
		if (event->type == RECORDING_STATEMENT) {
			have[event->statement.server->uid]++;
			bytes += event->statement.text_len;
			newest = event->statement.rows > newest ? event->statement.rows : newest;
		}
		if (event->type == RECORDING_STATUS)
			told = 0;
		for (size_t i = 0; event->type == RECORDING_STATUS && i < event->status.nusers; i++)
			told += event->status.users[i].statements;
	}
	CHECK(!ret && !reader.damage.broken, "%d", ret);
	for (uint32_t i = 0; i < users; i++) {
		all += sent[i];
		present += have[i];
		displaced |= have[i] < sent[i];
		/* Those who wrote little lost nothing. */
		CHECK(sent[i] > 5 || have[i] == sent[i], "%u: %llu of %llu", i,
		      (unsigned long long)have[i], (unsigned long long)sent[i]);
	}
	CHECK(present + told >= all, "%llu and %llu of %llu", (unsigned long long)present,
	      (unsigned long long)told, (unsigned long long)all);
	CHECK(displaced == !!told && (displaced || !reader.damage.missing), "displaced");
	CHECK(newest == last, "%llu", (unsigned long long)newest);
	CHECK(bytes > room / 2 && bytes < room, "%llu", (unsigned long long)bytes);
	reader_close(&reader);
}

/* Users who write little, or once, take little, and lose nothing to one who fills the rest. */
static void many_users(void)
{
	for (uint64_t megabytes = 1; megabytes <= 4; megabytes *= 4) {
		for (uint32_t users = 1; users <= 12; users++) {
			uint64_t sent[12] = { 0 }, number = 0, room = megabytes << 20, before;
			int fd = record_begin(0, room);

			for (uint32_t i = 0; i < users; i++, sent[i - 1]++)
				write_of(i, number++);
			while (writer.written < 2 * room) {
				uint32_t i = random_below(500) ? users / 2 : random_below(users);

				/* The last encoder is of all users from the eighth on. */
				if (sent[i] > 3 && i != users / 2)
					continue;
				write_of(i, number++);
				sent[i]++;
			}
			before = number - 1;
			write_end(number * 1000000 + 1);
			check_users(fd, sent, users, before, room);
			writer_close(&writer);
			close(fd);
		}
	}
}

/* A small file of four blocks with a statement each. Return it; @offsets: of the blocks' ends. */
static int small_file(size_t offsets[4])
{
	int fd = record_begin(0, 0);

	offsets[0] = writer.at;
	for (uint64_t i = 0; i < 3; i++) {
		struct statement s = plain_statement(i, "select 1", 8);

		encode_statement(&writer.users->encode, &s);
		CHECK(!commit(i < 2 ? RECORDING_EVENTS : RECORDING_END), "");
		offsets[1 + i] = writer.at;
	}
	writer_close(&writer);
	return fd;
}

/* A file that ends anywhere has the blocks that are whole, and its end is reported. */
static void cut_files(void)
{
	size_t offsets[4], len;
	uint8_t *data;
	int fd = small_file(offsets);

	len = file_read(fd, &data);
	CHECK(len == offsets[3], "%zu", len);
	for (size_t n = 0; n < len; n++) {
		size_t whole = 0;
		struct content c;

		while (n >= offsets[whole])
			whole++;
		file_write(fd, data, n);
		c = content_read(fd, NULL);
		CHECK(whole ? !c.status : c.status == -EINVAL, "%zu: %d", n, c.status);
		CHECK(c.nblocks == whole && c.statements == (whole ? whole - 1 : 0) && c.ordered,
		      "%zu: %zu blocks", n, c.nblocks);
		CHECK(!whole || (damaged(&c) && c.damage.unended), "%zu", n);
	}
	free(data);
	close(fd);
}

/* A byte that has changed loses its own block only, and is reported. */
static void flipped_bytes(void)
{
	size_t offsets[4], len;
	uint8_t *data;
	int fd = small_file(offsets);

	len = file_read(fd, &data);
	for (size_t i = 0; i < 8 * len; i++) {
		size_t at = i / 8, block = 0;
		struct content c;

		while (at >= offsets[block])
			block++;
		data[at] ^= (uint8_t)(1u << i % 8);
		file_write(fd, data, len);
		c = content_read(fd, NULL);
		CHECK(!c.status && damaged(&c), "%zu: not reported", at);
		CHECK(c.statements == (block ? 2 : 3) && c.waits == 0, "%zu: %zu", at,
		      c.statements);
		CHECK(c.others == (block ? 2 : 0), "%zu: %zu options", at, c.others);
		data[at] ^= (uint8_t)(1u << i % 8);
	}
	free(data);
	close(fd);
}

/* The next head is found wherever it is after other bytes, also after parts of one. */
static void search(void)
{
	static uint8_t data[200000];
	size_t offsets[4], len;
	uint8_t *small;
	int fd = small_file(offsets);

	len = file_read(fd, &small);
	for (int i = 0; i < 300; i++) {
		size_t gap = 1 + random_below(i % 3 ? 30 : 150000);
		struct content c;

		for (size_t k = 0; k < gap; k++)
			data[k] = (uint8_t)RECORDING_MAGIC[random_below(20) ? k % 8 : k % 7];
		memcpy(data + gap, small, len);
		file_write(fd, data, gap + len);
		c = content_read(fd, NULL);
		CHECK(!c.status && c.nblocks == 4 && c.statements == 3 && c.ordered,
		      "%zu: %zu", gap, c.nblocks);
	}
	free(small);
	close(fd);
}

/* Read a file that has only the head of a block without events. Return the status. */
static int head_status(enum recording_kind kind, unsigned int version)
{
	const struct recording_block block = { .id = 5, .kind = kind, .version = version };
	uint8_t head[RECORDING_HEAD];
	struct crc32c crc;
	int fd = file_new(), status;

	crc32c_init(&crc);
	block_write(&crc, &block, head);
	file_write(fd, head, sizeof(head));
	status = content_read(fd, NULL).status;
	close(fd);
	return status;
}

/* Also an unknown layout whose names are not there is another version. */
static void versions(void)
{
	CHECK(head_status(RECORDING_START, 3) == -EPROTONOSUPPORT, "version 3");
	CHECK(head_status(RECORDING_START, 0) == -EPROTONOSUPPORT, "version 0");
	CHECK(!head_status(RECORDING_START, 2) && !head_status(RECORDING_START, 1), "known ones");
	CHECK(head_status(RECORDING_EVENTS, 2) == -EPROTONOSUPPORT, "unknown layout");
	CHECK(!head_status(RECORDING_EVENTS, 1), "no layout");
}

static bool stop_third(void *arg)
{
	return ++*(int *)arg == 3;
}

/* Asked every few MB, in a file without a recording and in one. */
static void stops(void)
{
	static struct reader reader;
	static uint8_t bytes[16 << 20];
	struct decode_event *event;
	struct statement s = random_statement(5000);
	int fd = file_new(), asked = 0, ret;

	memset(bytes, 'x', sizeof(bytes));
	file_write(fd, bytes, sizeof(bytes));
	CHECK(reader_open(&reader, fd, stop_third, &asked) == -EINTR && asked == 3, "%d", asked);
	reader_close(&reader);
	close(fd);
	fd = record_begin(0, 0);
	for (int i = 0; i < 200000; i++) {
		encode_statement(&writer.users->encode, &s);
		if (writer_due(&writer, 0))
			CHECK(!commit(RECORDING_EVENTS), "%d", i);
	}
	CHECK(!commit(RECORDING_END), "end");
	writer_close(&writer);
	asked = 0;
	CHECK(!reader_open(&reader, fd, stop_third, &asked) && asked < 3, "%d", asked);
	do
		ret = reader_next(&reader, &event);
	while (ret > 0);
	CHECK(ret == -EINTR && asked == 3, "%d, %d", ret, asked);
	reader_close(&reader);
	close(fd);
}

int main(void)
{
	RUN(crc_of_the_standard);
	RUN(numbers);
	RUN(differences);
	RUN(fingerprints_of_numbers);
	RUN(round_trip);
	RUN(other_members);
	RUN(layouts);
	RUN(full_dictionaries);
	RUN(recording_in_text);
	RUN(block_limit);
	RUN(ring);
	RUN(memory_ring);
	RUN(shares);
	RUN(many_users);
	RUN(cut_files);
	RUN(flipped_bytes);
	RUN(search);
	RUN(versions);
	RUN(stops);
	return check_done();
}
