// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/locks/locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/embed.h"
#include "db/discover/arrivals.h"
#include "db/discover/discover.h"
#include "db/discover/servers.h"
#include "db/engines.h"
#include "db/locks/ops.h"
#include "db/locks/poll.h"
#include "db/locks/states.h"
#include "db/session/identity.h"
#include "host/clock.h"
#include "loader/hazard.h"
#include "loader/runtime.h"

#define RING_MIN	(2u << 20)	/* bytes */
#define WAITS_MAX	16384		/* threads that wait at once */
#define SUMS_MAX	16384		/* LWLock tranches and modes */
#define RESOLVE_TRIES	20		/* for the holders of a lock, one per drain */
/* Time limit per drain for resolving holders; other records and signals wait as long. */
#define RESOLVE_NS	100000000u
#define RESOLVE_USER_US	50000u		/* of that, for the waits of one user */
#define FORGET_NS	500000000u	/* no thread ID is reused within this time */

struct locks {
	struct locks_config config;
	struct runtime rt;
	int waits, sums;		/* maps, borrowed */
	struct discover discover;
	struct arrivals arrivals;
	bool arriving, detached;	/* programs are to be checked; probes are gone */
	struct lock_states states;
	struct lock_waits waiting;
	bool resolving;			/* tries are left: drain again soon */
	uint64_t resolve_deadline_ns;	/* CLOCK_MONOTONIC; 0: nothing was read in this drain */
	uint32_t resolve_us[OWNERS];	/* time spent in this drain for each owner's waits */
	struct lock_poll poll;
	struct sink sink;
	struct servers servers;
	struct identity_table identities;	/* of the threads that have waited lately .. */
	uint64_t forget_ns;			/* .. until then, CLOCK_MONOTONIC */
};

static const struct lock_ops *locks_ops(const struct locks *l, uint32_t id)
{
	return l->discover.targets[id].engine->lock_ops;
}

/* Return the state of the server of @event, or NULL if it was not read. */
static void *locks_state(struct locks *l, const struct event_lock *event)
{
	return lock_states_get(&l->states, event->target_id, event->uid);
}

/* The same; read it from the process of @event if it is not known. */
static void *locks_find(struct locks *l, const struct event_lock *event)
{
	return lock_states_read(&l->states, &l->discover.targets[event->target_id], event->pid,
				event->uid);
}

/* Write the name of LWLock tranche @tranche to @name, unless a program has read it. */
static void lwlock_name(const struct lock_ops *ops, const void *state, uint32_t tranche,
			char name[LOCK_NAME])
{
	const char *found;

	if (*name || !tranche)
		return;
	found = ops->tranche ? ops->tranche(state, tranche) : NULL;
	if (found)
		snprintf(name, LOCK_NAME, "%s", found);
	else
		snprintf(name, LOCK_NAME, "tranche %u", tranche);
}

/* Allow the full time for resolving holders again. */
static void locks_set_deadline(struct locks *l)
{
	l->resolve_deadline_ns = 0;
	memset(l->resolve_us, 0, sizeof(l->resolve_us));
}

/*
 * Return whether a wait may be read at @now_ns, of whose user's time @spent_us is over. The time
 * begins with the first read: without a CPU before it, there would be none.
 */
static bool locks_may_read(struct locks *l, uint64_t now_ns, uint32_t spent_us)
{
	if (!l->resolve_deadline_ns)
		l->resolve_deadline_ns = now_ns + RESOLVE_NS;
	return now_ns <= l->resolve_deadline_ns && spent_us <= RESOLVE_USER_US;
}

/* Return the server of @event. */
static const struct server *locks_server(struct locks *l, const struct event_lock *event)
{
	const struct target *target = &l->discover.targets[event->target_id];

	if (servers_full(&l->servers)) {
		for (struct lock_waiter *w = l->waiting.first; w; w = w->next)
			w->server = NULL;
		servers_clear(&l->servers);
	}
	if (!l->config.identify)
		return servers_of_file(&l->servers, target);
	return servers_of(&l->servers, target, event->pid, &event->uid);
}

/*
 * Read the name of the application, which the process title does not have, from the memory of the
 * process, within the time for the waits of its user.
 */
static void locks_application(struct locks *l, const struct event_lock *event, char name[64])
{
	const struct target *target = &l->discover.targets[event->target_id];
	uint32_t *spent_us = &l->resolve_us[event->head.owner % OWNERS];
	uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	struct process process;
	struct process_memory memory;

	if (!target->places.application || !locks_may_read(l, begun, *spent_us))
		return;
	if (!process_read(event->pid, engine_is_executable, &process) &&
	    process_file_same(&process.file, &target->file) &&
	    !process_memory_open_program(&process, target->lowest_vaddr, &memory)) {
		backend_application(&memory, &target->places, name);
		process_memory_close(&memory);
	}
	*spent_us += (uint32_t)((clock_ns(CLOCK_MONOTONIC) - begun) / 1000);
}

/* Set @who to the session that waits, of which @info was read, or NULL. */
static void locks_who(struct locks *l, const struct event_lock *event, const struct lock_info *info,
		      struct who *who)
{
	const struct engine *engine = l->discover.targets[event->target_id].engine;
	const struct identity_entry *entry = NULL;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	*who = (struct who){ .pid = 0 };
	if (now >= l->forget_ns) {
		identity_clear(&l->identities);
		l->forget_ns = now + FORGET_NS;
	}
	if (l->config.identify && engine->identify)
		entry = identity_of(&l->identities, engine, event->tid);
	else if (info)
		*who = info->who;
	if (entry) {
		*who = entry->who;
		locks_application(l, event, who->application);
	}
	who->pid = event->pid;
	who->tid = event->tid;
	who->connection = info ? info->self.connection : 0;
}

/* Keep who waits, once that is known: at the end of the wait the session may be gone. */
static void waiter_name(struct locks *l, struct lock_waiter *w, const struct lock_info *info)
{
	const struct engine *engine = l->discover.targets[w->event.target_id].engine;

	if (!w->server)
		w->server = locks_server(l, &w->event);
	if (w->named)
		return;
	locks_who(l, &w->event, info, &w->who);
	w->named = *w->who.user || engine->identify;
}

/* Return whether the wait still lasts, or it is unknown: as for locks_process(). */
static bool waiter_waits(const struct locks *l, const struct lock_waiter *w)
{
	struct event_lock kept;
	uint64_t key = w->event.tid;

	return l->rt.pid_ns_ino || (!sys_map_lookup(l->waits, &key, &kept) &&
				    kept.start_ns == w->event.start_ns);
}

/* Read the holders of the awaited lock, see waiter_resolve(). */
static int waiter_read(struct locks *l, struct lock_waiter *w, bool now)
{
	const struct target *target = &l->discover.targets[w->event.target_id];
	const struct lock_ops *ops = target->engine->lock_ops;
	const struct lock_query query = {
		.event = &w->event, .places = &target->places, .text_bytes = l->config.text_bytes,
		/* At the first try, the record of the wait's end may follow in the buffer. */
		.again = w->tries < RESOLVE_TRIES, .named = *w->info.object,
		.identify = l->config.identify && !w->named,
	};
	struct lock_info info;
	void *state;
	int err;

	state = locks_find(l, &w->event);
	w->tries -= w->tries > 0;
	if (!state)
		return -ENOENT;
	if (!process_runs(w->event.pid, engine_is_executable, &target->file))
		return -ESRCH;
	err = ops->read(state, &query, &info);
	/* It has read another program's memory. */
	if (!process_runs(w->event.pid, engine_is_executable, &target->file)) {
		lock_info_clear(&info);
		return -ESRCH;
	}
	/* The memory may have been that of a later time: others have got the lock. */
	if (!waiter_waits(l, w)) {
		lock_info_drop(&info);
		info.known = false;
		err = -ENOENT;
	}
	waiter_name(l, w, &info);
	if (!w->resolved)
		w->info.credited_ns = w->event.start_ns;
	w->resolved = true;
	lock_info_update(&w->info, &info, err, runtime_now(&l->rt), now);
	/* Its catalog is read a limited number of times. */
	if (ops->relation && !*w->info.name && !w->due_ns)
		ops->relation(state, &w->event, w->info.name);
	if (!err && w->info.nholders && (!ops->complete || ops->complete(state)))
		w->tries = 0;
	return err;
}

/*
 * Resolve the holders of the awaited lock. On failure keep the previous result and return -errno;
 * -EAGAIN if the time of this drain or, of that, of the wait's user is over. @now: as for
 * lock_info_update().
 */
static int waiter_resolve(struct locks *l, struct lock_waiter *w, bool now)
{
	uint32_t *spent_us = &l->resolve_us[w->event.head.owner % OWNERS], before = *spent_us;
	uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	int err;

	if (!locks_may_read(l, begun, *spent_us))
		return -EAGAIN;
	err = waiter_read(l, w, now);
	*spent_us = before + (uint32_t)((clock_ns(CLOCK_MONOTONIC) - begun) / 1000);
	return err;
}

/* As locks_find(), within the same time. */
static void *lwlock_state(struct locks *l, const struct event_lock *event)
{
	uint32_t *spent_us = &l->resolve_us[event->head.owner % OWNERS];
	uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	void *state = locks_state(l, event);

	if (state || !locks_may_read(l, begun, *spent_us))
		return state;
	state = locks_find(l, event);
	*spent_us += (uint32_t)((clock_ns(CLOCK_MONOTONIC) - begun) / 1000);
	return state;
}

/* Report a wait to the caller, if it is over the threshold. @w may be NULL. */
static void locks_report(struct locks *l, const struct event_lock *event, struct lock_waiter *w,
			 bool running)
{
	const struct lock_ops *ops = locks_ops(l, event->target_id);
	struct who who;
	struct lock_wait wait = {
		.who = w && w->named ? &w->who : &who, .event = event,
		.start_ns = runtime_here_ns(&l->rt, event->start_ns),
		.wall_ns = runtime_wall_ns(&l->rt, event->start_ns),
		.duration_ns = event->duration_ns, .running = running,
		.joined = event->flags & LOCK_JOINED,
		.info = w && w->resolved ? &w->info : NULL,
	};

	if (running)
		wait.duration_ns = runtime_now(&l->rt) - event->start_ns;
	wait.kind = event->flags & LOCK_LWLOCK ? "lwlock" :
		    ops->kind(locks_state(l, event), wait.info ? &wait.info->event : event);
	if (wait.info)
		lock_info_credit(&w->info, event->start_ns + wait.duration_ns);
	if (w && event->flags & LOCK_DEADLOCK)
		wait.ncycle = lock_waits_cycle(&l->waiting, w, wait.cycle);
	if (wait.duration_ns < l->config.threshold_ns)
		return;
	if (!w || !w->named)
		locks_who(l, event, wait.info, &who);
	wait.server = w && w->server ? w->server : locks_server(l, event);
	sink_wait(&l->sink, &wait);
}

/* Report a wait that has ended and drop it. */
static void locks_ended(struct locks *l, const struct event_lock *event)
{
	struct lock_waiter *w = lock_waits_of(&l->waiting, event->tid);
	struct event_lock ended = *event;

	if (event->flags & LOCK_LWLOCK && !*event->name)
		lwlock_name(locks_ops(l, event->target_id), lwlock_state(l, event),
			    event->field[0], ended.name);
	if (event->flags & LOCK_LWLOCK || (w && w->event.start_ns != event->start_ns))
		w = NULL;
	if (!(event->flags & LOCK_LWLOCK))
		lock_poll_changed(&l->poll, event);
	locks_report(l, &ended, w, false);
	if (w)
		lock_waits_drop(&l->waiting, w);
}

/* Handle a record. Its sizes and IDs are validated before use. */
static int locks_record(void *arg, const void *data, size_t size)
{
	struct locks *l = arg;
	const struct event_lock *event = data;
	struct lock_waiter *w;

	if (size >= sizeof(struct event_exec) && event->head.type == EVENT_EXEC) {
		arrivals_put(&l->arrivals, data);
		return 0;
	}
	if (size < sizeof(*event) || event->target_id >= l->discover.ntargets)
		return 0;
	if (event->head.type == EVENT_LOCK_END) {
		locks_ended(l, event);
	} else if (event->head.type == EVENT_LOCK_WAIT && event->flags & LOCK_LWLOCK) {
		lwlock_state(l, event);
	} else if (event->head.type == EVENT_LOCK_WAIT) {
		w = lock_waits_add(&l->waiting, event);
		if (w) {
			w->tries = RESOLVE_TRIES;
			waiter_resolve(l, w, false);
		}
	}
	return 0;
}

/* Add the wait of @info to the map and the list, which takes over @info's memory. */
static void locks_join(struct locks *l, void *state, struct event_lock *event,
		       struct lock_info *info)
{
	const struct engine *engine = l->discover.targets[event->target_id].engine;
	uint64_t now = runtime_now(&l->rt), offset = clock_wall_offset(l->rt.ahead_ns);
	uint64_t key = event->tid;
	struct lock_waiter *w = NULL;

	memcpy(event->field, info->event.field, sizeof(event->field));
	event->kind = info->event.kind;
	event->mode = info->event.mode;
	event->start_ns = now;
	if (info->begun_ns > offset) {
		event->start_ns = info->begun_ns - offset;
		event->flags = 0;
	}
	/* If a probe has seen the start, the map has the wait already. */
	if (!sys_map_add(l->waits, &key, event))
		w = lock_waits_add(&l->waiting, event);
	if (!w) {
		lock_info_clear(info);
		return;
	}
	waiter_name(l, w, info);
	w->resolved = true;
	w->info.credited_ns = event->start_ns;
	lock_info_update(&w->info, info, 0, now, true);
	if (engine->lock_ops->relation)
		engine->lock_ops->relation(state, event, w->info.name);
}

/* Add the wait of a process that has been waiting since before the probes were attached. */
static void locks_process(void *arg, const struct target *target, const struct process *process)
{
	struct locks *l = arg;
	struct event_lock event = {
		.head.type = EVENT_LOCK_WAIT, .target_id = target->id, .pid = process->pid,
		.tid = process->pid, .flags = LOCK_JOINED, .uid = process->uid,
	};
	const struct lock_query query = {
		.event = &event, .places = &target->places, .text_bytes = l->config.text_bytes,
	};
	void *state = locks_find(l, &event);
	struct lock_info info;

	/* The keys of the map are thread IDs of the initial PID namespace. */
	if (l->rt.pid_ns_ino || !state || !target->engine->lock_ops->joins)
		return;
	if (target->engine->lock_ops->read(state, &query, &info))
		lock_info_clear(&info);
	else
		locks_join(l, state, &event, &info);
}

static int locks_maps(struct locks *l, struct error *error)
{
	const struct map_def maps[] = {
		{ "waits", BPF_MAP_TYPE_HASH, 8, sizeof(struct event_lock), WAITS_MAX, 0 },
		/* LRU: a thread that reports a row need not wait, which leaves a stale entry. */
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
		/* The second one has the program that reports execs. */
		.objects = { { bpf_locks, bpf_locks_end }, { bpf_statement, bpf_statement_end } },
		.denied = c->denied, .is_program = engine_is_executable,
		.arg = c->arg, .stopped = c->stopped, .error = c->error,
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
	runtime_constant(&l->rt, "constant_session_share", OWNER_SHARE(WAITS_MAX));
	runtime_constant(&l->rt, "constant_group_share", OWNER_SHARE(SUMS_MAX));
	err = runtime_stream(&l->rt, RING_MIN, sizeof(struct event_lock), error);
	/* For servers that start later: the sandbox forbids to find that out. */
	if (!err && !c->servers.npids && !c->servers.npaths)
		hazard_safe(&l->rt.features, FEATURE_SAFE_RETURNS);
	return err ? err : runtime_ready(&l->rt, error);
}

static void locks_arrivals_drain(void *arg)
{
	struct locks *l = arg;

	locks_set_deadline(l);
	runtime_drain(&l->rt, locks_record, l);
}

int locks_open(struct locks **locks, const struct locks_config *config, struct error *error)
{
	static const struct runtime_tracepoint tracepoints[] = {
		{ .program = "waiter_exit", .name = "sched_process_exit" },
		{ .program = "waiter_exec", .name = "sched_process_exec" },
		{ .program = "process_exec", .name = "sched_process_exec" },
	};
	struct locks *l = calloc(1, sizeof(*l));
	int err;

	*locks = NULL;
	if (!l)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	l->config = *config;
	l->config.sum_lwlocks &= !filter_any(&config->sink.filter);
	err = sink_open(&l->sink, &config->sink);
	if (err)
		error_set(error, ERROR_MEMORY, err, NULL, NULL);
	else
		err = discover_init(&l->discover, &l->config.servers, error);
	if (!err)
		err = locks_prepare(l, error);
	if (err)
		goto fail;
	l->discover.common.locks = true;
	l->discover.common.site = config->site;
	l->discover.common.site_arg = config->arg;
	l->discover.listener = config->arg;
	l->discover.server = config->server;
	l->discover.error = config->error;
	l->discover.process = locks_process;
	l->discover.process_arg = l;
	for (size_t i = 0; !err && i < sizeof(tracepoints) / sizeof(tracepoints[0]); i++)
		err = runtime_tracepoint(&l->rt, &tracepoints[i], error);
	/* Of probes that the user names, none is of a lock wait. */
	if (!err && !config->servers.start)
		err = discover_find(&l->discover, error);
	if (!err)
		err = runtime_listen(&l->rt, error);
	if (err)
		goto fail;
	arrivals_open(&l->arrivals, &l->discover, locks_arrivals_drain, l);
	*locks = l;
	return 0;
fail:
	locks_close(l);
	return err;
}

unsigned int locks_needs(const struct locks *l)
{
	return runtime_needs(&l->rt, discover_needs(&l->discover));
}

const struct features *locks_features(const struct locks *l)
{
	return &l->rt.features;
}

size_t locks_targets(const struct locks *l)
{
	return discover_attached(&l->discover);
}

/* Read again who holds the locks of waits that last: another one may have got them. */
static void locks_poll(struct locks *l)
{
	uint64_t now = runtime_now(&l->rt);

	if (!lock_poll_begin(&l->poll, clock_ns(CLOCK_MONOTONIC)))
		return;
	locks_set_deadline(l);
	for (struct lock_waiter *w = l->waiting.first; w; w = w->next) {
		if (w->tries || !w->info.nholders || !lock_poll_due(&l->poll, w))
			continue;
		waiter_resolve(l, w, false);
		lock_poll_read(&l->poll, w, clock_ns(CLOCK_MONOTONIC), now - w->event.start_ns);
	}
	lock_poll_end(&l->poll, clock_ns(CLOCK_MONOTONIC));
}

int locks_drain(struct locks *l)
{
	int filled;

	locks_set_deadline(l);
	filled = runtime_drain(&l->rt, locks_record, l);
	if (!l->detached)
		l->arriving = arrivals_check(&l->arrivals);
	l->discover.started = false;
	locks_set_deadline(l);
	/* The probe is hit before the backend is in the lock's wait queue: try again. */
	l->resolving = false;
	for (struct lock_waiter *w = l->waiting.first; w; w = w->next) {
		if (w->tries)
			waiter_resolve(l, w, false);
		l->resolving |= w->tries > 0;
	}
	locks_poll(l);
	return filled;
}

int locks_sleep(struct locks *l)
{
	if (discover_again(&l->discover) || l->resolving || l->arriving)
		return -EAGAIN;
	return runtime_sleep(&l->rt);
}

int locks_sleep_ms(const struct locks *l)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), wake = l->poll.wake_ns;

	if (!l->waiting.first || !wake)
		return 0;
	return wake > now ? (int)((wake - now) / 1000000 + 1) : 1;
}

void locks_running(struct locks *l)
{
	struct lock_waiter *next;

	locks_set_deadline(l);
	for (struct lock_waiter *w = l->waiting.first; w; w = next) {
		bool found = w->resolved && w->info.nholders;
		int err;

		next = w->next;
		/* Report the holder's current statement rather than the earlier one. */
		err = waiter_resolve(l, w, true);
		if (!process_exists(w->event.pid))
			lock_waits_drop(&l->waiting, w);
		/* Else the wait is over, and the record of its end follows. */
		else if (!err || err == -EAGAIN || !found)
			locks_report(l, &w->event, w, true);
	}
}

ssize_t locks_lwlocks(struct locks *l, struct lwlock_count **sums)
{
	struct lwlock_key keys[2];
	size_t n = 0;

	*sums = calloc(SUMS_MAX, sizeof(**sums));
	if (!*sums)
		return -ENOMEM;
	/* Elements are never deleted, so the order of keys is stable. */
	while (n < SUMS_MAX && !sys_map_next(l->sums, n ? &keys[0] : NULL, &keys[1])) {
		struct lwlock_count *count = &(*sums)[n];

		keys[0] = keys[1];
		if (keys[1].target_id >= l->discover.ntargets ||
		    sys_map_lookup(l->sums, &keys[1], &count->sum))
			break;
		count->engine = l->discover.targets[keys[1].target_id].engine;
		count->mode = keys[1].mode;
		memcpy(count->name, keys[1].name, LOCK_NAME - 1);
		lwlock_name(count->engine->lock_ops,
			    lock_states_get(&l->states, keys[1].target_id, keys[1].uid),
			    keys[1].tranche, count->name);
		n++;
	}
	return (ssize_t)n;
}

void locks_detach(struct locks *l)
{
	discover_detach(&l->discover);
	runtime_detach(&l->rt);
	l->detached = true;
}

void locks_summary(const struct locks *l, struct summary *summary)
{
	*summary = (struct summary){
		.statements = runtime_counter(&l->rt, COUNT_STATEMENTS),
		.targets = l->discover.targets, .ntargets = l->discover.ntargets,
	};
	loss_read(summary, &l->rt);
}

void locks_close(struct locks *l)
{
	if (!l)
		return;
	locks_detach(l);
	lock_waits_clear(&l->waiting);
	sink_close(&l->sink);
	identity_clear(&l->identities);
	servers_clear(&l->servers);
	lock_states_clear(&l->states);
	discover_close(&l->discover);
	runtime_close(&l->rt);
	free(l);
}
