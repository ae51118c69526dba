// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/tracer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/embed.h"
#include "bpf/event.h"
#include "db/discover/arrivals.h"
#include "db/discover/discover.h"
#include "db/discover/target.h"
#include "db/discover/unused.h"
#include "db/engines.h"
#include "db/enrich.h"
#include "db/locks/locks.h"
#include "db/session/breakdown.h"
#include "db/session/kernel_offsets.h"
#include "db/session/seed.h"
#include "db/session/sessions.h"
#include "db/session/tracepoints.h"
#include "host/process.h"
#include "loader/hazard.h"
#include "loader/runtime.h"

#define RING_MIN	(2u << 20)	/* bytes */
#define SESSIONS_MAX	65536		/* threads at once */
#define SESSIONS_BYTES	(256u << 20)	/* of all sessions */
#define SESSIONS_LEAST	128		/* however long the texts are */
/* Limits for kernels that allocate all elements of a map in advance. */
#define SESSIONS_OLD	4096
#define SESSIONS_BYTES_OLD	(32u << 20)
#define ELEMENT_HEAD	64		/* bytes of a hash element before its value, at most */
#define PRUNE_NS	1000000000u	/* interval of removing what processes left behind .. */
#define PRUNE_REST	20		/* .. and how many times longer than this it pauses */
#define OBJECT_FILES_MAX	256	/* files of servers whose sessions are objects */
#define LAST_CLIENTS	1024		/* of sessions whose processes are killed at once */
#define TEXT_HEAD	(HEAD_WORDS * (uint32_t)sizeof(uint64_t))	/* bytes compared */
#define RECORD_HEAD	256		/* maximum bytes of a record before its text */
#define LEADERS_MAX	4096		/* statements with parallel workers at once */

struct tracer {
	struct tracer_config config;
	bool statements;		/* they, or transactions, are traced, and not only locks */
	struct runtime rt;
	int events[TRACEPOINTS];	/* tracefs event IDs; 0: raw tracepoint */
	struct discover discover;
	struct arrivals arrivals;
	struct sessions sessions;
	struct sink sink;
	struct enrich enrich;
	struct limit limit;
	struct locks *locks;		/* owned; NULL: lock waits are not traced */
	uint32_t lock_text_bytes;	/* of their texts, which are read from memory, not sent */
	int histogram;			/* map, borrowed */
	uint64_t prune_ns, full;	/* time of the next pruning; LOST_TABLE_FULL at the last */
	bool arriving;			/* programs that were executed are still to be checked */
	bool detached;
};

/*
 * Return the number of elements for a map of sessions of @bytes each. The kernel's allocator rounds
 * an element up to a power of two.
 */
static uint32_t tracer_sessions(struct tracer *t, uint32_t bytes)
{
	bool on_demand = feature_has(&t->rt.features, FEATURE_TRACING_ALLOC);
	uint32_t most = on_demand ? SESSIONS_MAX : SESSIONS_OLD, size = 64, fit;

	while (size < bytes + ELEMENT_HEAD)
		size *= 2;
	fit = (on_demand ? SESSIONS_BYTES : SESSIONS_BYTES_OLD) / size;
	return fit > most ? most : fit < SESSIONS_LEAST ? SESSIONS_LEAST : fit;
}

/*
 * Return the bytes of each of two texts of a statement: together they take the place of one, unless
 * that is short, as the heads of texts are compared.
 */
static uint32_t tracer_text_share(const struct tracer *t)
{
	uint32_t bytes = t->config.text_bytes, half = (bytes - OF_GAP) / 2;

	return half > TEXT_HEAD ? half : bytes < TEXT_HEAD ? bytes : TEXT_HEAD;
}

/* Return the bytes of a statement's texts. */
static uint32_t tracer_text_most(const struct tracer *t)
{
	uint32_t both = 2 * tracer_text_share(t) + OF_GAP, bytes = t->config.text_bytes;

	return bytes > both ? bytes : both;
}

/* Create the maps of sessions and statements. */
static int tracer_session_maps(struct tracer *t, struct error *error)
{
	uint32_t want = tracer_text_most(t) + 2, text = want > TEXT_HEAD ? want : TEXT_HEAD;
	uint32_t head = (uint32_t)((sizeof(struct session) + text + 7) & ~7u);
	uint32_t nested_at = t->config.transactions ?
		(head + (uint32_t)sizeof(struct event_transaction) + text + 7) & ~7u : head;
	uint32_t session = t->config.nested ?
		(nested_at + (uint32_t)sizeof(struct nested) + text + 7) & ~7u : nested_at;
	uint32_t sessions = tracer_sessions(t, session);
	/* BPF_F_MMAPABLE came with Linux 5.5 (fc9702273e2e), earlier than the ring buffer. */
	uint32_t slots = t->rt.perf_buffers ? 1 : sessions_slots(session);
	const struct map_def maps[] = {
		{ "sessions", BPF_MAP_TYPE_HASH, 8, session, sessions, RUNTIME_ALLOC },
		{ "slots", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct slot), slots,
		  t->rt.perf_buffers ? 0 : BPF_F_MMAPABLE },
		{ "slot_sessions", BPF_MAP_TYPE_ARRAY, 4, session, slots, 0 },
		{ "ignored", BPF_MAP_TYPE_HASH, 8, 1, sessions, RUNTIME_ALLOC },
		{ "blank", BPF_MAP_TYPE_ARRAY, 4, session, 1, 0 },
		{ "scratch", BPF_MAP_TYPE_ARRAY, 4, TEXT_SCAN_BYTES, 1, 0 },
		/* LRU: those of files that are gone are never removed. */
		{ "objects", BPF_MAP_TYPE_LRU_HASH, 4, sizeof(struct object_places),
		  OBJECT_FILES_MAX, 0 },
		{ "last_clients", BPF_MAP_TYPE_LRU_HASH, 8, sizeof(struct event_identity),
		  t->config.identify ? LAST_CLIENTS : 1, 0 },
		{ "threads_of_objects", BPF_MAP_TYPE_ARRAY, 4, 8, THREADS_OF_OBJECTS, 0 },
		{ "histogram", BPF_MAP_TYPE_HASH, sizeof(struct stat_key), 8,
		  t->config.sink.stat_unit_ns ? HISTOGRAM_MAX : 1, RUNTIME_ALLOC },
	};
	int err = runtime_maps(&t->rt, maps, sizeof(maps) / sizeof(maps[0]), error);

	if (err)
		return err;
	t->histogram = runtime_map(&t->rt, "histogram");
	t->sessions = (struct sessions){
		.map = runtime_map(&t->rt, "sessions"),
		.slot_map = runtime_map(&t->rt, "slot_sessions"),
		.ignored_map = runtime_map(&t->rt, "ignored"),
		.objects_map = runtime_map(&t->rt, "objects"),
		.bytes = session, .max = sessions, .text_bytes = t->config.text_bytes,
		.text_most = tracer_text_most(t),
		.transaction_at = t->config.transactions ? head : 0, .both = t->config.both,
		.nested_at = t->config.nested ? nested_at : 0,
		.no_memory = t->rt.pid_ns_ino, .owners = t->rt.owners, .discover = &t->discover,
	};
	if (!t->rt.perf_buffers)
		err = sessions_share(&t->sessions, runtime_map(&t->rt, "slots"), slots);
	return err ? error_set(error, ERROR_MAP, err, "slots", NULL) : 0;
}

/* Return the number of threads whose time can be broken down at once. */
static uint32_t tracer_threads(struct tracer *t)
{
	return tracer_sessions(t, sizeof(struct event_breakdown));
}

/* Create the maps of the time breakdown, which the programs refer to in any case. */
static int tracer_breakdown_maps(struct tracer *t, struct error *error)
{
	bool why = t->config.why;
	const struct map_def maps[] = {
		{ "threads", BPF_MAP_TYPE_HASH, 4, sizeof(struct event_breakdown),
		  why ? tracer_threads(t) : 1, RUNTIME_ALLOC },
		{ "no_thread", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct event_breakdown), 1, 0 },
		{ "active", BPF_MAP_TYPE_ARRAY, 4, 4, BREAKDOWN_SLOTS, 0 },
		/* LRU: entries of leaders that are not traced are never removed. */
		{ "workers", BPF_MAP_TYPE_LRU_HASH, 8, sizeof(struct breakdown_workers),
		  why ? LEADERS_MAX : 1, 0 },
		{ "parallel", BPF_MAP_TYPE_ARRAY, 4, 4, BREAKDOWN_LEADERS, 0 },
		{ "calls", BPF_MAP_TYPE_ARRAY, 4, 4, BREAKDOWN_CALLS, 0 },
		{ "io_threads", BPF_MAP_TYPE_ARRAY, 4, 8, why ? IO_THREADS : 1, 0 },
	};

	return runtime_maps(&t->rt, maps, sizeof(maps) / sizeof(maps[0]), error);
}

/* Return whether statements are counted in user space: the programs do not filter them. */
static bool tracer_counts_in_user(const struct tracer *t)
{
	const struct sink_config *sink = &t->config.sink;

	return sink->stat_unit_ns && (sink->records || filter_any(&sink->filter));
}

/* Set the constants of the programs, before they are loaded. */
static void tracer_constants(struct tracer *t)
{
	uint32_t text_size = t->config.text_bytes + 2;
	const struct tracer_config *c = &t->config;
	struct runtime *rt = &t->rt;

	runtime_constant(rt, "constant_want_statements", !c->transactions || c->both);
	runtime_constant(rt, "constant_transaction_ns", c->threshold_ns);
	runtime_constant(rt, "constant_transaction_at", t->sessions.transaction_at);
	runtime_constant(rt, "constant_nested_at", t->sessions.nested_at);
	runtime_constant(rt, "constant_text_bytes", c->text_bytes);
	runtime_constant(rt, "constant_text_size", text_size);
	runtime_constant(rt, "constant_text_share", tracer_text_share(t));
	runtime_constant(rt, "constant_text_most", tracer_text_most(t));
	runtime_constant(rt, "constant_head_bytes", text_size < TEXT_HEAD ? text_size : TEXT_HEAD);
	runtime_constant(rt, "constant_slot_shift", t->sessions.slot_shift);
	runtime_constant(rt, "constant_session_share", OWNER_SHARE(t->sessions.max));
	runtime_constant(rt, "constant_thread_share", OWNER_SHARE(tracer_threads(t)));
	runtime_constant(rt, "constant_want_sessions", c->identify);
	runtime_constant(rt, "constant_stat_unit_ns",
			 tracer_counts_in_user(t) ? 0 : c->sink.stat_unit_ns);
	runtime_constant(rt, "constant_stat_by", c->sink.stat_by);
	runtime_constant(rt, "constant_want_rows", c->rows);
	runtime_constant(rt, "constant_want_query_id", c->query_ids);
	/* Waits that are counted in user space are counted with the record of what they are in. */
	runtime_constant(rt, "constant_want_prepares",
			 c->prepares || (c->sink.stat_waits && tracer_counts_in_user(t)));
	runtime_constant(rt, "constant_want_breakdown", c->why);
	runtime_constant(rt, "constant_want_use", c->use);
	runtime_constant(rt, "constant_want_waits", c->sink.stat_waits);
	runtime_constant(rt, "constant_wait_part", c->wait_part);
	runtime_constant(rt, "constant_wait_call", c->wait_call);
	tracepoints_constants(rt);
}

/* Set the kernel's struct offsets as constants and fill the table of system calls. */
static int tracer_breakdown(struct tracer *t, struct error *error)
{
	struct object_value numbers[KERNEL_OFFSETS];
	int err = 0;

	if (t->config.why)
		err = kernel_offsets_read(&t->rt.features, numbers, t->events + TRACEPOINT_SWITCH);
	else
		kernel_offsets_none(numbers);
	if (err)
		return error_set(error, ERROR_TYPES, err, NULL, NULL);
	for (size_t i = 0; i < KERNEL_OFFSETS; i++)
		runtime_constant(&t->rt, numbers[i].name, numbers[i].number);
	if (!t->config.why)
		return 0;
	breakdown_calls(runtime_map(&t->rt, "calls"));
	return 0;
}

/* Handle a record. Its sizes and IDs are validated before use. */
static int tracer_record(void *arg, const void *data, size_t size)
{
	struct tracer *t = arg;
	const struct event_statement *statement = data;
	const struct event_transaction *transaction = data;
	const struct event_nested *nested = data;
	const struct event_session *session = data;
	const struct target *target;

	if (size < sizeof(*session))
		return 0;
	if (session->head.type >= EVENT_LOCK_WAIT && session->head.type <= EVENT_LOCK_ERROR) {
		if (t->locks)
			locks_record(t->locks, data, size);
		return 0;
	}
	target = target_by_id(t->discover.targets, t->discover.ntargets, session->target_id);
	if (!target && (session->head.type == EVENT_STATEMENT ||
			session->head.type == EVENT_NESTED ||
			session->head.type == EVENT_TRANSACTION)) {
		owners_lost(t->rt.owners, session->head.owner, LOST_START_WITHOUT_END, 1);
		return 0;
	}
	switch (session->head.type) {
	case EVENT_STATEMENT:
		if (size >= sizeof(*statement) &&
		    statement_length(statement) <= size - sizeof(*statement))
			enrich_statement(&t->enrich, statement, NULL);
		break;
	case EVENT_NESTED:
		if (size >= sizeof(*nested) &&
		    nested->s.target_id == session->target_id &&
		    nested->s.text_len <= size - sizeof(*nested))
			enrich_statement(&t->enrich, &nested->s, nested);
		break;
	case EVENT_TRANSACTION:
		if (size >= sizeof(*transaction) &&
		    transaction->s.target_id == session->target_id &&
		    transaction->s.text_len <= size - sizeof(*transaction))
			enrich_transaction(&t->enrich, transaction);
		break;
	case EVENT_BREAKDOWN:
		if (size >= sizeof(struct event_breakdown))
			breakdown_put(&t->enrich.breakdowns, data, target ? target->has : 0);
		break;
	case EVENT_WAIT:
		if (size >= sizeof(struct event_wait))
			breakdown_wait_put(&t->enrich.waits, data);
		break;
	case EVENT_SESSION:
		if (target && size >= sizeof(struct event_identity))
			enrich_identity(&t->enrich, data);
		break;
	case EVENT_APPLICATION:
		if (target && size >= sizeof(struct event_application))
			enrich_application(&t->enrich, data);
		break;
	case EVENT_EXIT:
		identity_forget(&t->enrich.identities, session->tid);
		break;
	case EVENT_EXEC:
		if (size >= sizeof(struct event_exec))
			arrivals_put(&t->arrivals, data);
		t->enrich.servers.arriving = true;
		break;
	}
	return 0;
}

/* Note the process if it is a server. */
static void tracer_restarted(void *arg, const struct target *target, const struct process *process)
{
	struct tracer *t = arg;

	limit_add(&t->limit, target, process->uid);
	if (t->statements)
		sessions_places(&t->sessions, target);
	if (t->statements && t->config.identify &&
	    process_is_main(process, engine_is_executable))
		servers_started(&t->enrich.servers, target->id, process);
}

/* Add a session for a process that ran a statement before the probes were attached. */
static void tracer_seed(struct tracer *t, const struct target *target,
			const struct process *process)
{
	/* Requires the kernel's thread IDs; a histogram requires data that only programs read. */
	if (t->rt.pid_ns_ino || t->config.sink.stat_unit_ns || !target->places.text)
		return;
	/* Read the identity now: the process may exit after this statement. */
	if (seed_session(&t->sessions, &t->rt, target, process) && t->config.identify)
		enrich_process(&t->enrich, target, process);
}

/* Add what a process does since before the probes were attached. */
static void tracer_process(void *arg, const struct target *target, const struct process *process)
{
	struct tracer *t = arg;

	tracer_restarted(t, target, process);
	if (t->statements)
		tracer_seed(t, target, process);
	if (t->locks)
		locks_process(t->locks, target, process);
}

/* Open the runtime; perf buffers limit the length of texts. */
static int tracer_runtime(struct tracer *t, struct error *error)
{
	const struct tracer_config *c = &t->config;
	const struct runtime_config config = {
		.objects = {
			{ bpf_statement, bpf_statement_end },
			{ c->sink.wait ? bpf_locks : NULL, bpf_locks_end },
		},
		.denied = c->denied, .measure = c->measure, .is_program = engine_is_executable,
		.arg = c->arg, .stopped = c->stopped, .error = c->error,
	};
	uint32_t head = RECORD_HEAD;
	int err = runtime_open(&t->rt, &config, error);

	if (err)
		return err;
	if (c->nested)
		head += sizeof(struct event_nested);
	if (t->config.text_bytes > t->rt.record_limit - head)
		t->config.text_bytes = t->rt.record_limit - head;
	return 0;
}

static int tracer_stream(struct tracer *t, struct error *error)
{
	size_t record_max = RECORD_HEAD + tracer_text_most(t) +
			    (t->config.transactions ? sizeof(struct event_transaction) : 0) +
			    (t->config.nested ? sizeof(struct event_nested) : 0);

	if (record_max < sizeof(struct event_breakdown))
		record_max = sizeof(struct event_breakdown);
	if (!t->statements)
		record_max = 0;
	if (t->locks && record_max < locks_record_max(t->locks))
		record_max = locks_record_max(t->locks);
	return runtime_stream(&t->rt, RING_MIN, record_max, error);
}

/* Open ->enrich, which turns records into statements. */
static int tracer_enrich(struct tracer *t, struct error *error)
{
	const struct tracer_config *c = &t->config;
	const struct enrich_config config = {
		.runtime = &t->rt, .discover = &t->discover, .sessions = &t->sessions,
		.identify = c->identify, .breakdown = c->why, .events = c->events, .sink = &t->sink,
		.transactions = c->transactions && !c->both,
	};

	return enrich_open(&t->enrich, &config, error);
}

static int tracer_sink(struct tracer *t, struct error *error)
{
	struct sink_config sink = t->config.sink;

	sink.owners = t->rt.owners;
	if (!tracer_counts_in_user(t)) {
		sink.stat_unit_ns = 0;
		sink.stat_waits = false;
	}
	return sink_open(&t->sink, &sink) ?
	       error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL) : 0;
}

static int tracer_locks(struct tracer *t, struct error *error)
{
	const struct tracer_config *c = &t->config;
	const struct locks_config config = {
		.runtime = &t->rt, .discover = &t->discover, .sink = &t->sink,
		.threshold_ns = c->threshold_ns, .text_bytes = t->lock_text_bytes,
		.sum_lwlocks = c->sum_lwlocks && !filter_any(&c->sink.filter),
		.identify = c->identify,
	};

	if (!c->sink.wait)
		return 0;
	t->discover.common.locks = &t->rt.objects[1];
	return locks_open(&t->locks, &config, error);
}

/* Create what the programs of statements are linked with. */
static int tracer_statements(struct tracer *t, struct error *error)
{
	int err = tracer_session_maps(t, error);

	if (!err)
		err = tracer_breakdown_maps(t, error);
	if (!err)
		err = limit_maps(&t->rt, t->config.limit.limit, error);
	if (!err)
		err = tracer_enrich(t, error);
	if (!err)
		err = tracer_breakdown(t, error);
	if (!err)
		tracer_constants(t);
	return err;
}

/* Create everything that programs are linked with. */
static int tracer_prepare(struct tracer *t, struct error *error)
{
	const struct tracer_config *c = &t->config;
	int err = tracer_runtime(t, error);

	if (!err)
		err = tracer_sink(t, error);
	if (!err && t->statements)
		err = tracer_statements(t, error);
	if (!err)
		err = tracer_locks(t, error);
	if (!err)
		err = discover_open(&t->discover, &t->rt, error);
	if (err)
		return err;
	runtime_constant(&t->rt, "constant_threshold_ns",
			 c->transactions && !c->both ? UINT64_MAX : c->threshold_ns);
	runtime_constant(&t->rt, "constant_group_share",
			 OWNER_SHARE(t->statements ? HISTOGRAM_MAX : LWLOCK_SUMS_MAX));
	err = tracer_stream(t, error);
	/* For servers that start later: the sandbox forbids to find that out. */
	if (!err && t->locks && !c->servers.npids && !c->servers.npaths)
		hazard_safe(&t->rt.features, FEATURE_SAFE_RETURNS);
	return err ? err : runtime_ready(&t->rt, error);
}

/* Begin the overhead limit, if there is one. */
static int tracer_limit(struct tracer *t, struct error *error)
{
	const struct tracer_config *c = &t->config;
	struct limit_config config = {
		.ladder = c->limit, .runtime = &t->rt, .discover = &t->discover,
		.sessions = &t->sessions, .arg = c->arg, .event = c->limited,
	};

	config.ladder.why = c->why;
	t->discover.common.limited = c->limit.limit;
	t->discover.common.attaching = c->limit.limit ? limit_attaching : NULL;
	t->discover.common.attaching_arg = &t->limit;
	return limit_open(&t->limit, &config, error);
}

static int tracer_records(struct tracer *t)
{
	if (t->locks)
		locks_set_deadline(t->locks);
	return runtime_drain(&t->rt, tracer_record, t);
}

static void tracer_arrivals_drain(void *arg)
{
	tracer_records(arg);
}

/* Attach to the tracepoints that all sessions need. */
static int tracer_tracepoints(struct tracer *t, struct error *error)
{
	static const struct runtime_tracepoint execs = {
		.program = "process_exec", .name = "sched_process_exec",
	};
	const struct tracer_config *c = &t->config;
	int err = t->statements ? tracepoints_attach(&t->rt, t->events, c->why, c->use, error) :
				  runtime_tracepoint(&t->rt, &execs, error);

	return !err && t->locks ? locks_attach(t->locks, error) : err;
}

int tracer_open(struct tracer **tracer, const struct tracer_config *config, struct error *error)
{
	struct tracer *t = calloc(1, sizeof(*t));
	int err;

	*tracer = NULL;
	if (!t)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	t->config = *config;
	t->lock_text_bytes = config->text_bytes;
	t->statements = config->sink.statement || config->sink.stat_unit_ns;
	err = discover_init(&t->discover, &t->config.servers, error);
	if (!err)
		err = tracer_prepare(t, error);
	if (err)
		goto fail;
	t->discover.common.no_statements = !t->statements;
	t->discover.common.asked = (config->why ? ENGINE_WHY : 0) |
				   (config->phases ? ENGINE_PHASES : 0) |
				   (config->use ? ENGINE_USE : 0) |
				   (config->identify ? ENGINE_IDENTITY : 0) |
				   (config->transactions ? ENGINE_TRANSACTIONS : 0) |
				   (config->nested ? ENGINE_NESTED : 0);
	t->discover.common.site = config->site;
	t->discover.common.site_arg = config->arg;
	t->discover.listener = config->arg;
	t->discover.server = config->server;
	t->discover.error = config->error;
	t->discover.process = tracer_process;
	t->discover.restarted = tracer_restarted;
	t->discover.process_arg = t;
	if (t->statements)
		err = tracer_limit(t, error);
	if (!err)
		err = tracer_tracepoints(t, error);
	/* Of probes that the user names, none is of a lock wait. */
	if (!err && (t->statements || !config->servers.start))
		err = discover_find(&t->discover, error);
	/* Map the buffer last, after the servers' files have been unmapped. */
	if (!err)
		err = runtime_listen(&t->rt, error);
	if (err)
		goto fail;
	arrivals_open(&t->arrivals, &t->discover, tracer_arrivals_drain, t);
	*tracer = t;
	return 0;
fail:
	tracer_close(t);
	return err;
}

unsigned int tracer_needs(const struct tracer *t)
{
	unsigned int needs = discover_needs(&t->discover) | t->config.needs;

	if (t->config.limit.limit)
		needs |= SANDBOX_ATTACH | (t->config.why ? SANDBOX_TRACEPOINTS : 0) |
			 (t->events[TRACEPOINT_SWITCH] ? SANDBOX_EVENTS : 0);
	return runtime_needs(&t->rt, needs);
}

const struct features *tracer_features(const struct tracer *tracer)
{
	return &tracer->rt.features;
}

size_t tracer_targets(const struct tracer *tracer)
{
	return discover_attached(&tracer->discover);
}

/*
 * Remove the sessions of processes that are gone if the table was full, or if a server has started:
 * it often replaces one that was killed and left its sessions behind. As processes can cause both,
 * this takes a small part of the time only.
 */
static void tracer_prune(struct tracer *t)
{
	uint64_t now_ns = runtime_now(&t->rt), full;

	if (now_ns < t->prune_ns)
		return;
	full = runtime_counter(&t->rt, LOST_TABLE_FULL);
	if (t->discover.started || full != t->full)
		sessions_prune(&t->sessions);
	t->discover.started = false;
	t->full = full;
	t->prune_ns = runtime_now(&t->rt);
	t->prune_ns += PRUNE_NS + PRUNE_REST * (t->prune_ns - now_ns);
}

int tracer_drain(struct tracer *t)
{
	int filled = tracer_records(t);

	if (!t->detached) {
		t->discover.ntargets = unused_remove(&t->discover.unused, t->discover.targets,
						     t->discover.ntargets);
		t->enrich.servers.arriving = t->arriving = arrivals_check(&t->arrivals);
		limit_tick(&t->limit);
	}
	if (t->statements)
		tracer_prune(t);
	if (t->locks) {
		locks_set_deadline(t->locks);
		locks_drain(t->locks);
	}
	return filled;
}

int tracer_interval_ms(const struct tracer *t)
{
	int limit_ms = limit_interval_ms(&t->limit);
	int locks_ms = t->locks ? locks_sleep_ms(t->locks) : 0;

	return limit_ms && (!locks_ms || limit_ms < locks_ms) ? limit_ms : locks_ms;
}

bool tracer_resolves(const struct tracer *t)
{
	return t->locks && locks_sleep_ms(t->locks);
}

int tracer_sleep(struct tracer *t)
{
	if (discover_again(&t->discover) || t->arriving || (t->locks && locks_again(t->locks)))
		return -EAGAIN;
	return runtime_sleep(&t->rt);
}

void tracer_detach(struct tracer *t)
{
	bool first = t->statements && !t->detached;

	if (first) {
		t->enrich.detach_ns = runtime_now(&t->rt);
		runtime_detaching(&t->rt, t->enrich.detach_ns);
		sessions_keep(&t->sessions, t->enrich.detach_ns);
	}
	discover_detach(&t->discover);
	runtime_detach(&t->rt);
	if (first)
		sessions_settle(&t->sessions);
	t->detached = true;
}

/*
 * Report what @session has open at @now_ns, if it is long enough: the statement, which is running
 * or was suspended, and the transaction.
 */
static void tracer_report_open(struct tracer *t, const struct session *session, unsigned int state,
			       uint64_t now_ns)
{
	const struct event_transaction *transaction = sessions_transaction(&t->sessions, session);
	const struct event_statement *event = &session->s;
	bool has_text = state & SESSION_HAS_TEXT;
	bool suspended = session_phase(event) == SESSION_SUSPENDED;
	uint64_t until_ns = suspended ? event->completed_ns : now_ns;

	if (state & SESSION_HAS_STATEMENT &&
	    until_ns - event->start_ns - event->duration_ns >= t->config.threshold_ns)
		enrich_running(&t->enrich, session, has_text, until_ns);
	if (state & SESSION_HAS_TRANSACTION &&
	    now_ns >= transaction->s.start_ns + t->config.threshold_ns &&
	    transaction->s.text_len <= t->config.text_bytes && process_exists(session->s.pid))
		enrich_open_transaction(&t->enrich, transaction, session, has_text, now_ns);
}

static void tracer_running_now(void *arg, const struct session *session, unsigned int state)
{
	struct tracer *t = arg;

	/* The client of a suspended portal pauses. */
	if (session_phase(&session->s) == SESSION_SUSPENDED)
		state &= ~SESSION_HAS_STATEMENT;
	tracer_report_open(t, session, state, runtime_now(&t->rt));
}

void tracer_running(struct tracer *t)
{
	if (t->statements && !t->detached)
		sessions_running(&t->sessions, t, tracer_running_now);
	for (struct sessions_kept *one = t->sessions.kept; one; one = one->next)
		tracer_report_open(t, &one->session, one->state, t->enrich.detach_ns);
	if (t->locks)
		locks_running(t->locks, t->detached);
}

ssize_t tracer_histogram(const struct tracer *t, struct histogram_row **rows)
{
	return t->sink.histogram.rows ? histogram_copy(&t->sink.histogram, rows) :
				histogram_read(t->histogram, discover_engines(&t->discover), rows);
}

int tracer_run_ns(const struct tracer *t, uint64_t *ns)
{
	return runtime_run_ns(&t->rt, ns);
}

ssize_t tracer_lwlocks(struct tracer *t, struct lwlock_count **sums)
{
	return locks_lwlocks(t->locks, sums);
}

/* Without statements, what is not counted for one of them is a loss of waits. */
static void tracer_summary_waits(const struct tracer *t, struct summary *summary)
{
	summary->statements = runtime_counter(&t->rt, LOCK_COUNTERS + COUNT_STATEMENTS) -
			      locks_slices(t->locks);
	loss_count(summary, &t->rt, LOCK_COUNTERS);
	if (!t->statements)
		loss_read(summary, &t->rt);
}

/* Name the files that losses are of, also those that are not traced any more, or again. */
static void tracer_summary_files(const struct tracer *t, struct summary *summary)
{
	const struct discover *d = &t->discover;

	for (size_t i = 0; i < summary->servers.n; i++) {
		uint32_t id = summary->servers.row[i].target_id;
		const struct target *target = target_by_id(d->targets, d->ntargets, id);
		const struct server *removed = target ? NULL : unused_by_id(&d->unused, id);

		if (target)
			describe_server(&summary->files[i], target->engine, target->version,
					target->path);
		else if (removed)
			summary->files[i] = *removed;
	}
	loss_merge(summary);
}

void tracer_summary(const struct tracer *t, struct summary *summary, bool waits)
{
	const struct runtime *rt = &t->rt;
	const struct enrich *e = &t->enrich;

	*summary = (struct summary){ .statements = 0 };
	if (waits) {
		tracer_summary_waits(t, summary);
		tracer_summary_files(t, summary);
		return;
	}
	summary->statements = runtime_counter(rt, COUNT_STATEMENTS) - e->unseen;
	memcpy(summary->lost, t->sink.lost, sizeof(summary->lost));
	summary->lost[LOSS_TEXT_DROPPED] = e->text_dropped;
	summary->lost[LOSS_WHY_DROPPED] = e->why_dropped;
	summary->untraced_ns = limit_untraced_ns(&t->limit);
	summary->boundary = runtime_counter(rt, COUNT_BOUNDARY) + e->half_seen +
			    sessions_number_kept(&t->sessions);
	loss_read(summary, rt);
	tracer_summary_files(t, summary);
}

void tracer_close(struct tracer *t)
{
	if (!t)
		return;
	tracer_detach(t);
	limit_close(&t->limit);
	enrich_close(&t->enrich);
	locks_close(t->locks);
	sink_close(&t->sink);
	discover_close(&t->discover);
	sessions_close(&t->sessions);
	runtime_close(&t->rt);
	free(t);
}
