// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/embed.h"
#include "host/elf_map.h"
#include "host/clock.h"
#include "db/discover.h"
#include "db/engines.h"
#include "db/mysql/names.h"
#include "db/mysql/probes.h"
#include "db/postgres/catalog.h"
#include "db/postgres/names.h"
#include "db/postgres/probes.h"
#include "loader/runtime.h"

#define RING_MIN	(1u << 20)	/* bytes */
#define WAITS_MAX	16384		/* at once */
#define SUMS_MAX	16384
#define LOOKS_MAX	20		/* for a holder, one in each drain */
#define CYCLE_STEPS	4096		/* from holder to holder, in search of a cycle */
#define LOOKING_NS	100000000u	/* at once; other records and signals wait as long */

#define LOCKS_ENGINES	4

/* A wait that has begun. */
struct waiting {
	struct waiting *next;
	struct event_lock event;
	struct lock_info known;
	bool looked;			/* ->known is filled */
	unsigned int tries;		/* so often it is still to be looked for a holder */
};

/* What is known of a server's file besides its probes. */
struct server {
	struct postgres_locks places;
	struct mysql_locks sessions;	/* instead, of MySQL and MariaDB */
	bool found, postgres;
};

struct locks {
	struct locks_config config;
	struct runtime rt;
	struct engine engines[LOCKS_ENGINES];
	const struct engine *table[LOCKS_ENGINES + 1];
	int waits, sums;		/* maps, borrowed */
	struct discover discover;
	struct server *servers;		/* by target */
	size_t nservers;
	struct waiting *waiting;
	bool looking;			/* for a holder: drain again soon */
	uint64_t look_until_ns;
};

/* --- where the probes go */

#define TAG_SPECS                                                          \
	{ .name = "arg_field1", .spec = "4@0(%arg0)", .fallback = -1 },    \
	{ .name = "arg_field2", .spec = "4@4(%arg0)", .fallback = -1 },    \
	{ .name = "arg_field3", .spec = "4@8(%arg0)", .fallback = -1 },    \
	{ .name = "arg_field4", .spec = "2@12(%arg0)", .fallback = -1 },   \
	{ .name = "arg_kind", .spec = "1@14(%arg0)", .fallback = -1 },     \
	{ .name = "arg_mode", .spec = "4@16(%arg0)", .fallback = -1 },     \
	{ .name = "arg_lock", .spec = "8@%arg0", .fallback = -1 }

#define LWLOCK_ARGS                                                      \
	ENGINE_ARGS({ .name = "arg_name", .probe_arg = 1 },             \
		    { .name = "arg_mode", .probe_arg = 2, .fallback = -1 })

/* Where struct PGPROC has its process's number, by which the program checks it, and .lwWaitMode. */
#define LWLOCK_PROC(symbol, pid, mode)                                      \
	{ .name = "arg_proc_pid", .only_with = symbol,                     \
	  .spec = "4@" #pid "(MyProc(%ip))" },                             \
	{ .name = "arg_mode", .only_with = symbol,                         \
	  .spec = "1@" #mode "(MyProc(%ip))", .fallback = LWLOCK_MODES }

/*
 * PostgreSQL. ProcSleep(LOCALLOCK *, …) waits, GrantAwaitedLock() is called when it got the
 * lock, LockErrorCleanup() first thing when it is to be given up, by an error or a cancel; then no
 * lock__wait__done comes. A deadlock makes its victim leave the queue by RemoveFromWaitQueue(), also
 * one that is seen without the search that deadlock__found ends. LWLocks have no function of their
 * own that waits: they sleep in PGSemaphoreLock(), with a few others.
 */
static const struct engine_probe postgres_probes[] = {
	{
		.step = "row", .program = "lock_row", .function = "XactLockTableWait",
		.optional = true,
		.args = ENGINE_ARGS(
			{ .name = "arg_xid", .spec = "4@%arg0" },
			{ .name = "arg_relation", .spec = "8@%arg1" },
			{ .name = "arg_block_high", .spec = "2@0(%arg2)" },
			{ .name = "arg_block_low", .spec = "2@2(%arg2)" },
			{ .name = "arg_offset", .spec = "2@4(%arg2)" }),
	},
	{
		.step = "done", .program = "lock_done",
		.provider = "postgresql", .probe = "lock__wait__done",
	},
	{
		/* From 18 on: behind ProcSleep(), also when that failed. */
		.step = "done", .program = "lock_done",
		.function = "set_ps_display_remove_suffix", .only_with = "JoinWaitQueue",
	},
	{ .step = "done", .program = "lock_done", .function = "GrantAwaitedLock" },
	{ .step = "failed", .program = "lock_failed", .function = "LockErrorCleanup" },
	{
		.step = "deadlock", .program = "lock_deadlock",
		.provider = "postgresql", .probe = "deadlock__found", .optional = true,
	},
	{ .step = "removed", .program = "lock_deadlock", .function = "RemoveFromWaitQueue" },
	{
		.step = "queue", .program = "lock_queue", .function = "ProcSleep",
		.args = ENGINE_ARGS({ .name = "arg_lock", .spec = "8@%arg0", .fallback = -1 }),
	},
	{
		.step = "start", .program = "lock_start",
		.provider = "postgresql", .probe = "lock__wait__start",
		.args = ENGINE_ARGS(
			{ .name = "arg_field1", .probe_arg = 1, .fallback = -1 },
			{ .name = "arg_field2", .probe_arg = 2, .fallback = -1 },
			{ .name = "arg_field3", .probe_arg = 3, .fallback = -1 },
			{ .name = "arg_field4", .probe_arg = 4, .fallback = -1 },
			{ .name = "arg_kind", .probe_arg = 5, .fallback = -1 },
			{ .name = "arg_mode", .probe_arg = 6, .fallback = -1 },
			{ .name = "arg_lock" }),
	},
	{
		.step = "start", .program = "lock_start", .function = "ProcSleep",
		.args = ENGINE_ARGS(TAG_SPECS),
	},
	{
		.step = "lwlock done", .program = "lwlock_done",
		.provider = "postgresql", .probe = "lwlock__wait__done", .optional = true,
		.args = LWLOCK_ARGS, .has = TARGET_HAS_LWLOCKS,
	},
	{
		.step = "lwlock done", .program = "lwlock_done",
		.function = "PGSemaphoreLock", .on_return = true, .optional = true,
		.args = ENGINE_ARGS({ .name = "arg_name" }, { .name = "arg_mode" }),
	},
	{
		.step = "lwlock start", .program = "lwlock_start",
		.provider = "postgresql", .probe = "lwlock__wait__start", .optional = true,
	},
	{
		.step = "lwlock start", .program = "semaphore_start",
		.function = "PGSemaphoreLock", .optional = true, .has = TARGET_HAS_LWLOCKS,
		.args = ENGINE_ARGS(
			{ .name = "arg_named", .spec = "8@NamedLWLockTrancheArray(%ip)" },
			{ .name = "arg_nnamed", .spec = "4@NamedLWLockTrancheRequests(%ip)" },
			LWLOCK_PROC("LWLockCallbacks", 340, 361),	/* 19 */
			LWLOCK_PROC("postmaster_child_launch", 60, 91),	/* 17 */
			LWLOCK_PROC("my_wait_event_info", 64, 95),	/* 14 */
			LWLOCK_PROC("GetBackgroundWorkerTypeByPid", 52, 79),	/* 11 */
			LWLOCK_PROC(NULL, 52, 75)),
	},
};

/*
 * MySQL and MariaDB tell their scheduler of each wait, whoever that is. MDL_context::find_deadlock()
 * is called before each wait for a metadata lock.
 */
#define SESSION_WAIT(symbol)                                                                \
	{                                                                                   \
		.step = "start", .program = "session_wait", .function = symbol,             \
		.args = ENGINE_ARGS({ .name = "arg_session", .spec = "8@%arg0", .fallback = -1 }, \
				    { .name = "arg_kind", .spec = "4@%arg1", .fallback = -1 }), \
	}

static const struct engine_probe mysql_probes[] = {
	{ .step = "done", .program = "lock_done", .function = "thd_wait_end" },
	{ .step = "done", .program = "lock_done", .function = "_Z12thd_wait_endP3THD" },
	{
		.step = "metadata", .program = "session_metadata",
		.function = "_ZN11MDL_context13find_deadlockEv", .optional = true,
		.args = ENGINE_ARGS({ .name = "arg_context", .spec = "8@%arg0", .fallback = -1 }),
	},
	SESSION_WAIT("thd_wait_begin"),
	SESSION_WAIT("_Z14thd_wait_beginP3THDi"),
};

static const struct engine_probe_set postgres_set = {
	postgres_probes, sizeof(postgres_probes) / sizeof(postgres_probes[0]), NULL,
};

static const struct engine_probe_set mysql_set = {
	mysql_probes, sizeof(mysql_probes) / sizeof(mysql_probes[0]), mysql_query_accessors,
};

/* The engines of the table, with probes for locks. */
static void locks_engines(struct locks *l)
{
	size_t n = 0;

	for (size_t i = 0; engine_table[i] && n < LOCKS_ENGINES; i++) {
		struct engine *engine = &l->engines[n];
		const struct engine_probe_set *set = engine_table[i] == &engine_postgres ?
			&postgres_set : engine_table[i] == &engine_mysql ? &mysql_set : NULL;

		if (!set)
			continue;
		*engine = *engine_table[i];
		engine->probe_sets = set;
		engine->nprobe_sets = 1;
		l->table[n++] = engine;
	}
	l->discover.table = l->table;
}

/* --- what is looked up */

/* What is known of the file of target @id; NULL: no memory. */
static struct server *locks_server(struct locks *l, uint32_t id)
{
	struct server *more;

	if (id < l->nservers)
		return &l->servers[id];
	more = realloc(l->servers, l->discover.ntargets * sizeof(*more));
	if (!more)
		return NULL;
	memset(more + l->nservers, 0, (l->discover.ntargets - l->nservers) * sizeof(*more));
	l->servers = more;
	l->nservers = l->discover.ntargets;
	return &more[id];
}

/* … and what its process @pid tells of it. */
static struct server *locks_find(struct locks *l, uint32_t id, uint32_t pid)
{
	struct server *server = locks_server(l, id);
	struct process process;
	struct elf_map binary;
	int fd;

	if (!server || server->found || process_read(pid, engine_is_executable, &process) ||
	    !process_file_same(&process.file, &l->discover.targets[id].file))
		return server;
	fd = process_open(&process);
	if (fd < 0)
		return server;
	if (!elf_map_open(&binary, fd)) {
		server->postgres = l->discover.targets[id].engine->activity_variables;
		if (server->postgres) {
			postgres_locks_find(&binary.elf, &server->places);
			postgres_locks_names(&server->places, pid,
					     l->discover.targets[id].version);
		} else {
			mysql_locks_find(&binary.elf, &server->sessions);
		}
		elf_map_close(&binary);
		server->found = true;
	}
	close(fd);
	return server;
}

/* The name of an LWLock, where a program has not read it. */
static void lwlock_name(const struct server *server, uint32_t tranche, char name[LOCK_NAME])
{
	if (*name || !tranche)
		return;
	if (server && tranche < POSTGRES_TRANCHES && *server->places.tranche[tranche])
		snprintf(name, LOCK_NAME, "%s", server->places.tranche[tranche]);
	else
		snprintf(name, LOCK_NAME, "tranche %u", tranche);
}

/* The name of the relation that a lock is about, which may be @before. */
static void locks_name(const struct server *server, const struct event_lock *event,
		       char name[LOCK_RELATION], const char *before)
{
	if (before) {
		memcpy(name, before, LOCK_RELATION);
		return;
	}
	if (event->kind < POSTGRES_LOCK_KINDS &&
	    postgres_lock_fields(server->places.kind[event->kind]) & POSTGRES_TAG_RELATION)
		postgres_catalog_name(event->pid, event->field[0], event->field[1], name);
}

static void locks_may_look(struct locks *l)
{
	l->look_until_ns = clock_ns(CLOCK_MONOTONIC) + LOOKING_NS;
}

/*
 * Looks up who holds what is waited for: 0, or -errno with what was known before. -EAGAIN: there is no
 * time for it now.
 */
static int waiting_look(struct locks *l, struct waiting *w)
{
	/* The first time its end may be behind it in the buffer. */
	bool again = w->tries < LOOKS_MAX;
	struct lock_info known;
	struct server *server;
	int err;

	if (clock_ns(CLOCK_MONOTONIC) > l->look_until_ns)
		return -EAGAIN;
	server = locks_find(l, w->event.target_id, w->event.pid);
	w->tries -= w->tries > 0;
	if (!server || !server->found)
		return -ENOENT;
	if (server->postgres)
		err = postgres_locks_read(&server->places, w->event.pid, &w->event,
					  l->config.text_bytes, &known);
	else
		err = mysql_locks_read(&server->sessions,
				       &l->discover.targets[w->event.target_id].places,
				       &w->event, l->config.text_bytes, again, &known);
	if (l->config.redact)
		lock_info_redact(&known,
				 l->discover.targets[w->event.target_id].engine->dialect);
	/* A holder that is gone is the one that was waited for. */
	if (w->looked && (err || (!known.nholders && w->known.nholders))) {
		lock_info_clear(&known);
		return err;
	}
	if (server->postgres && !*known.name)
		locks_name(server, &w->event, known.name, *w->known.name ? w->known.name : NULL);
	lock_info_clear(&w->known);
	w->known = known;
	w->looked = true;
	/* Where it is in a PGPROC is to be known when there is a queue. */
	if (!err && known.nholders && (!server->postgres || server->places.wait_at >= 0))
		w->tries = 0;
	return err;
}

/* The place in the list of the wait of thread @tid, or of the list's end. */
static struct waiting **waiting_of(struct locks *l, uint32_t tid)
{
	struct waiting **place = &l->waiting;

	while (*place && (*place)->event.tid != tid)
		place = &(*place)->next;
	return place;
}

static void waiting_drop(struct waiting **place)
{
	struct waiting *w = *place;

	*place = w->next;
	lock_info_clear(&w->known);
	free(w);
}

static struct waiting *waiting_add(struct locks *l, const struct event_lock *event)
{
	struct waiting **place = waiting_of(l, event->tid), *w;

	if (*place)
		waiting_drop(place);
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->event = *event;
	w->next = l->waiting;
	l->waiting = w;
	return w;
}

/*
 * Follows who waits for whom from @w on, back to where it began, in at most *@steps: 0 or the length
 * of the cycle.
 */
static unsigned int waiting_cycle(struct locks *l, const struct waiting *w, uint32_t *cycle,
				  unsigned int n, unsigned int *steps)
{
	unsigned int found = 0;

	cycle[n++] = w->event.pid;
	for (unsigned int i = 0; !found && i < w->known.nholders && *steps; i++) {
		uint32_t pid = w->known.holders[i].pid;
		const struct waiting *next = *waiting_of(l, pid);

		--*steps;
		if (pid == cycle[0] && pid)
			return n;
		for (unsigned int j = 1; next && j < n; j++)
			if (cycle[j] == pid)
				next = NULL;
		if (next && n < LOCKS_CYCLE)
			found = waiting_cycle(l, next, cycle, n, steps);
	}
	return found;
}

static void locks_tell(struct locks *l, const struct event_lock *event, struct waiting *w,
		       bool running)
{
	const struct server *server = locks_server(l, event->target_id);
	unsigned int steps = CYCLE_STEPS;
	struct lock_wait wait = {
		.target = &l->discover.targets[event->target_id], .event = event,
		.start_ns = runtime_here_ns(&l->rt, event->start_ns),
		.wall_ns = runtime_wall_ns(&l->rt, event->start_ns),
		.duration_ns = event->duration_ns, .running = running,
		.joined = event->flags & LOCK_JOINED, .kind = "",
		.known = w && w->looked ? &w->known : NULL,
	};

	if (running)
		wait.duration_ns = runtime_now(&l->rt) - event->start_ns;
	if (event->flags & LOCK_LWLOCK)
		wait.kind = "lwlock";
	else if (event->flags & LOCK_SESSION)
		wait.kind = mysql_lock_kind(event);
	else if (server && event->kind < POSTGRES_LOCK_KINDS)
		wait.kind = server->places.kind[event->kind];
	if (w && event->flags & LOCK_DEADLOCK)
		wait.ncycle = waiting_cycle(l, w, wait.cycle, 0, &steps);
	if (wait.duration_ns >= l->config.threshold_ns)
		l->config.wait(l->config.arg, &wait);
}

static void locks_ended(struct locks *l, const struct event_lock *event)
{
	struct waiting **place = waiting_of(l, event->tid), *w = *place;
	struct event_lock light = *event;

	if (event->flags & LOCK_LWLOCK && !*event->name)
		lwlock_name(locks_find(l, event->target_id, event->pid), event->field[0], light.name);
	if (event->flags & LOCK_LWLOCK || (w && w->event.start_ns != event->start_ns))
		w = NULL;
	locks_tell(l, &light, w, false);
	if (w)
		waiting_drop(waiting_of(l, event->tid));
}

/* One record. Its sizes and numbers are checked: it comes from the kernel, but by way of memory. */
static int locks_record(void *arg, const void *data, size_t size)
{
	struct locks *l = arg;
	const struct event_lock *event = data;
	struct waiting *w;

	if (size >= sizeof(struct event_exec) && event->type == EVENT_EXEC) {
		discover_executed(&l->discover, data);
		return 0;
	}
	if (size < sizeof(*event) || event->target_id >= l->discover.ntargets)
		return 0;
	if (event->type == EVENT_LOCK_END) {
		locks_ended(l, event);
	} else if (event->type == EVENT_LOCK_WAIT && event->flags & LOCK_LWLOCK) {
		locks_find(l, event->target_id, event->pid);
	} else if (event->type == EVENT_LOCK_WAIT) {
		w = waiting_add(l, event);
		if (w) {
			w->tries = LOOKS_MAX;
			waiting_look(l, w);
		}
	}
	return 0;
}

/* A process that may have been waiting since before there were probes. */
static void locks_process(void *arg, const struct target *target, const struct process *process)
{
	struct locks *l = arg;
	struct event_lock event = {
		.type = EVENT_LOCK_WAIT, .target_id = target->id, .pid = process->pid,
		.tid = process->pid, .flags = LOCK_JOINED,
	};
	struct server *server = locks_find(l, target->id, process->pid);
	uint64_t now = runtime_now(&l->rt), key = process->pid;
	uint64_t offset = clock_ns(CLOCK_REALTIME) - now;
	struct lock_info known;
	struct waiting *w;

	/* The kernel's own numbers of threads are needed. */
	if (l->rt.pid_ns_ino || !server || !server->found || !server->postgres)
		return;
	if (!postgres_locks_read(&server->places, process->pid, &event, l->config.text_bytes,
				 &known)) {
		memcpy(event.field, known.event.field, sizeof(event.field));
		event.kind = known.event.kind;
		event.mode = known.event.mode;
		event.start_ns = now;
		if (known.begun_ns > offset) {
			event.start_ns = known.begun_ns - offset;
			event.flags = 0;
		}
		/* Where probes have seen the start, that is there. */
		if (!sys_map_add(l->waits, &key, &event)) {
			w = waiting_add(l, &event);
			if (w) {
				if (l->config.redact)
					lock_info_redact(&known, FINGERPRINT_POSTGRES);
				w->known = known;
				w->looked = true;
				locks_name(server, &event, w->known.name, NULL);
				return;
			}
		}
	}
	lock_info_clear(&known);
}

/* --- opening and closing */

static int locks_maps(struct locks *l, struct error *error)
{
	const struct map_def maps[] = {
		{ "waits", BPF_MAP_TYPE_HASH, 8, sizeof(struct event_lock), WAITS_MAX, 0 },
		/* LRU: not every thread that is about to wait does, so old entries make room. */
		{ "rows", BPF_MAP_TYPE_LRU_HASH, 8, sizeof(struct lock_row), WAITS_MAX, 0 },
		{ "sums", BPF_MAP_TYPE_HASH, sizeof(struct lwlock_key), sizeof(struct lwlock_sum),
		  l->config.sum_lwlocks ? SUMS_MAX : 1, 0 },
	};
	int err = runtime_maps(&l->rt, maps, sizeof(maps) / sizeof(maps[0]), error);

	l->waits = runtime_map(&l->rt, "waits");
	l->sums = runtime_map(&l->rt, "sums");
	return err;
}

/* Create everything that programs are linked with. */
static int locks_prepare(struct locks *l, struct error *error)
{
	const struct locks_config *c = &l->config;
	const struct runtime_config config = {
		/* The second one has the program that reports executed programs. */
		.objects = { { bpf_locks, bpf_locks_end }, { bpf_statement, bpf_statement_end } },
		.denied = c->denied, .is_program = engine_is_executable,
		.arg = c->arg, .lasting = c->lasting, .error = c->error, .program = c->program,
	};
	int err = runtime_open(&l->rt, &config, error);

	if (!err)
		err = locks_maps(l, error);
	if (!err)
		err = discover_open(&l->discover, &l->rt, error);
	if (err)
		return err;
	runtime_constant(&l->rt, "constant_threshold_ns", c->threshold_ns);
	runtime_constant(&l->rt, "constant_sum_lwlocks", c->sum_lwlocks);
	err = runtime_stream(&l->rt, RING_MIN, sizeof(struct event_lock), error);
	return err ? err : runtime_ready(&l->rt, error);
}

int locks_open(struct locks **locks, const struct locks_config *config, struct error *error)
{
	static const struct runtime_tracepoint exec = { "process_exec", "sched_process_exec", 0 };
	struct locks *l = calloc(1, sizeof(*l));
	int err;

	*locks = NULL;
	if (!l)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	l->config = *config;
	err = discover_init(&l->discover, &l->config.servers, error);
	if (!err)
		err = locks_prepare(l, error);
	if (err)
		goto fail;
	locks_engines(l);
	l->discover.common.site = config->site;
	l->discover.common.site_arg = config->arg;
	l->discover.listener = config->arg;
	l->discover.server = config->server;
	l->discover.error = config->error;
	l->discover.process = locks_process;
	l->discover.process_arg = l;
	err = runtime_tracepoint(&l->rt, &exec, error);
	if (!err)
		err = discover_find(&l->discover, error);
	if (!err)
		err = runtime_listen(&l->rt, error);
	if (err)
		goto fail;
	*locks = l;
	return 0;
fail:
	locks_close(l);
	return err;
}

void locks_sandbox(const struct locks *l, struct sandbox *sandbox)
{
	runtime_sandbox(&l->rt, discover_needs(&l->discover), sandbox);
}

const struct features *locks_features(const struct locks *l)
{
	return &l->rt.features;
}

size_t locks_targets(const struct locks *l)
{
	return l->discover.ntargets;
}

int locks_drain(struct locks *l)
{
	int filled;

	locks_may_look(l);
	filled = runtime_drain(&l->rt, locks_record, l);
	l->discover.started = false;
	locks_may_look(l);
	/* A probe is hit before the lock's queue has us. */
	l->looking = false;
	for (struct waiting *w = l->waiting; w; w = w->next) {
		if (w->tries)
			waiting_look(l, w);
		l->looking |= w->tries > 0;
	}
	return filled;
}

int locks_sleep(struct locks *l)
{
	if (discover_again(&l->discover) || l->looking)
		return -EAGAIN;
	return runtime_sleep(&l->rt);
}

void locks_running(struct locks *l)
{
	struct waiting **place = &l->waiting;

	locks_may_look(l);
	while (*place) {
		struct waiting *w = *place;
		bool found = w->looked && w->known.nholders;
		int err;

		/* What its holder does now is of more interest than what it did. */
		err = waiting_look(l, w);
		if (!process_exists(w->event.pid) || (err && err != -EAGAIN && found)) {
			waiting_drop(place);
			continue;
		}
		locks_tell(l, &w->event, w, true);
		place = &w->next;
	}
}

ssize_t locks_lwlocks(struct locks *l, struct lwlock_count **counts)
{
	struct lwlock_key keys[2];
	size_t n = 0;

	*counts = calloc(SUMS_MAX, sizeof(**counts));
	if (!*counts)
		return -ENOMEM;
	/* Nothing is ever deleted from it, so the order of keys holds. */
	while (n < SUMS_MAX && !sys_map_next(l->sums, n ? &keys[0] : NULL, &keys[1])) {
		struct lwlock_count *count = &(*counts)[n];

		keys[0] = keys[1];
		if (keys[1].target_id >= l->discover.ntargets ||
		    sys_map_lookup(l->sums, &keys[1], &count->sum))
			break;
		count->target = &l->discover.targets[keys[1].target_id];
		count->mode = keys[1].mode;
		memcpy(count->name, keys[1].name, LOCK_NAME - 1);
		lwlock_name(locks_server(l, keys[1].target_id), keys[1].tranche, count->name);
		n++;
	}
	return (ssize_t)n;
}

void locks_detach(struct locks *l)
{
	discover_detach(&l->discover);
	runtime_detach(&l->rt);
}

void locks_summary(const struct locks *l, struct summary *summary)
{
	*summary = (struct summary){
		.statements = runtime_counter(&l->rt, COUNT_STATEMENTS),
		.ring_full = runtime_dropped(&l->rt),
		.table_full = runtime_counter(&l->rt, LOST_TABLE_FULL),
	};
}

void locks_close(struct locks *l)
{
	if (!l)
		return;
	locks_detach(l);
	while (l->waiting)
		waiting_drop(&l->waiting);
	discover_close(&l->discover);
	runtime_close(&l->rt);
	free(l->servers);
	free(l);
}
