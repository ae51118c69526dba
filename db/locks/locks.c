// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/locks/locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "db/discover/servers.h"
#include "db/discover/states.h"
#include "db/engines.h"
#include "db/locks/ops.h"
#include "db/locks/poll.h"
#include "db/session/identity.h"
#include "db/session/object.h"
#include "host/clock.h"

#define WAITS_MAX	16384		/* threads that wait at once */
#define RESOLVE_TRIES	20		/* for the holders of a lock, one per drain */
/* Time limit per drain for resolving holders; other records and signals wait as long. */
#define RESOLVE_NS	100000000u
#define RESOLVE_USER_US	50000u		/* of that, for the waits of one user */
#define FORGET_NS	500000000u	/* no thread ID is reused within this time */
#define HOLD_NS	100000000u	/* between two slices of a wait, or before the error after it */
#define TEXT_MAX	16384u		/* bytes of a text that a program sends */
#define TEXTS_MAX	256		/* waits that begin at once */

struct locks {
	struct locks_config config;
	int waits, sums;		/* maps, borrowed */
	struct states states;
	struct lock_waits waiting;
	bool resolving;			/* tries are left: drain again soon */
	uint64_t held_ns;		/* when the first held wait is over; 0: none is held */
	uint64_t slices;		/* that went on with a wait; the programs count them */
	uint64_t resolve_deadline_ns;	/* CLOCK_MONOTONIC; 0: nothing was read in this drain */
	uint32_t resolve_us[OWNERS];	/* time spent in this drain for each owner's waits */
	struct lock_poll poll;
	struct servers servers;
	struct identity_table identities;	/* of the threads that have waited lately .. */
	uint64_t forget_ns;			/* .. until then, CLOCK_MONOTONIC */
};

static struct target *locks_target(const struct locks *l, uint32_t id)
{
	return target_by_id(l->config.discover->targets, l->config.discover->ntargets, id);
}

static const struct lock_ops *locks_ops(const struct locks *l, uint32_t id)
{
	return locks_target(l, id)->engine->lock_ops;
}

/* Return the state of the server of @event, or NULL if it was not read. */
static void *locks_state(struct locks *l, const struct event_lock *event)
{
	return states_get(&l->states, &(struct state_key){ event->target_id, event->uid, 0 });
}

/* The same; read it from the process of @event if it is not known. */
static void *locks_find(struct locks *l, const struct event_lock *event)
{
	const struct target *target = locks_target(l, event->target_id);
	const struct state_key key = { .target_id = target->id, .uid = event->uid };

	return states_read(&l->states, &target->engine->lock_ops->state, target, event->pid, &key);
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

void locks_set_deadline(struct locks *l)
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
	const struct target *target = locks_target(l, event->target_id);

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
 * process, within the time for the waits of its user. Return false if that is over.
 */
static bool locks_application(struct locks *l, const struct event_lock *event, char name[64])
{
	const struct target *target = locks_target(l, event->target_id);
	uint32_t *spent_us = &l->resolve_us[event->head.owner % OWNERS];
	uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	struct process process;
	struct process_memory memory;

	if (!target->places.application)
		return true;
	if (!locks_may_read(l, begun, *spent_us))
		return false;
	if (!process_read(event->pid, engine_is_executable, &process) &&
	    process_file_same(&process.file, &target->file) &&
	    !process_memory_open_program(&process, target->lowest_vaddr, &memory)) {
		backend_application(&memory, &target->places, name);
		process_memory_close(&memory);
	}
	*spent_us += (uint32_t)((clock_ns(CLOCK_MONOTONIC) - begun) / 1000);
	return true;
}

/*
 * Set @who to the session that waits, of which @info was read, or NULL; what was known of it stays
 * if it is gone. Return whether no more of it can be known.
 */
static bool locks_who(struct locks *l, const struct event_lock *event, const struct lock_info *info,
		      struct who *who)
{
	const struct engine *engine = locks_target(l, event->target_id)->engine;
	const struct who *found = info ? &info->who : NULL;
	const struct identity_entry *entry;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool all;

	if (now >= l->forget_ns) {
		identity_clear(&l->identities);
		l->forget_ns = now + FORGET_NS;
	}
	if (l->config.identify && engine->identify) {
		entry = identity_of(&l->identities, engine, event->tid);
		found = entry ? &entry->who : NULL;
	}
	if (found && (*found->user || !*who->user))
		*who = *found;
	if (info && *info->self.kind)
		snprintf(who->backend, sizeof(who->backend), "%s", info->self.kind);
	if (engine->identify)
		all = !l->config.identify || locks_application(l, event, who->application);
	else
		all = *who->user;
	who->pid = event->pid;
	who->tid = event->tid;
	who->connection = info ? info->self.connection : 0;
	return all;
}

/* Keep who waits, once that is known: at the end of the wait the session may be gone. */
static void waiter_name(struct locks *l, struct lock_waiter *w, const struct lock_info *info)
{
	if (!w->server)
		w->server = locks_server(l, &w->event);
	if (!w->named)
		w->named = locks_who(l, &w->event, info, &w->who);
}

/*
 * Replace the statement of @self, which was read from memory, by the one that the program has read
 * when the wait began. Memory only completes a long one that begins alike. If the program has read
 * none, that in memory is right as long as the wait lasts: @waits.
 */
static void waiter_text(const struct lock_waiter *w, bool waits, struct lock_backend *self)
{
	size_t len = w->event.text_len;

	if (w->text ? self->len > len && w->event.flags & LOCK_CUT &&
		      !memcmp(self->text, w->text, len) : waits)
		return;
	free(self->text);
	self->text = w->text ? malloc(len) : NULL;
	self->len = self->text ? len : 0;
	self->cut = w->event.flags & LOCK_CUT;
	if (self->text)
		memcpy(self->text, w->text, len);
}

/* Return whether the wait still lasts, or it is unknown: as for locks_process(). */
static bool waiter_waits(const struct locks *l, const struct lock_waiter *w)
{
	struct event_lock kept;
	uint64_t key = w->event.tid;

	return l->config.runtime->pid_ns_ino || (!sys_map_lookup(l->waits, &key, &kept) &&
				    kept.start_ns == w->slice_ns);
}

/* Read the holders of the awaited lock, see waiter_resolve(). */
static int waiter_read(struct locks *l, struct lock_waiter *w, bool now)
{
	const struct target *target = locks_target(l, w->event.target_id);
	const struct lock_ops *ops = target->engine->lock_ops;
	const struct lock_query query = {
		.event = &w->event, .places = &target->places, .text_bytes = l->config.text_bytes,
		/* At the first try, the record of the wait's end may follow in the buffer. */
		.again = w->tries < RESOLVE_TRIES, .named = *w->info.object,
		.identify = l->config.identify && !w->named,
	};
	struct lock_info info;
	void *state;
	bool waits;
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
	waits = waiter_waits(l, w);
	waiter_text(w, waits, &info.self);
	if (!waits) {
		lock_info_drop(&info);
		info.known = false;
		err = -ENOENT;
	}
	waiter_name(l, w, &info);
	if (info.session)
		w->session = info.session;
	if (!w->resolved)
		w->info.credited_ns = w->event.start_ns;
	w->resolved = true;
	lock_info_update(&w->info, &info, err, runtime_now(l->config.runtime), now);
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
	struct who who = { .pid = 0 };
	struct lock_wait wait = {
		.who = w ? &w->who : &who, .event = event,
		.start_ns = runtime_here_ns(l->config.runtime, event->start_ns),
		.wall_ns = runtime_wall_ns(l->config.runtime, event->start_ns),
		.duration_ns = event->duration_ns, .running = running,
		.joined = event->flags & LOCK_JOINED,
		.info = w && (w->resolved || w->text) ? &w->info : NULL,
	};

	if (running)
		wait.duration_ns = runtime_now(l->config.runtime) - event->start_ns;
	wait.kind = event->flags & LOCK_LWLOCK ? "lwlock" :
		    ops->kind(locks_state(l, event), wait.info ? &wait.info->event : event);
	if (wait.info)
		lock_info_credit(&w->info, event->start_ns + wait.duration_ns);
	if (w && event->flags & LOCK_DEADLOCK && !(event->flags & LOCK_SESSION))
		wait.ncycle = lock_waits_cycle(&l->waiting, w, wait.cycle);
	if (wait.duration_ns < l->config.threshold_ns)
		return;
	if (!w || !w->named)
		locks_who(l, event, wait.info, w ? &w->who : &who);
	wait.server = w && w->server ? w->server : locks_server(l, event);
	sink_wait(l->config.sink, &wait);
}

/*
 * MySQL and MariaDB wait for a metadata lock in slices, between which they look whether the holder
 * can be asked to go; and only an error that follows tells that a wait has failed. Return whether
 * the wait @w, of which a slice has ended, is to be held: it is over if no slice follows.
 */
static bool locks_held(struct locks *l, struct lock_waiter *w, const struct event_lock *event)
{
	if (!w || event->flags & LOCK_FAILED)
		return false;
	w->ended_ns = event->start_ns + event->duration_ns;
	w->until_ns = clock_ns(CLOCK_MONOTONIC) + HOLD_NS;
	if (!l->held_ns)
		l->held_ns = w->until_ns;
	return true;
}

/*
 * Return whether the session of the held wait @w runs another statement than the one that waited,
 * or none: as that has not failed, the lock was granted. Else it may be rolling back.
 */
static bool waiter_went_on(struct locks *l, const struct lock_waiter *w)
{
	const struct target *target = locks_target(l, w->event.target_id);
	const struct object_owner owner = { w->event.pid, &target->file, engine_is_executable };
	uint32_t *spent_us = &l->resolve_us[w->event.head.owner % OWNERS];
	const struct lock_backend *self = &w->info.self;
	uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	size_t len = 0;
	char *text;
	int n;

	if (!(target->has & TARGET_HAS_WAIT_ERRORS) || !w->session || !self->text ||
	    !locks_may_read(l, begun, *spent_us))
		return false;
	text = malloc(self->len);
	n = text ? object_query(&owner, w->session, &target->places.object, text, self->len, &len) :
		   -ENOMEM;
	*spent_us += (uint32_t)((clock_ns(CLOCK_MONOTONIC) - begun) / 1000);
	if (n >= 0 && (size_t)n == self->len && (self->cut || len == self->len) &&
	    !memcmp(text, self->text, self->len))
		n = -EBUSY;
	free(text);
	return n >= 0 || (n == -ENOENT &&
			  process_runs(w->event.pid, engine_is_executable, &target->file));
}

/* Report a wait that was held, and drop it. */
static void locks_release(struct locks *l, struct lock_waiter *w)
{
	struct event_lock ended = w->event;

	ended.duration_ns = w->ended_ns - ended.start_ns;
	if (!(ended.flags & LOCK_FAILED) && ended.duration_ns >= l->config.threshold_ns &&
	    waiter_went_on(l, w))
		ended.flags |= LOCK_GRANTED;
	locks_report(l, &ended, w, false);
	lock_waits_drop(&l->waiting, w);
}

/* Report a wait that has ended and drop it. */
static void locks_ended(struct locks *l, const struct event_lock *event)
{
	struct lock_waiter *w = lock_waits_of(&l->waiting, event->tid);
	struct event_lock ended = *event;

	if (event->flags & LOCK_LWLOCK && !*event->name)
		lwlock_name(locks_ops(l, event->target_id), lwlock_state(l, event),
			    event->field[0], ended.name);
	if (event->flags & LOCK_LWLOCK || (w && w->slice_ns != event->start_ns))
		w = NULL;
	if (!(event->flags & LOCK_LWLOCK))
		lock_poll_changed(&l->poll, event);
	if (event->flags & LOCK_SESSION && locks_held(l, w, event))
		return;
	if (w) {
		ended.start_ns = w->event.start_ns;
		ended.duration_ns += event->start_ns - ended.start_ns;
	}
	locks_report(l, &ended, w, false);
	if (w)
		lock_waits_drop(&l->waiting, w);
}

/* Return whether @event, an error, is of the statement that has waited as @w. */
static bool waiter_is_of(const struct lock_waiter *w, const struct event_lock *event)
{
	const char *text = w->text ? w->text : w->info.self.text;
	size_t len = w->text ? w->event.text_len : w->info.self.len;
	bool cut = w->text ? w->event.flags & LOCK_CUT : w->info.self.cut;

	if (!text || !event->text_len || event->pid != w->event.pid ||
	    event->start_ns - w->ended_ns > HOLD_NS)
		return false;
	if (len > event->text_len && event->flags & LOCK_CUT)
		len = event->text_len;
	return len <= event->text_len && (cut || len == event->text_len) &&
	       !memcmp(text, event + 1, len);
}

/* The statement of @event has failed; so has its wait, if it has just ended. */
static void locks_failed(struct locks *l, const struct event_lock *event)
{
	struct lock_waiter *w = lock_waits_of(&l->waiting, event->tid);

	if (!w || !w->ended_ns || !waiter_is_of(w, event))
		return;
	w->event.flags |= event->flags & (LOCK_FAILED | LOCK_DEADLOCK | LOCK_TIMEOUT | LOCK_KILLED);
	locks_release(l, w);
}

/* Return whether @event begins a further slice of the wait @w, which goes on then. */
static bool locks_go_on(struct locks *l, struct lock_waiter *w, const struct event_lock *event)
{
	if (!(event->flags & LOCK_MORE) || event->pid != w->event.pid || !w->event.relation ||
	    event->kind != LOCK_WAITS_METADATA || w->event.kind != LOCK_WAITS_METADATA)
		return false;
	w->ended_ns = 0;
	w->slice_ns = event->start_ns;
	l->slices++;
	return true;
}

/* Add the wait that @event begins, with the text behind it. */
static void locks_begun(struct locks *l, const struct event_lock *event)
{
	struct lock_waiter *w = lock_waits_of(&l->waiting, event->tid);

	if (w && w->ended_ns) {
		if (locks_go_on(l, w, event))
			return;
		locks_release(l, w);
	}
	w = lock_waits_add(&l->waiting, event);
	if (!w)
		return;
	w->text = event->text_len ? malloc(event->text_len) : NULL;
	if (w->text)
		memcpy(w->text, event + 1, event->text_len);
	w->info.event = *event;
	waiter_text(w, false, &w->info.self);
	w->tries = RESOLVE_TRIES;
	waiter_resolve(l, w, false);
}

void locks_record(struct locks *l, const struct event_lock *event, size_t size)
{
	if (size < sizeof(*event) || size - sizeof(*event) < event->text_len ||
	    !locks_target(l, event->target_id))
		return;
	if (event->head.type == EVENT_LOCK_END) {
		locks_ended(l, event);
	} else if (event->head.type == EVENT_LOCK_ERROR) {
		locks_failed(l, event);
	} else if (event->flags & LOCK_LWLOCK) {
		lwlock_state(l, event);
	} else {
		locks_begun(l, event);
	}
}

/* Add the wait of @info to the map and the list, which takes over @info's memory. */
static void locks_join(struct locks *l, void *state, struct event_lock *event,
		       struct lock_info *info)
{
	const struct engine *engine = locks_target(l, event->target_id)->engine;
	const struct runtime *rt = l->config.runtime;
	uint64_t now = runtime_now(rt), offset = clock_wall_offset(rt->ahead_ns);
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

void locks_process(struct locks *l, const struct target *target, const struct process *process)
{
	struct event_lock event = {
		.head.type = EVENT_LOCK_WAIT, .target_id = target->id, .pid = process->pid,
		.tid = process->pid, .flags = LOCK_JOINED, .uid = process->uid,
	};
	const struct lock_query query = {
		.event = &event, .places = &target->places, .text_bytes = l->config.text_bytes,
	};
	struct lock_info info;
	void *state;

	/* The keys of the map are thread IDs of the initial PID namespace. */
	if (l->config.runtime->pid_ns_ino || !target->engine->lock_ops ||
	    !target->engine->lock_ops->joins)
		return;
	state = locks_find(l, &event);
	if (!state)
		return;
	if (target->engine->lock_ops->read(state, &query, &info))
		lock_info_clear(&info);
	else
		locks_join(l, state, &event, &info);
}

/* Return the maximum length of a text that a program sends. */
static uint32_t locks_text_bytes(const struct locks_config *config)
{
	uint32_t most = config->runtime->record_limit - (uint32_t)sizeof(struct event_lock);

	most = most < TEXT_MAX ? most : TEXT_MAX;
	return config->text_bytes < most ? config->text_bytes : most;
}

size_t locks_record_max(const struct locks *l)
{
	return sizeof(struct event_lock) + locks_text_bytes(&l->config);
}

int locks_open(struct locks **locks, const struct locks_config *config, struct error *error)
{
	const uint32_t text_size = locks_text_bytes(config) + 2;
	const uint32_t record = (uint32_t)((sizeof(struct event_lock) + text_size + 7) & ~7u);
	const struct map_def maps[] = {
		{ "waits", BPF_MAP_TYPE_HASH, 8, sizeof(struct event_lock), WAITS_MAX, 0 },
		/* LRU: a thread that reports a row need not wait, which leaves a stale entry. */
		{ "rows", BPF_MAP_TYPE_LRU_HASH, 8, sizeof(struct lock_row), WAITS_MAX, 0 },
		{ "wait_texts", BPF_MAP_TYPE_HASH, 8, record, TEXTS_MAX, 0 },
		{ "wait_blank", BPF_MAP_TYPE_ARRAY, 4, record, 1, 0 },
		{ "sums", BPF_MAP_TYPE_HASH, sizeof(struct lwlock_key), sizeof(struct lwlock_sum),
		  config->sum_lwlocks ? LWLOCK_SUMS_MAX : 1, 0 },
	};
	struct runtime *rt = config->runtime;
	struct locks *l = calloc(1, sizeof(*l));
	int err;

	*locks = l;
	if (!l)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	l->config = *config;
	err = runtime_maps(rt, maps, ARRAY_SIZE(maps), error);
	if (err)
		return err;
	l->waits = runtime_map(rt, "waits");
	l->sums = runtime_map(rt, "sums");
	runtime_constant(rt, "constant_sum_lwlocks", config->sum_lwlocks);
	runtime_constant(rt, "constant_wait_share", OWNER_SHARE(WAITS_MAX));
	runtime_constant(rt, "constant_lock_text_bytes", text_size - 2);
	runtime_constant(rt, "constant_lock_text_size", text_size);
	return 0;
}

int locks_attach(struct locks *l, struct error *error)
{
	static const struct runtime_tracepoint tracepoints[] = {
		{ .program = "waiter_exit", .name = "sched_process_exit" },
		{ .program = "waiter_exec", .name = "sched_process_exec" },
	};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(tracepoints); i++)
		err = runtime_tracepoint(l->config.runtime, &tracepoints[i], error);
	return err;
}

/* Read again who holds the locks of waits that last: another one may have got them. */
static void locks_poll(struct locks *l)
{
	uint64_t now = runtime_now(l->config.runtime);

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

/* Report the held waits of which no further slice has begun. */
static void locks_overdue(struct locks *l)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct lock_waiter *next;

	if (!l->held_ns || now < l->held_ns)
		return;
	l->held_ns = 0;
	for (struct lock_waiter *w = l->waiting.first; w; w = next) {
		next = w->next;
		if (w->ended_ns && now >= w->until_ns)
			locks_release(l, w);
		else if (w->ended_ns && (!l->held_ns || w->until_ns < l->held_ns))
			l->held_ns = w->until_ns;
	}
}

void locks_drain(struct locks *l)
{
	struct lock_waiter *next;

	/* Without probes, the ends of waits are not seen. */
	for (struct lock_waiter *w = l->waiting.first; w; w = next) {
		const struct target *target = locks_target(l, w->event.target_id);

		next = w->next;
		if (target && target->paused_ns && w->ended_ns)
			locks_release(l, w);
		else if (!target || target->paused_ns)
			lock_waits_drop(&l->waiting, w);
	}
	locks_overdue(l);
	/* The probe is hit before the backend is in the lock's wait queue: try again. */
	l->resolving = false;
	for (struct lock_waiter *w = l->waiting.first; w; w = w->next) {
		if (w->ended_ns)
			continue;
		if (w->tries)
			waiter_resolve(l, w, false);
		l->resolving |= w->tries > 0;
	}
	locks_poll(l);
}

bool locks_again(const struct locks *l)
{
	return l->resolving;
}

int locks_sleep_ms(const struct locks *l)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), wake = l->poll.wake_ns;

	if (l->held_ns && (!wake || l->held_ns < wake))
		wake = l->held_ns;
	if (!l->waiting.first || !wake)
		return 0;
	return wake > now ? (int)((wake - now) / 1000000 + 1) : 1;
}

void locks_running(struct locks *l, bool last)
{
	struct lock_waiter *next;

	locks_set_deadline(l);
	for (struct lock_waiter *w = l->waiting.first; w; w = next) {
		bool found = w->resolved && w->info.nholders;
		int err;

		next = w->next;
		if (w->ended_ns) {
			if (last)
				locks_release(l, w);
			continue;
		}
		/* Report the holder's current statement rather than the earlier one. */
		err = waiter_resolve(l, w, true);
		if (!process_exists(w->event.pid))
			lock_waits_drop(&l->waiting, w);
		/* Else the wait is over, and the record of its end follows. */
		else if (!err || err == -EAGAIN || !found)
			locks_report(l, &w->event, w, true);
	}
}

uint64_t locks_slices(const struct locks *l)
{
	return l->slices;
}

/* Return the engine of LWLocks. A target may be gone, and its sums remain. */
static const struct engine *lwlock_engine(void)
{
	size_t i = 0;

	while (!engine_table[i]->has_lwlocks)
		i++;
	return engine_table[i];
}

ssize_t locks_lwlocks(struct locks *l, struct lwlock_count **sums)
{
	struct state_key state = { .server = 0 };
	struct lwlock_key keys[2];
	size_t n = 0;

	*sums = calloc(LWLOCK_SUMS_MAX, sizeof(**sums));
	if (!*sums)
		return -ENOMEM;
	/* Elements are never deleted, so the order of keys is stable. */
	while (n < LWLOCK_SUMS_MAX && !sys_map_next(l->sums, n ? &keys[0] : NULL, &keys[1])) {
		struct lwlock_count *count = &(*sums)[n];

		keys[0] = keys[1];
		if (sys_map_lookup(l->sums, &keys[1], &count->sum))
			break;
		count->engine = lwlock_engine();
		count->mode = keys[1].mode;
		memcpy(count->name, keys[1].name, LOCK_NAME - 1);
		state.target_id = keys[1].target_id;
		state.uid = keys[1].uid;
		lwlock_name(count->engine->lock_ops, states_get(&l->states, &state),
			    keys[1].tranche, count->name);
		n++;
	}
	return (ssize_t)n;
}

void locks_close(struct locks *l)
{
	if (!l)
		return;
	lock_waits_clear(&l->waiting);
	identity_clear(&l->identities);
	servers_clear(&l->servers);
	states_clear(&l->states);
	free(l);
}
