// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/tracer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/embed.h"
#include "bpf/event.h"
#include "db/backend_state.h"
#include "host/clock.h"
#include "db/discover.h"
#include "db/engines.h"
#include "host/limits.h"
#include "host/pid_namespace.h"
#include "sql/fingerprint.h"
#include "db/identity.h"
#include "host/process.h"
#include "db/sessions.h"
#include "db/target.h"
#include "sql/traceparent.h"
#include "db/breakdown.h"
#include "loader/stream.h"

#define RING_MIN	(2u << 20)	/* bytes */
#define RING_RECORDS	32		/* of the longest there is room for at least so many */
#define PERF_MIN	(512u << 10)	/* bytes of the perf buffer of a CPU */
#define SESSIONS_MAX	65536		/* threads at once */
/* Where the kernel must set all their memory aside: fewer, and fewer still with long texts. */
#define SESSIONS_OLD	4096
#define SESSIONS_LEAST	128
#define SESSIONS_BYTES	(32u << 20)
#define DOUBTS_MAX	3		/* titles that contradict what was read from memory */
#define RECORD_HEAD	256		/* the longest head of a record with a text */
#define IGNORE_WITHIN_NS	500000000u	/* no thread number comes round in that time */
#define LEADERS_MAX	4096		/* statements with parallel workers at once */
#define COMMS_MAX	4096		/* names of programs that were executed */

enum map {
	MAP_SESSIONS, MAP_SLOTS, MAP_SLOT_SESSIONS,
	MAP_IGNORED, MAP_BLANK, MAP_SCRATCH, MAP_COUNTERS, MAP_RING, MAP_WAKERS,
	MAP_CONTROL, MAP_PIDS, MAP_SERVERS, MAP_COMMS, MAP_HISTOGRAM, MAP_THREADS,
	MAP_NO_THREAD, MAP_ACTIVE, MAP_WORKERS, MAP_PARALLEL, MAP_CALLS, MAPS,
};

enum number {
	NUMBER_THRESHOLD, NUMBER_TEXT_BYTES, NUMBER_TEXT_SIZE, NUMBER_HEAD_BYTES,
	NUMBER_FILTER_PIDS,
	NUMBER_STAT_UNIT, NUMBER_STAT_BY, NUMBER_WANT_SESSIONS, NUMBER_WANT_EXECS,
	NUMBER_SLOT_SHIFT,
	NUMBER_WANT_ROWS, NUMBER_PID_NS_DEV, NUMBER_PID_NS_INO,
	NUMBER_PERF_BUFFERS, NUMBER_NS_PIDS, NUMBER_WANT_WHY, NUMBER_WANT_USE,
	NUMBER_WANT_BYTES, NUMBER_CALL_NONE, NUMBER_WANT_WAITS, NUMBER_WAIT_PART, NUMBER_WAIT_CALL,
	NUMBER_WHY, NUMBERS = NUMBER_WHY + BREAKDOWN_NUMBERS,
};

/* Our own programs on raw tracepoints. */
static const struct tracepoint {
	const char *program, *name;
	bool why, use, records;		/* only with these, or where records are read */
	bool optional;
} tracepoint_table[] = {
	{ "thread_exit", "sched_process_exit", false, false, false, false },
	{ "process_exec", "sched_process_exec", false, false, false, false },
	{ "task_switch", "sched_switch", true, false, false, false },
	{ "task_wakeup", "sched_wakeup", true, false, false, false },
	/* CONFIG_FTRACE_SYSCALLS; without, the system calls are not known. */
	{ "call_exit", "sys_exit", true, false, true, true },
	{ "call_enter", "sys_enter", true, false, true, true },
	/* 6e6eda44b939 (6.3); before it bytes of sockets are not known. */
	{ "task_sent", "sock_send_length", true, true, false, true },
	{ "task_received", "sock_recv_length", true, true, false, true },
};

enum {
	TRACEPOINT_SWITCH = 2, TRACEPOINT_CALL = 5, TRACEPOINT_SENT, TRACEPOINT_RECEIVED,
	TRACEPOINTS,
};

_Static_assert(sizeof(tracepoint_table) / sizeof(tracepoint_table[0]) == TRACEPOINTS,
	       "each has a place");

struct tracer {
	struct tracer_config config;
	struct features features;
	struct object object;
	int maps[MAPS];
	struct object_value values[MAPS + NUMBERS];
	int tracepoints[TRACEPOINTS];	/* links */
	int events[TRACEPOINTS];	/* numbers of those whose records are given; 0: raw */
	struct breakdown_pending why;
	struct breakdown_waits waits;
	struct histogram counts;		/* what was counted here; closed where the kernel counts */
	uint32_t ring_bytes;		/* with perf buffers, for each CPU */
	bool perf_buffers, ns_pids;
	struct stream stream;
	struct discover discover;
	struct sessions sessions;
	struct semaphores semaphores;
	struct identity_table identities;
	uint64_t pid_ns_dev, pid_ns_ino;
	int64_t ahead_ns;		/* see clock_ahead() */
	uint64_t wall_offset_ns;	/* CLOCK_REALTIME - the kernel's clock at this drain */
	uint64_t text_unreadable, text_truncated;
	uint64_t detach_ns;		/* the kernel's clock: when detaching began; 0: it has not */
	uint64_t unseen;		/* statements that ended after that, and are not shown */
	uint64_t half_seen;		/* of these, those that began before it */
	struct traceparent parent;	/* of the statement that is being shown */
	char *redacted;			/* room for a text; NULL: they are shown as they are */
	bool detached, unwritten;
};

static uint32_t tracer_ring_bytes(const struct tracer *t)
{
	uint64_t want = (uint64_t)RING_RECORDS *
			(sizeof(struct event_statement) + t->config.text_bytes);
	uint32_t bytes = t->perf_buffers ? PERF_MIN : RING_MIN;

	while (bytes < want)
		bytes *= 2;
	return bytes;
}

static uint32_t tracer_sessions(bool alloc, uint32_t bytes)
{
	uint32_t fit = SESSIONS_BYTES / bytes;

	if (alloc)
		return SESSIONS_MAX;
	return fit > SESSIONS_OLD ? SESSIONS_OLD : fit < SESSIONS_LEAST ? SESSIONS_LEAST : fit;
}

static int tracer_maps(struct tracer *t, struct error *error)
{
	uint32_t least = HEAD_WORDS * sizeof(uint64_t), want = t->config.text_bytes + 2;
	uint32_t text = want > least ? want : least;
	uint32_t session =
		(uint32_t)((STAT_GROUP + sizeof(struct event_statement) + text + 7) & ~7u);
	bool alloc = feature_has(&t->features, FEATURE_TRACING_ALLOC);
	/* Maps can be shared from Linux 5.5 (fc9702273e2e); there is a ring from 5.8. */
	uint32_t slots = t->perf_buffers ? 1 : sessions_slots(session);
	const struct map_def defs[MAPS] = {
		[MAP_SESSIONS] = { "sessions", BPF_MAP_TYPE_HASH, 8, session,
				   tracer_sessions(alloc, session),
				   alloc ? BPF_F_NO_PREALLOC : 0 },
		[MAP_SLOTS] = { "slots", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct slot), slots,
				t->perf_buffers ? 0 : BPF_F_MMAPABLE },
		[MAP_SLOT_SESSIONS] = { "slot_sessions", BPF_MAP_TYPE_ARRAY, 4, session, slots, 0 },
		[MAP_IGNORED] = { "ignored", BPF_MAP_TYPE_HASH, 8, 1,
				  tracer_sessions(alloc, session),
				  alloc ? BPF_F_NO_PREALLOC : 0 },
		[MAP_BLANK] = { "blank", BPF_MAP_TYPE_ARRAY, 4, session, 1, 0 },
		[MAP_SCRATCH] = { "scratch", BPF_MAP_TYPE_ARRAY, 4, TEXT_SCAN_BYTES, 1, 0 },
		[MAP_COUNTERS] = { "counters", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, COUNTERS, 0 },
		[MAP_RING] = {
			"ring",
			t->perf_buffers ? BPF_MAP_TYPE_PERF_EVENT_ARRAY : BPF_MAP_TYPE_RINGBUF,
			t->perf_buffers ? 4 : 0, t->perf_buffers ? 4 : 0,
			t->perf_buffers ? SYS_CPUS_MAX : t->ring_bytes, 0 },
		[MAP_WAKERS] = { "wakers", BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4,
				 t->perf_buffers ? SYS_CPUS_MAX : 1, 0 },
		[MAP_CONTROL] = { "control", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct control), 1,
				  t->perf_buffers ? 0 : BPF_F_MMAPABLE },
		[MAP_PIDS] = { "pids", BPF_MAP_TYPE_HASH, 4, 1, DISCOVER_PIDS, 0 },
		[MAP_SERVERS] = { "servers", BPF_MAP_TYPE_HASH, 8, sizeof(struct wanted_server),
				  DISCOVER_PIDS, 0 },
		[MAP_HISTOGRAM] = { "histogram", BPF_MAP_TYPE_HASH, sizeof(struct stat_key), 8,
				    t->config.stat_unit_ns ? HISTOGRAM_MAX : 1,
				    alloc ? BPF_F_NO_PREALLOC : 0 },
		[MAP_THREADS] = { "threads", BPF_MAP_TYPE_HASH, 4, sizeof(struct event_breakdown),
				  t->config.why ? tracer_sessions(alloc,
								  sizeof(struct event_breakdown)) : 1,
				  alloc ? BPF_F_NO_PREALLOC : 0 },
		[MAP_NO_THREAD] = { "no_thread", BPF_MAP_TYPE_ARRAY, 4,
				    sizeof(struct event_breakdown),
				    1, 0 },
		[MAP_ACTIVE] = { "active", BPF_MAP_TYPE_ARRAY, 4, 4, BREAKDOWN_SLOTS, 0 },
		/* Those of leaders that are not wanted stay there. */
		[MAP_WORKERS] = { "workers", BPF_MAP_TYPE_LRU_HASH, 8,
				  sizeof(struct breakdown_workers),
				  t->config.why ? LEADERS_MAX : 1, 0 },
		[MAP_PARALLEL] = { "parallel", BPF_MAP_TYPE_ARRAY, 4, 4, BREAKDOWN_LEADERS, 0 },
		[MAP_CALLS] = { "calls", BPF_MAP_TYPE_ARRAY, 4, 4, BREAKDOWN_CALLS, 0 },
		[MAP_COMMS] = { "comms", BPF_MAP_TYPE_HASH, sizeof(struct exec_name), 1, COMMS_MAX,
				alloc ? BPF_F_NO_PREALLOC : 0 },
	};
	int err;

	for (int i = 0; i < MAPS; i++) {
		t->maps[i] = sys_map_create(&defs[i]);
		if (t->maps[i] < 0)
			return error_set(error, ERROR_MAP, t->maps[i], defs[i].name, NULL);
		t->values[i] = (struct object_value){ .name = defs[i].name, .kind = OBJECT_MAP,
						      .map = t->maps[i] };
	}
	t->sessions = (struct sessions){
		.map = t->maps[MAP_SESSIONS], .slot_map = t->maps[MAP_SLOT_SESSIONS],
		.bytes = session, .text_bytes = t->config.text_bytes,
		.no_memory = t->pid_ns_ino, .discover = &t->discover,
	};
	err = t->perf_buffers ? 0 : sessions_share(&t->sessions, t->maps[MAP_SLOTS], slots);
	return err ? error_set(error, ERROR_MAP, err, "slots", NULL) : 0;
}

/* Which statements count, only their texts tell. */
static bool tracer_counts_here(const struct tracer *t)
{
	return t->config.stat_unit_ns && t->config.match;
}

static void tracer_numbers(struct tracer *t)
{
	uint32_t head = HEAD_WORDS * sizeof(uint64_t);
	const struct tracer_config *c = &t->config;
	const struct object_value numbers[NUMBERS] = {
		[NUMBER_THRESHOLD] = { .name = "constant_threshold_ns", .number = c->threshold_ns },
		[NUMBER_TEXT_BYTES] = { .name = "constant_text_bytes", .number = c->text_bytes },
		[NUMBER_TEXT_SIZE] = { .name = "constant_text_size", .number = c->text_bytes + 2 },
		[NUMBER_HEAD_BYTES] = { .name = "constant_head_bytes",
					.number = c->text_bytes + 2 < head ? c->text_bytes + 2 :
									     head },
		[NUMBER_FILTER_PIDS] = { .name = "constant_filter_pids", .number = c->servers.npids > 0 },
		[NUMBER_SLOT_SHIFT] = { .name = "constant_slot_shift",
					.number = t->sessions.slot_shift },
		[NUMBER_WANT_SESSIONS] = { .name = "constant_want_sessions",
					   .number = c->identify },
		/* What runs already, or one file, is all that is wanted there. */
		[NUMBER_WANT_EXECS] = { .name = "constant_want_execs",
					.number = !c->servers.npids && !c->servers.npaths },
		[NUMBER_STAT_UNIT] = { .name = "constant_stat_unit_ns", 
					.number = tracer_counts_here(t) ? 0 : c->stat_unit_ns },
		[NUMBER_STAT_BY] = { .name = "constant_stat_by", .number = c->stat_by },
		[NUMBER_PID_NS_DEV] = { .name = "constant_pid_ns_dev", .number = t->pid_ns_dev },
		[NUMBER_PID_NS_INO] = { .name = "constant_pid_ns_ino", .number = t->pid_ns_ino },
		[NUMBER_NS_PIDS] = { .name = "constant_ns_pids", .number = t->ns_pids },
		[NUMBER_PERF_BUFFERS] = { .name = "constant_perf_buffers",
					  .number = t->perf_buffers },
		[NUMBER_WANT_ROWS] = { .name = "constant_want_rows", .number = c->rows },
		[NUMBER_WANT_WHY] = { .name = "constant_want_breakdown", .number = c->why },
		/* Known once its tracepoints were asked for. */
		[NUMBER_WANT_BYTES] = { .name = "constant_want_bytes" },
		[NUMBER_CALL_NONE] = { .name = "constant_call_none" },
		[NUMBER_WANT_USE] = { .name = "constant_want_use", .number = c->use },
		[NUMBER_WANT_WAITS] = { .name = "constant_want_waits", .number = c->wait },
		[NUMBER_WAIT_PART] = { .name = "constant_wait_part", .number = c->wait_part },
		[NUMBER_WAIT_CALL] = { .name = "constant_wait_call", .number = c->wait_call },
	};

	memcpy(t->values + MAPS, numbers, NUMBER_WHY * sizeof(*numbers));
}

/* What --why needs to know of the kernel. */
static int tracer_why(struct tracer *t, struct error *error)
{
	struct object_value *numbers = &t->values[MAPS + NUMBER_WHY];
	int err;

	if (!t->config.why) {
		breakdown_no_numbers(numbers);
		return 0;
	}
	err = breakdown_numbers(&t->features, numbers, t->events + TRACEPOINT_SWITCH);
	if (err)
		return error_set(error, ERROR_TYPES, err, NULL, NULL);
	for (uint32_t call = 0; call < BREAKDOWN_CALLS; call++) {
		uint32_t part = breakdown_call_part(call);

		sys_map_update(t->maps[MAP_CALLS], &call, &part);
	}
	t->why.rows = calloc(BREAKDOWN_PENDING, sizeof(*t->why.rows));
	return t->why.rows ? 0 : error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
}

static int tracer_tracepoints(struct tracer *t, struct error *error)
{
	for (size_t i = 0; i < TRACEPOINTS; i++) {
		const struct tracepoint *row = &tracepoint_table[i];

		if ((row->why && !t->config.why) || (row->use && !t->config.use) ||
		    (row->records && !t->events[TRACEPOINT_SWITCH]))
			continue;
		t->tracepoints[i] = discover_tracepoint(&t->discover, &t->object, row->program,
							 row->name, t->events[i], error);
		if (t->tracepoints[i] < 0 && !row->optional)
			return t->tracepoints[i];
		error_clear(error);
	}
	t->values[MAPS + NUMBER_WANT_BYTES].number = t->tracepoints[TRACEPOINT_SENT] >= 0 &&
						     t->tracepoints[TRACEPOINT_RECEIVED] >= 0;
	t->values[MAPS + NUMBER_CALL_NONE].number = t->tracepoints[TRACEPOINT_CALL] >= 0 ?
						    BREAKDOWN_NO_CALL : BREAKDOWN_OTHERS;
	return 0;
}

static const char *identity_string(const char *s)
{
	return *s ? s : NULL;
}

/* Whether @value, NULL where it is not known, is what is wanted. */
static bool filter_same(const char *wanted, const char *value)
{
	return !wanted || (value && !strcmp(wanted, value));
}

/*
 * A session whose user or database is known and not wanted: the kernel is told to look away, so
 * that it costs its hits alone. Only where a thread is a session, which keeps both to its end.
 */
static void tracer_ignore(struct tracer *t, const struct identity *identity,
			  const struct event_session *session)
{
	uint64_t key = session->tid;
	char yes = 1;

	if (!t->config.user && !t->config.database)
		return;
	/* When we come late, the thread may be another one already. */
	if (clock_kernel_ns(t->ahead_ns) - session->time_ns > IGNORE_WITHIN_NS)
		return;
	if (t->pid_ns_ino || !*identity->user || !*identity->database ||
	    (filter_same(t->config.user, identity->user) &&
	     filter_same(t->config.database, identity->database)))
		return;
	if (sys_map_update(t->maps[MAP_IGNORED], &key, &yes))
		return;
	/* One that has ended meanwhile would leave its mark to the next thread of that number. */
	if (!sessions_ignore(&t->sessions, session->tid))
		sys_map_delete(t->maps[MAP_IGNORED], &key);
}

/*
 * Believes the memory once a title agrees with it, and no more when several do not. Whether there
 * was a title.
 */
static bool tracer_trust(struct target *target, uint32_t tid, const struct identity *memory)
{
	char title[512], expected[256];
	ssize_t len = process_title(tid, title, sizeof(title) - 1);

	if (len <= 0)
		return false;
	title[len] = '\0';
	snprintf(expected, sizeof(expected), " %s %s %s", memory->user, memory->database,
		 memory->client);
	if (*memory->user && strstr(title, expected))
		target->trust = TRUST_MEMORY;
	else if (++target->doubts == DOUBTS_MAX)
		target->trust = TRUST_TITLE;
	return true;
}

/*
 * A backend that has gone has no title to ask. A client's address and port where those are
 * looked for tell that the members lie where they should.
 */
static bool identity_plausible(const struct event_identity *event)
{
	if (!*event->user || !*event->database)
		return false;
	return !strncmp(event->host, "[local]", sizeof(event->host)) ||
	       (memchr(event->host, '.', 5) && *event->port >= '1' && *event->port <= '9');
}

/*
 * Who is connected, as the program read it from the server's memory. Where a member lies there
 * is the release's own affair, so the first title that can be read decides whether to believe it.
 */
static void tracer_identity(struct tracer *t, const struct event_identity *event)
{
	struct target *target = &t->discover.targets[event->session.target_id];
	struct identity memory = { .user = "" };
	uint32_t tid = event->session.tid;
	bool titled = true;

	snprintf(memory.user, sizeof(memory.user), "%.*s", (int)sizeof(event->user) - 1,
		 event->user);
	snprintf(memory.database, sizeof(memory.database), "%.*s",
		 (int)sizeof(event->database) - 1, event->database);
	target->engine->client(event->host, event->port, memory.client, sizeof(memory.client));
	if (!target->engine->identify)
		target->trust = TRUST_MEMORY;
	if (target->trust == TRUST_UNKNOWN)
		titled = tracer_trust(target, tid, &memory);
	identity_forget(&t->identities, tid);
	if (target->trust == TRUST_MEMORY || (!titled && identity_plausible(event)))
		identity_set(&t->identities, tid, &memory);
	if (target->engine->identify)
		tracer_ignore(t, identity_of(&t->identities, target->engine, tid),
			      &event->session);
}

/* An id may be given whole or by its beginning, and only its beginning is kept. */
static bool filter_container(const char *wanted, const char *container)
{
	size_t a = wanted ? strlen(wanted) : 0, b = container ? strlen(container) : 0;

	return !wanted || (b && !strncmp(wanted, container, a < b ? a : b));
}

static bool tracer_filter(const struct tracer *t, const struct statement *s)
{
	const struct tracer_config *c = &t->config;

	if (!filter_same(c->user, s->user) || !filter_same(c->database, s->database) ||
	    !filter_container(c->container, s->container))
		return false;
	return !c->match || (s->text && regex_match(c->match, s->text, s->text_len));
}

/* Who is connected and where. */
static void tracer_who(struct tracer *t, const struct event_statement *event, struct statement *s)
{
	const struct engine *engine = t->discover.targets[event->target_id].engine;
	const struct identity *identity;

	if (!t->config.identify)
		return;
	identity = identity_of(&t->identities, engine, event->tid);
	s->user = identity_string(identity->user);
	s->database = identity_string(identity->database);
	s->client = identity_string(identity->client);
	s->container = identity_string(identity_container(&t->identities, event->tid));
}

/* What a finished statement and a running one have alike; without its text if that is none. */
static struct statement statement_of(struct tracer *t, const struct event_statement *event,
				     bool has_text)
{
	const struct target *target = &t->discover.targets[event->target_id];
	const struct engine *engine = target->engine;
	struct statement s = {
		.engine = engine->name, .otel_system = target_otel_system(target),
		.dialect = engine->dialect,
		.pid = event->pid, .tid = event->tid,
		.start_ns = event->start_ns + (uint64_t)t->ahead_ns,
		.wall_ns = event->start_ns + t->wall_offset_ns,
	};

	if (has_text && !(event->flags & (STATEMENT_UNREADABLE | STATEMENT_NO_TEXT))) {
		s.text = (const char *)(event + 1);
		s.text_len = event->text_len;
		s.truncated = event->flags & STATEMENT_CUT;
		s.query_bytes = event->query_bytes;
		s.has_query_bytes = s.query_bytes || !s.truncated;
	}
	return s;
}

/*
 * What is handed on has the original nowhere. What is quoted how by a server that is not known, is
 * not known either: it is read as both do.
 */
static bool tracer_show(struct tracer *t, struct statement *s)
{

	if (t->config.parents && s->text &&
	    traceparent_find(s->dialect, s->text, s->text_len, s->truncated, &t->parent))
		s->parent = &t->parent;
	if (t->redacted && s->text && s->text_len > t->config.text_bytes)
		s->text = NULL;
	if (t->redacted && s->text) {
		s->original_len = s->text_len;
		s->text_len = fingerprint_redact(s->dialect, s->text, s->text_len, s->truncated,
						 t->redacted);
		if (t->config.servers.start)
			s->text_len = fingerprint_redact(FINGERPRINT_MYSQL, t->redacted,
							 s->text_len,
							 s->truncated, t->redacted);
		s->text = t->redacted;
	}
	return t->config.statement(t->config.arg, s);
}

/* Counts a statement, or its waits, if it is one that is wanted. */
static void tracer_count_statement(struct tracer *t, const struct event_statement *event,
				   const struct statement *s, bool wanted)
{
	const struct engine *engine = t->discover.targets[event->target_id].engine;
	const uint64_t *waits;
	size_t n;

	waits = breakdown_wait_take(&t->waits, event->pid, event->start_ns, &n);
	if (!wanted)
		return;
	if (!t->config.wait)
		histogram_add(&t->counts, engine, s, s->duration_ns);
	for (size_t i = 0; i < n; i++)
		histogram_add(&t->counts, engine, s, waits[i]);
}

static void tracer_statement(struct tracer *t, const struct event_statement *event)
{
	struct statement s = statement_of(t, event, true);

	/* Some of its steps were not seen: the sites go one after the other. */
	if (t->detach_ns && event->start_ns + event->duration_ns > t->detach_ns) {
		t->half_seen += event->start_ns < t->detach_ns;
		t->unseen++;
		return;
	}
	s.duration_ns = event->duration_ns;
	s.connection_id = event->connection_id;
	s.error_code = event->error_code;
	s.has_rows = event->flags & STATEMENT_HAS_ROWS && !(event->flags & STATEMENT_ERROR);
	s.rows = event->rows;
	s.has_status = !(event->flags & STATEMENT_NO_STATUS);
	s.failed = event->flags & STATEMENT_ERROR;
	s.no_text = event->flags & STATEMENT_NO_TEXT;
	s.why = breakdown_take(&t->why, event->tid, event->start_ns, event->duration_ns);
	tracer_who(t, event, &s);
	if (tracer_counts_here(t)) {
		tracer_count_statement(t, event, &s, tracer_filter(t, &s));
	} else if (tracer_filter(t, &s) && tracer_show(t, &s)) {
		t->text_unreadable += !s.text && !s.no_text;
		t->text_truncated += s.truncated;
	}
	/* Where a session is no thread, who it is comes with each statement. */
	if (t->config.identify && !t->discover.targets[event->target_id].engine->identify)
		identity_forget(&t->identities, event->tid);
}

/* One record. Its sizes and numbers are checked: it comes from the kernel, but by way of memory. */
static int tracer_record(void *arg, const void *data, size_t size)
{
	struct tracer *t = arg;
	const struct event_statement *statement = data;
	const struct event_session *session = data;
	size_t ntargets = t->discover.ntargets;

	if (size < sizeof(*session) || session->target_id >= (ntargets ? ntargets : 1))
		return 0;
	switch (session->type) {
	case EVENT_STATEMENT:
		if (size >= sizeof(*statement) && ntargets &&
		    statement->text_len <= size - sizeof(*statement))
			tracer_statement(t, statement);
		break;
	case EVENT_BREAKDOWN:
		if (size >= sizeof(struct event_breakdown))
			breakdown_put(&t->why, data,
				      ntargets ? t->discover.targets[session->target_id].has : 0);
		break;
	case EVENT_WAIT:
		if (size >= sizeof(struct event_wait))
			breakdown_wait_put(&t->waits, data);
		break;
	case EVENT_SESSION:
		if (ntargets && size >= sizeof(struct event_identity))
			tracer_identity(t, data);
		break;
	case EVENT_EXIT:
		identity_forget(&t->identities, session->tid);
		break;
	case EVENT_EXEC:
		if (size >= sizeof(struct event_exec))
			discover_executed(&t->discover, data);
		break;
	}
	return 0;
}

/* Makes the kernel's session of a process that runs @statement, whose text is in @session. */
static void tracer_seed(struct tracer *t, const struct target *target, uint32_t pid,
			const struct backend_statement *statement, struct session *session)
{
	uint64_t offset = clock_ns(CLOCK_REALTIME) - clock_kernel_ns(t->ahead_ns);

	if (statement->begun_ns < offset)
		return;
	session->s = (struct event_statement){
		.type = EVENT_STATEMENT, .target_id = target->id, .pid = pid, .tid = pid,
		.start_ns = statement->begun_ns - offset, .depth = 1,
		.flags = SESSION_OPEN | (statement->cut ? STATEMENT_CUT : 0),
		.text_len = (uint32_t)statement->len,
		.query_bytes = statement->cut ? 0 : statement->len,
	};
	/* Who is connected, too: it may end with this statement. */
	if (!sessions_add(&t->sessions, pid, session) && t->config.identify)
		identity_of(&t->identities, target->engine, pid);
}

/*
 * A process may have been running a statement since before there were probes: it gets a session as if
 * they had seen the start. They are there by now: where they have seen anything of it, that was the
 * end of the statement, there is a session, and nothing is added.
 */
static void tracer_process(void *arg, const struct target *target, const struct process *process)
{
	struct tracer *t = arg;
	struct backend_statement statement;
	struct session *session;

	/* The kernel's own numbers of threads are needed, and for stat what only programs know. */
	if (t->pid_ns_ino || t->config.stat_unit_ns || !target->places.text)
		return;
	session = calloc(1, t->sessions.bytes);
	if (session && !backend_read(process, target->lowest_vaddr, &target->places, session->text,
				     t->config.text_bytes, &statement))
		tracer_seed(t, target, process->pid, &statement, session);
	free(session);
}

/* Choose between the features that the kernel has and their fallbacks. */
static void tracer_choose(struct tracer *t)
{
	feature_deny(&t->features, t->config.denied);
	t->object.old_reads = !feature_has(&t->features, FEATURE_READ_USER);
	if (t->config.servers.npids || t->pid_ns_ino)
		t->ns_pids = feature_has(&t->features, FEATURE_NS_PID);
	t->perf_buffers = !feature_has(&t->features, FEATURE_RINGBUF);
	/* Asked while there are descriptors for it, that is before the maps have taken theirs. */
	t->discover.common.method = attach_choose(&t->features);
	feature_has(&t->features, FEATURE_REF_CTR);
	if (t->perf_buffers && t->config.text_bytes > PERFBUF_RECORD_MAX - RECORD_HEAD)
		t->config.text_bytes = PERFBUF_RECORD_MAX - RECORD_HEAD;
	t->ring_bytes = tracer_ring_bytes(t);
}

/* What does not go with us of itself. */
static int tracer_lasting(struct tracer *t, struct error *error)
{
	bool written = !feature_has(&t->features, FEATURE_REF_CTR);
	struct error note = { .kind = ERROR_NONE };
	int err = 0;

	if ((written || t->discover.common.method == ATTACH_TRACEFS) && t->config.lasting)
		err = t->config.lasting(t->config.arg);
	if (err)
		return error_set(error, ERROR_WAIT, err, NULL, NULL);
	semaphores_repair(engine_is_executable);
	t->semaphores.is_program = engine_is_executable;
	err = written ? semaphores_open(&t->semaphores) : 0;
	if (!err)
		return 0;
	error_set(&note, ERROR_NOTE, err, NULL, NULL);
	t->config.error(t->config.arg, &note);
	return 0;
}

/* Tells once of a process that could not be written to. */
static void tracer_unwritten(struct tracer *t)
{
	struct error error = { .kind = ERROR_NONE };
	char pid[16];

	if (!t->semaphores.error || t->unwritten)
		return;
	t->unwritten = true;
	snprintf(pid, sizeof(pid), "%u", t->semaphores.error_pid);
	error_set(&error, ERROR_SEMAPHORE, t->semaphores.error, pid, NULL);
	t->config.error(t->config.arg, &error);
}

static int tracer_stream(struct tracer *t, struct error *error)
{
	size_t record_max = RECORD_HEAD + t->config.text_bytes;
	int err;

	if (record_max < sizeof(struct event_breakdown))
		record_max = sizeof(struct event_breakdown);
	if (!t->perf_buffers)
		err = ringbuf_open(&t->stream.ring, t->maps[MAP_RING], t->ring_bytes,
				  t->maps[MAP_CONTROL], record_max);
	else
		err = perfbuf_open(&t->stream.perf, &(struct perfbuf_config){
			.ring = t->maps[MAP_RING], .wakers = t->maps[MAP_WAKERS],
			.control = t->maps[MAP_CONTROL], .size = t->ring_bytes,
			.record_max = record_max, .ahead_ns = t->ahead_ns,
		});
	return err ? error_set(error, ERROR_STREAM, err, NULL, NULL) : 0;
}

int tracer_open(struct tracer **tracer, const struct tracer_config *config, struct error *error)
{
	struct tracer *t = calloc(1, sizeof(*t));
	int err;

	*tracer = NULL;
	if (!t)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	t->config = *config;
	t->ahead_ns = clock_ahead();
	for (int i = 0; i < MAPS; i++)
		t->maps[i] = -1;
	for (size_t i = 0; i < TRACEPOINTS; i++)
		t->tracepoints[i] = -1;
	err = discover_init(&t->discover, &t->config.servers, error);
	if (err)
		goto fail;
	if (access("/proc/self/fd", F_OK)) {
		err = error_set(error, ERROR_PROC, -errno, NULL, NULL);
		goto fail;
	}
	t->discover.common = (struct target_common){
		.features = &t->features, .object = &t->object, .values = t->values,
		.nvalues = MAPS + NUMBERS, .semaphores = &t->semaphores,
		.asked = (config->why ? ENGINE_WHY : 0) | (config->phases ? ENGINE_PHASES : 0) |
			 (config->use ? ENGINE_USE : 0),
		.program = config->program,
		.program_arg = config->arg, .site = config->site, .site_arg = config->arg,
	};
	err = object_open(&t->object, bpf_statement, (size_t)(bpf_statement_end - bpf_statement));
	if (err) {
		error_set(error, ERROR_LINK, err, "the embedded object", NULL);
		goto fail;
	}
	limits_raise();
	pid_namespace_own(&t->pid_ns_dev, &t->pid_ns_ino);
	tracer_choose(t);
	t->redacted = config->redact ? malloc(t->config.text_bytes) : NULL;
	if (config->redact && !t->redacted) {
		err = error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
		goto fail;
	}
	if (t->pid_ns_ino && !t->ns_pids) {
		err = error_set(error, ERROR_NAMESPACE, -EOPNOTSUPP, NULL, NULL);
		goto fail;
	}
	err = tracer_maps(t, error);
	if (err)
		goto fail;
	tracer_numbers(t);
	if (tracer_counts_here(t)) {
		err = histogram_open(&t->counts, config->stat_unit_ns, config->stat_by);
		if (config->wait)
			t->waits.rows = calloc(BREAKDOWN_OPEN, sizeof(*t->waits.rows));
		if (err || (config->wait && !t->waits.rows)) {
			err = error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
			goto fail;
		}
	}
	err = tracer_why(t, error);
	if (err)
		goto fail;
	/* Perf buffers must be there before the programs; the ring is mapped when the files are not. */
	err = t->perf_buffers ? tracer_stream(t, error) : 0;
	if (err)
		goto fail;
	if (t->discover.common.method == ATTACH_NONE) {
		err = error_set_no_uprobes(error, t->features.tracefs_error);
		goto fail;
	}
	err = tracer_lasting(t, error);
	if (err)
		goto fail;
	t->discover.pids = t->maps[MAP_PIDS];
	t->discover.servers = t->maps[MAP_SERVERS];
	t->discover.comms = t->maps[MAP_COMMS];
	t->discover.pid_ns_ino = t->pid_ns_ino;
	t->discover.listener = config->arg;
	t->discover.server = config->server;
	t->discover.error = config->error;
	t->discover.process = tracer_process;
	t->discover.process_arg = t;
	discover_await(&t->discover);
	err = tracer_tracepoints(t, error);
	if (!err)
		err = discover_find(&t->discover, error);
	if (!err && !t->perf_buffers)
		err = tracer_stream(t, error);
	if (err)
		goto fail;
	*tracer = t;
	return 0;
fail:
	tracer_close(t);
	return err;
}

void tracer_sandbox(const struct tracer *t, struct sandbox *sandbox)
{
	discover_sandbox(&t->discover, t->semaphores.on, sandbox);
}

const struct features *tracer_features(const struct tracer *tracer)
{
	return &tracer->features;
}

size_t tracer_targets(const struct tracer *tracer)
{
	return tracer->discover.ntargets;
}

int tracer_drain(struct tracer *t)
{
	int64_t bytes;

	t->wall_offset_ns = clock_ns(CLOCK_REALTIME) - clock_kernel_ns(t->ahead_ns);
	bytes = stream_drain(&t->stream, tracer_record, t);
	tracer_unwritten(t);
	/* It may be there in the place of one that was killed. */
	if (t->discover.started)
		sessions_prune(&t->sessions);
	t->discover.started = false;
	return (int)((bytes * 100 + t->ring_bytes - 1) / t->ring_bytes);
}

int tracer_sleep(struct tracer *t)
{
	if (discover_again(&t->discover))
		return -EAGAIN;
	return stream_sleep(&t->stream);
}

void tracer_detach(struct tracer *t)
{
	if (!t->detached) {
		t->detach_ns = clock_kernel_ns(t->ahead_ns);
		sessions_keep(&t->sessions, t->detach_ns);
	}
	discover_detach(&t->discover);
	semaphores_close(&t->semaphores);
	for (size_t i = 0; i < TRACEPOINTS; i++) {
		if (t->tracepoints[i] >= 0)
			close(t->tracepoints[i]);
		t->tracepoints[i] = -1;
	}
	if (!t->detached)
		sessions_settle(&t->sessions);
	t->detached = true;
}

static void tracer_show_running(struct tracer *t, const struct event_statement *event,
				bool has_text, uint64_t now)
{
	struct statement s;

	if (now - event->start_ns < t->config.threshold_ns)
		return;
	s = statement_of(t, event, has_text);
	s.running = true;
	s.duration_ns = now - event->start_ns;
	if (t->discover.targets[event->target_id].engine->identify)
		tracer_who(t, event, &s);
	if (tracer_filter(t, &s))
		tracer_show(t, &s);
}

static void tracer_show_now(void *arg, const struct event_statement *event, bool has_text)
{
	struct tracer *t = arg;

	tracer_show_running(t, event, has_text, clock_kernel_ns(t->ahead_ns));
}

void tracer_running(struct tracer *t)
{
	if (!t->detached)
		sessions_running(&t->sessions, t, tracer_show_now);
	for (struct sessions_kept *one = t->sessions.kept; one; one = one->next)
		tracer_show_running(t, &one->session.s, one->has_text, t->detach_ns);
}

ssize_t tracer_counts(const struct tracer *t, struct histogram_row **rows)
{
	return t->counts.rows ? histogram_copy(&t->counts, rows) :
				histogram_read(t->maps[MAP_HISTOGRAM], t->discover.targets,
					       t->discover.ntargets, rows);
}

static uint64_t tracer_counter(const struct tracer *t, uint32_t which)
{
	return sys_map_sum(t->maps[MAP_COUNTERS], which);
}

void tracer_summary(const struct tracer *t, struct summary *summary)
{
	uint64_t ring_full = tracer_counter(t, LOST_RING_FULL), running = 0;

	for (struct sessions_kept *one = t->sessions.kept; one; one = one->next)
		running++;
	*summary = (struct summary){
		.statements = tracer_counter(t, COUNT_STATEMENTS) - t->unseen,
		.ring_full = ring_full > t->stream.perf.lost ? ring_full : t->stream.perf.lost,
		.table_full = tracer_counter(t, LOST_TABLE_FULL) + t->waits.lost + t->counts.lost,
		.who_unknown = tracer_counter(t, LOST_WHO),
		.start_without_end = tracer_counter(t, LOST_START_WITHOUT_END) + running +
				     t->half_seen,
		.end_without_start = tracer_counter(t, LOST_END_WITHOUT_START),
		.text_unreadable = t->text_unreadable,
		.text_truncated = t->text_truncated,
	};
}

void tracer_close(struct tracer *t)
{
	if (!t)
		return;
	tracer_detach(t);
	stream_close(&t->stream);
	for (int i = 0; i < MAPS; i++)
		if (t->maps[i] >= 0)
			close(t->maps[i]);
	identity_clear(&t->identities);
	discover_close(&t->discover);
	sessions_close(&t->sessions);
	features_close(&t->features);
	free(t->why.rows);
	breakdown_waits_free(&t->waits);
	histogram_close(&t->counts);
	free(t->redacted);
	free(t);
}
