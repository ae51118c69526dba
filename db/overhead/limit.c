// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/overhead/limit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/engines.h"
#include "db/overhead/trap.h"
#include "host/clock.h"
#include "loader/sys.h"

#define SAMPLES		4	/* in a period */
#define FIND_SHARE	100	/* limit_find() takes at most 1/FIND_SHARE of the time */

/* A server; or, with ->uid COST_ATTACHED, that a file has probes. */
struct limit_entry {
	uint32_t uid, target_id;
	uint32_t number;		/* of its element; COSTS: none */
	struct process_file file;
	struct ladder ladder;
	struct cost seen;		/* at the last sample */
	uint64_t why_ns;		/* as in struct cost */
	bool above;			/* it has wanted to detach since the last sample */
	bool refused;			/* that was reported */
	bool alive;			/* for limit_look(): a process runs */
	/* While the file has no probes: since and until when; 0: of another entry. */
	uint64_t since_ns, until_ns;
};

int limit_maps(struct runtime *rt, bool limited, struct error *error)
{
	const struct map_def maps[] = {
		{ "costs", BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct cost),
		  limited ? COSTS + 1 : 1, 0 },
	};

	runtime_constant(rt, "constant_limited", limited);
	return runtime_maps(rt, maps, 1, error);
}

int limit_open(struct limit *l, const struct limit_config *config, struct error *error)
{
	*l = (struct limit){ .config = *config };
	if (!config->ladder.limit)
		return 0;
	l->map = runtime_map(config->runtime, "costs");
	l->cpus = calloc(SYS_CPUS_MAX, sizeof(*l->cpus));
	l->entries = calloc(COSTS, sizeof(*l->entries));
	if (!l->cpus || !l->entries)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	l->last_ns = clock_ns(CLOCK_MONOTONIC);
	return trap_measure(config->runtime, &l->trap_ns, error);
}

/* Write what is left out to the map. The counts start from 0 again. */
static void limit_write(struct limit *l, struct limit_entry *entry)
{
	for (size_t i = 0; i < SYS_CPUS_MAX; i++)
		l->cpus[i] = (struct cost){
			.key = COST_KEY(entry->uid, entry->target_id),
			.why_ns = entry->ladder.step == LADDER_ALL ? entry->why_ns : UINT64_MAX,
			.no_text = entry->ladder.step >= LADDER_NO_TEXT,
		};
	sys_map_update(l->map, &entry->number, l->cpus);
	entry->seen = (struct cost){ .hits = 0 };
}

/* Write since when breakdowns of servers without an element are complete; UINT64_MAX: not now. */
static void limit_write_others(struct limit *l, uint64_t why_ns)
{
	uint32_t others = COSTS;

	for (size_t i = 0; i < SYS_CPUS_MAX; i++)
		l->cpus[i] = (struct cost){ .why_ns = why_ns };
	sys_map_update(l->map, &others, l->cpus);
}

/* Read the counts of all CPUs of element @number to @sum. Return 0 or -errno. */
static int limit_read(struct limit *l, uint32_t number, struct cost *sum)
{
	int err;

	/* The kernel writes a value for each possible CPU. */
	memset(l->cpus, 0, SYS_CPUS_MAX * sizeof(*l->cpus));
	err = sys_map_lookup(l->map, &number, l->cpus);
	*sum = (struct cost){ .hits = 0 };
	for (size_t i = 0; !err && i < SYS_CPUS_MAX; i++) {
		sum->hits += l->cpus[i].hits;
		sum->ns += l->cpus[i].ns;
	}
	return err;
}

static bool limit_is_free(const struct limit *l, uint32_t number)
{
	for (size_t i = 0; i < l->nentries; i++)
		if (l->entries[i].number == number)
			return false;
	return true;
}

/* Give @entry an element of the map, which is to be written. Return whether there is one. */
static bool limit_place(const struct limit *l, struct limit_entry *entry)
{
	uint64_t key = COST_KEY(entry->uid, entry->target_id);
	uint32_t slot = COST_SLOT(key, l->config.runtime->secret);

	entry->number = COSTS;
	for (uint32_t i = 0; i < COST_PROBES && entry->number == COSTS; i++)
		if (limit_is_free(l, (slot + i) & (COSTS - 1)))
			entry->number = (slot + i) & (COSTS - 1);
	return entry->number < COSTS;
}

/* Add an entry whose element is to be written. Return NULL if there is no room. */
static struct limit_entry *limit_new(struct limit *l, uint32_t uid, uint32_t target_id)
{
	struct limit_entry *entry = &l->entries[l->nentries];

	if (l->nentries == COSTS)
		return NULL;
	*entry = (struct limit_entry){ .uid = uid, .target_id = target_id };
	if (!limit_place(l, entry))
		return NULL;
	l->nentries++;
	return entry;
}

/* Clear the element of @entry: its programs find none. */
static void limit_clear(struct limit *l, struct limit_entry *entry)
{
	memset(l->cpus, 0, SYS_CPUS_MAX * sizeof(*l->cpus));
	if (entry->number < COSTS)
		sys_map_update(l->map, &entry->number, l->cpus);
	entry->number = COSTS;
}

/* Remove @entry; the last one takes its place. */
static void limit_remove(struct limit *l, struct limit_entry *entry)
{
	limit_clear(l, entry);
	*entry = l->entries[--l->nentries];
}

void limit_attaching(void *limit, uint32_t target_id)
{
	struct limit *l = limit;
	struct limit_entry *entry = limit_new(l, COST_ATTACHED, target_id);

	if (entry)
		limit_write(l, entry);
}

static struct target *limit_target(const struct limit *l, const struct limit_entry *entry)
{
	struct discover *d = l->config.discover;

	return target_by_id(d->targets, d->ntargets, entry->target_id);
}

/* Attach to the tracepoints of breakdowns again. Return 0 or -errno. */
static int limit_resume_why(struct limit *l)
{
	struct error error = { .kind = ERROR_NONE };
	int err;

	if (!l->paused)
		return 0;
	err = runtime_resume(l->config.runtime);
	if (!err) {
		l->paused = l->failed = false;
		limit_write_others(l, runtime_now(l->config.runtime));
		return 0;
	}
	runtime_pause(l->config.runtime);
	error_set(&error, ERROR_TRACEPOINT, err, "sched_switch", NULL);
	if (!l->failed)
		l->config.runtime->config.error(l->config.runtime->config.arg, &error);
	l->failed = true;
	return err;
}

/* Detach from these tracepoints, which all processes hit, if no server needs them. */
static void limit_pause_why(struct limit *l)
{
	for (size_t i = 0; i < l->nentries; i++)
		if (l->entries[i].uid != COST_ATTACHED && l->entries[i].ladder.step == LADDER_ALL)
			return;
	if (!l->paused)
		limit_write_others(l, UINT64_MAX);
	runtime_pause(l->config.runtime);
	l->paused = true;
}

/* Return the entry of user @uid that is without probes since the same file as @target had some. */
static struct limit_entry *limit_detached(struct limit *l, const struct target *target,
					  uint32_t uid)
{
	for (size_t i = 0; i < l->nentries; i++)
		if (l->entries[i].uid == uid && l->entries[i].ladder.step == LADDER_DETACHED &&
		    process_file_same(&l->entries[i].file, &target->file))
			return &l->entries[i];
	return NULL;
}

static void limit_report(const struct limit *l, const struct limit_entry *entry,
			 enum ladder_step before, uint64_t untraced_ns)
{
	const struct target *target = limit_target(l, entry);

	if (target)
		l->config.event(l->config.arg, &(struct limit_event){
			.target = target, .uid = entry->uid, .before = before,
			.step = entry->ladder.step, .overhead = entry->ladder.overhead,
			.limit = l->config.ladder.limit, .untraced_ns = untraced_ns,
			.ago_ns = before < LADDER_DETACHED && entry->since_ns ?
				  clock_ns(CLOCK_MONOTONIC) - entry->since_ns : 0,
			.pause_ns = ladder_pause_ns(&entry->ladder, &l->config.ladder),
		});
}

/*
 * @file has probes again, or no process runs it. Return for how long it had none; 0: it had, or
 * that was returned before.
 */
static uint64_t limit_end_pause(struct limit *l, const struct process_file *file)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), ns = 0;

	for (size_t i = 0; i < l->nentries; i++) {
		struct limit_entry *entry = &l->entries[i];

		if (!entry->since_ns || !process_file_same(&entry->file, file))
			continue;
		ns += now_ns - entry->since_ns;
		entry->since_ns = entry->until_ns = 0;
	}
	l->untraced_ns += ns;
	return ns;
}

/*
 * User @uid has started the file of @target, which has no probes. If it ran none when they were
 * removed, try them at once: the load of other users must not hide its statements.
 */
static void limit_hurry(struct limit *l, const struct target *target, uint32_t uid)
{
	if (limit_detached(l, target, uid))
		return;
	for (size_t i = 0; i < l->nentries; i++)
		if (l->entries[i].until_ns && l->entries[i].target_id == target->id)
			l->entries[i].until_ns = 1;
}

/* Return a new entry for user @uid of @target; NULL: no room. */
static struct limit_entry *limit_begin(struct limit *l, const struct target *target, uint32_t uid)
{
	struct limit_entry *entry = limit_new(l, uid, target->id);
	bool paused = l->paused;

	if (!entry)
		return NULL;
	entry->file = target->file;
	if (limit_resume_why(l))
		ladder_move(&entry->ladder, &l->config.ladder, LADDER_NO_WHY);
	entry->why_ns = paused ? runtime_now(l->config.runtime) : 0;
	return entry;
}

void limit_add(struct limit *l, const struct target *target, uint32_t uid)
{
	struct limit_entry *entry;
	uint64_t untraced_ns;

	if (!l->config.ladder.limit)
		return;
	if (target->paused_ns) {
		limit_hurry(l, target, uid);
		return;
	}
	for (size_t i = 0; i < l->nentries; i++)
		if (l->entries[i].uid == uid && l->entries[i].target_id == target->id)
			return;
	untraced_ns = limit_end_pause(l, &target->file);
	entry = limit_detached(l, target, uid);
	if (entry) {
		entry->target_id = target->id;
		ladder_move(&entry->ladder, &l->config.ladder, LADDER_NO_TEXT);
		if (!limit_place(l, entry)) {
			limit_remove(l, entry);
			return;
		}
	} else {
		entry = limit_begin(l, target, uid);
		if (!entry)
			return;
	}
	limit_write(l, entry);
	if (untraced_ns)
		limit_report(l, entry, LADDER_DETACHED, untraced_ns);
}

/* Note that the server of @process runs. Limit it if it is not. */
static int limit_each_alive(void *arg, const struct process *process)
{
	struct limit *l = arg;
	const struct target *target = l->finding ?
		discover_target(l->config.discover, &process->file) : NULL;

	if (target && !target->paused_ns && discover_wants_process(l->config.discover, process))
		limit_add(l, target, process->uid);
	for (size_t i = 0; i < l->nentries; i++)
		if (l->entries[i].uid == process->uid &&
		    process_file_same(&l->entries[i].file, &process->file))
			l->entries[i].alive = true;
	return 0;
}

/* Set ->alive of all entries and, if @finding, add those that are missing. Return 0 or -errno. */
static int limit_look(struct limit *l, bool finding)
{
	for (size_t i = 0; i < l->nentries; i++)
		l->entries[i].alive = false;
	l->finding = finding;
	return process_each(engine_is_executable, limit_each_alive, l);
}

/*
 * Return whether the other servers of the file of @of, those that run, are above the limit, too. If
 * not, one user could hide the statements of another one by load.
 */
static bool limit_may_detach(struct limit *l, const struct limit_entry *of)
{
	bool others = false;

	for (size_t i = 0; i < l->nentries; i++) {
		const struct limit_entry *entry = &l->entries[i];

		others |= entry != of && entry->target_id == of->target_id && !entry->above &&
			  entry->uid != COST_ATTACHED;
	}
	if (!others)
		return true;
	if (limit_look(l, false))
		return false;
	for (size_t i = 0; i < l->nentries; i++) {
		const struct limit_entry *entry = &l->entries[i];

		if (entry != of && entry->target_id == of->target_id && !entry->above &&
		    entry->uid != COST_ATTACHED && entry->alive)
			return false;
	}
	return true;
}

/* Remove the probes of @target, of which @of is a server, for some time. */
static void limit_detach(struct limit *l, struct limit_entry *of, struct target *target)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	target->paused_ns = runtime_now(l->config.runtime);
	for (size_t i = l->nentries; i--;) {
		struct limit_entry *entry = &l->entries[i];

		if (entry->target_id != target->id)
			continue;
		limit_clear(l, entry);
		if (entry->uid != COST_ATTACHED)
			ladder_move(&entry->ladder, &l->config.ladder, LADDER_DETACHED);
		entry->since_ns = entry->until_ns = 0;
	}
	of->since_ns = now_ns;
	of->until_ns = now_ns + ladder_pause_ns(&of->ladder, &l->config.ladder);
	target_close(target);
	sessions_forget(l->config.sessions, target->id);
}

/* Take @of to @step, or report that this is not possible. */
static void limit_take(struct limit *l, struct limit_entry *of, struct target *target,
		       enum ladder_step step)
{
	enum ladder_step before = of->ladder.step;

	of->above = step == LADDER_DETACHED;
	if (step == before) {
		of->refused = false;
		return;
	}
	if (step == LADDER_DETACHED && !limit_may_detach(l, of)) {
		if (!of->refused)
			limit_report(l, of, before, 0);
		of->refused = true;
		return;
	}
	if (step == LADDER_ALL && limit_resume_why(l))
		return;
	if (step == LADDER_DETACHED) {
		limit_detach(l, of, target);
	} else {
		of->why_ns = runtime_now(l->config.runtime);
		ladder_move(&of->ladder, &l->config.ladder, step);
		limit_write(l, of);
	}
	limit_pause_why(l);
	limit_report(l, of, before, 0);
}

/* Attach to the file ->resumed by the first process that runs it. */
static int limit_each_resume(void *arg, const struct process *process)
{
	struct limit *l = arg;

	if (!process_file_same(&l->resumed, &process->file) ||
	    !discover_wants_process(l->config.discover, process))
		return 0;
	discover_running(l->config.discover, process);
	return 1;
}

/* Try the probes of the file of @of again. */
static void limit_resume(struct limit *l, struct limit_entry *of)
{
	struct discover *d = l->config.discover;
	struct target *target = limit_target(l, of);
	bool runs;

	/* Its records were handled; the file gets another ID, as its sessions are outdated. */
	if (target)
		target->file.ino = 0;
	l->resumed = of->file;
	/* Unless limit_add() ends the pause. */
	of->until_ns = clock_ns(CLOCK_MONOTONIC) + ladder_pause_ns(&of->ladder, &l->config.ladder);
	d->resuming = true;
	runs = process_each(engine_is_executable, limit_each_resume, l) > 0;
	d->resuming = false;
	if (!runs)
		limit_end_pause(l, &l->resumed);
}

/* Handle the server of @entry, at @now_ns. */
static void limit_sample(struct limit *l, struct limit_entry *entry, struct target *target,
			 uint64_t now_ns)
{
	struct ladder_sample sample = { .elapsed_ns = now_ns - l->last_ns };
	struct cost sum;

	if (entry->uid == COST_ATTACHED || limit_read(l, entry->number, &sum))
		return;
	sample.hits = sum.hits - entry->seen.hits;
	sample.cost_ns = sum.ns - entry->seen.ns + sample.hits * l->trap_ns;
	entry->seen = sum;
	limit_take(l, entry, target, ladder_add(&entry->ladder, &l->config.ladder, &sample));
}

/*
 * Find the servers that cause hits without an element: their processes have changed their user ID
 * after the exec, as mysqld --user does, or there was no room. Remove those that have ended.
 */
static void limit_find(struct limit *l, uint64_t now_ns)
{
	struct cost sum;
	uint64_t end_ns;

	if (now_ns < l->find_ns || limit_read(l, COSTS, &sum) || sum.hits == l->found)
		return;
	l->found = sum.hits;
	if (!limit_look(l, true))
		for (size_t i = l->nentries; i--;)
			if (!l->entries[i].alive && l->entries[i].uid != COST_ATTACHED &&
			    l->entries[i].ladder.step != LADDER_DETACHED)
				limit_remove(l, &l->entries[i]);
	end_ns = clock_ns(CLOCK_MONOTONIC);
	l->find_ns = end_ns + l->config.ladder.period_ns + FIND_SHARE * (end_ns - now_ns);
}

/* Handle @entry at @now_ns: measure it, remove it if it is outdated, or end its pause. */
static void limit_tick_entry(struct limit *l, struct limit_entry *entry, uint64_t now_ns)
{
	struct target *target = limit_target(l, entry);
	bool detached = entry->ladder.step == LADDER_DETACHED;

	if (entry->until_ns) {
		if (now_ns >= entry->until_ns)
			limit_resume(l, entry);
	} else if (!target || (target->paused_ns && entry->uid == COST_ATTACHED)) {
		limit_remove(l, entry);
	} else if (!detached && now_ns > l->last_ns) {
		limit_sample(l, entry, target, now_ns);
	}
}

void limit_tick(struct limit *l)
{
	uint64_t now_ns;

	if (!l->config.ladder.limit)
		return;
	now_ns = clock_ns(CLOCK_MONOTONIC);
	if (now_ns < l->next_ns)
		return;
	/* A step may add entries at the end, or remove some, which then wait for the next time. */
	for (size_t i = l->nentries; i--;)
		if (i < l->nentries)
			limit_tick_entry(l, &l->entries[i], now_ns);
	limit_find(l, now_ns);
	l->last_ns = now_ns;
	l->next_ns = clock_ns(CLOCK_MONOTONIC) + l->config.ladder.period_ns / SAMPLES;
}

int limit_interval_ms(const struct limit *l)
{
	return l->config.ladder.limit ? (int)(l->config.ladder.period_ns / SAMPLES / 1000000) : 0;
}

uint64_t limit_untraced_ns(const struct limit *l)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), ns = l->untraced_ns;

	for (size_t i = 0; i < l->nentries; i++)
		if (l->entries[i].since_ns)
			ns += now_ns - l->entries[i].since_ns;
	return ns;
}

void limit_close(struct limit *l)
{
	free(l->cpus);
	free(l->entries);
	*l = (struct limit){ .trap_ns = 0 };
}
