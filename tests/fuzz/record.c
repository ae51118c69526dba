/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of the ring buffer, up to the lines that are printed. Input: a byte that selects engines
 * and filters, a position in the ring, the length and text of a process title, then the ring's
 * content, including the kernel's record headers. No process of the host is read: those with odd
 * IDs exist.
 */
#define arrivals_put record_executed
#define container_read record_container
#define process_directory record_directory
#define process_is_main record_is_main
#define process_read record_process
#define process_title record_title
#include "db/tracer.c"
#include "db/enrich.c"
#include "db/session/identity.c"
#include "db/discover/servers.c"
#undef container_read
#undef process_directory
#undef process_is_main
#undef process_read
#undef process_title

#include "cli/format/field_json.h"
#include "cli/format/field_table.h"
#include "db/engines.h"
#include "sql/fingerprint.h"
#include "tests/fuzz/event.h"
#include "tests/fuzz/valid.h"

#define RING	4096
#define PAGE	4096

static const char *record_text;		/* the title and container of every process */
static size_t record_text_len;

void record_executed(struct arrivals *arrivals, const struct event_exec *exec)
{
	char name[sizeof(exec->name.comm)];

	(void)arrivals;
	memcpy(name, exec->name.comm, sizeof(name));
}

ssize_t record_title(uint32_t pid, char *buf, size_t size)
{
	size_t len = record_text_len < size ? record_text_len : size;

	memcpy(buf, record_text, len);
	return pid & 1 ? (ssize_t)len : -ENOENT;
}

void record_container(uint32_t pid, char *container, size_t size)
{
	snprintf(container, size, "%.*s", pid & 2 ? (int)record_text_len : 0, record_text);
}

ssize_t record_directory(uint32_t pid, char *path, size_t size)
{
	if (!(pid & 1))
		return -ENOENT;
	return snprintf(path, size, "/%.*s", pid & 4 ? (int)record_text_len : 0, record_text);
}

int record_process(uint32_t pid, bool (*is_program)(const char *name), struct process *process)
{
	(void)is_program;
	*process = (struct process){ .pid = pid, .ppid = 1, .uid = pid & 8 };
	return pid & 1 ? 0 : -ESRCH;
}

bool record_is_main(const struct process *process, bool (*is_program)(const char *name))
{
	return is_program && process->pid & 2;
}

static bool record_shown(void *arg, const struct statement *s)
{
	static struct output out;
	struct field_list columns = { 0 };
	struct field_table view;
	const char *bad;
	size_t bad_len;

	(void)arg;
	check_event(s->server, s->who);
	/* Only of a server that was found. */
	REQUIRE(s->server->pid ? s->server->has_uid : !*s->server->directory);
	REQUIRE(!s->text || s->text_len <= RING);
	output_init(&out, -1);
	field_json(&out, s);
	REQUIRE(is_json_line(out.buf, out.len), "%.*s", (int)out.len, out.buf);
	columns.transactions = s->transaction;
	field_parse(&columns,
		    s->transaction ? "begin,end,ms,idle,statements,state,user,db,conn,query" :
		    "time,pid,tid,ms,user,db,client,app,container,conn,query_id,rows,status,errno,"
		    "engine,cpu,other,parse,execute,query", &bad, &bad_len);
	field_table_init(&view, &columns, 0, s->who->pid & 1);
	output_init(&out, -1);
	field_table_row(&out, &view, s);
	REQUIRE(out.len && out.buf[out.len - 1] == '\n' && is_harmless(out.buf, out.len - 1),
		"%.*s", (int)out.len, out.buf);
	if (s->text)
		fingerprint_make(s->server->engine->dialect, s->text, s->text_len, s->truncated,
				 NULL, 0);
	return true;
}

/* Return a ring as the kernel maps it, which contains the rest of the input from @start on. */
static struct ringbuf record_ring(struct input *in, uint64_t start)
{
	struct ringbuf ring = { .map = -1, .size = RING, .spill_size = 1024 };
	unsigned char *producer = aligned_alloc(8, PAGE + RING);
	uint64_t end = start + (in->left & ~(size_t)7);

	memset(producer, 0, PAGE + RING);
	memcpy(producer, &end, sizeof(end));
	for (uint64_t at = start; at < end; at += 8)
		input_bytes(in, producer + PAGE + at % RING, 8);
	ring.producer = producer;
	ring.consumer = calloc(1, PAGE);
	memcpy(ring.consumer, &start, sizeof(start));
	ring.spill = malloc(ring.spill_size);
	return ring;
}

static void record_drain(struct tracer *t, struct input *in, uint64_t start)
{
	struct ringbuf ring = record_ring(in, start);
	int64_t bytes = ringbuf_drain(&ring, tracer_record, t);
	uint64_t position;

	memcpy(&position, ring.consumer, sizeof(position));
	REQUIRE(bytes >= 0 && position == start + (uint64_t)bytes);
	free(ring.consumer);
	free((void *)(uintptr_t)ring.producer);
	free(ring.spill);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tracer t;
	static struct owners owners;
	struct input in = { data, size };
	uint8_t choice = input_byte(&in), start = input_byte(&in);
	struct target targets[3] = { 0 };
	size_t nengines = 0;
	void *title;

	record_text_len = input_byte(&in) % 65;
	title = malloc(record_text_len + 1);
	input_bytes(&in, title, record_text_len);
	record_text = title;
	while (engine_table[nengines])
		nengines++;
	for (size_t i = 0; i < 3; i++) {
		targets[i].id = 2 * (uint32_t)i;
		targets[i].engine = engine_table[(choice + i) % nengines];
	}
	owners = (struct owners){ .map = -1, .grants = -1, .losses = -1 };
	if (in.left > RING)
		in.left = RING;
	t = (struct tracer){
		.discover = { .targets = targets, .ntargets = choice & 0x10 ? 3 : 0 },
		.rt = { .wall_offset_ns = 1700000000000000000, .owners = &owners },
		.enrich = { .config = {
			.runtime = &t.rt, .discover = &t.discover, .sessions = &t.sessions,
			.identify = choice & 0x80, .sink = &t.sink,
		} },
		.sink = { .config = {
			.statement = record_shown, .nested = true,
			.filter.user = choice & 0x40 ? "app" : NULL,
			.filter.application = choice & 0x08 ? "shop" : NULL,
			.filter.container = choice & 0x20 ? "c0ffee" : NULL,
		} },
		.sessions = { .ignored_map = -1 },
	};
	record_drain(&t, &in, start * 8ull);
	identity_clear(&t.enrich.identities);
	servers_clear(&t.enrich.servers);
	free(title);
	return 0;
}
