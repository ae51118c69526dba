// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/discover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/event.h"
#include "db/discover/await.h"
#include "db/discover/unused.h"
#include "db/engines.h"
#include "host/clock.h"
#include "host/open.h"
#include "host/pid_namespace.h"
#include "loader/sys.h"
#include "probe/wanted.h"

#define FORGET_AT	64	/* attached files from which on unused ones are detached */
#define SHARE_FIRST	4	/* files of each user, before any has more .. */
#define TIME_FIRST_NS	100000000u	/* .. and the time of reading files */
#define TIME_NS		30000000000u	/* of reading files of one user at the start */
#define SHARE		256	/* files of one user */
#define SHARE_SLOW	64	/* .. if they are not detached at once */
#define LOADING_TRIES	40
#define LOADING_NS	25000000u	/* between two tries */

/* Do not attach to the file of @target while a server that runs it may copy its code. */
static int discover_copies(void *arg, const struct target *target, struct error *error)
{
	struct discover *d = arg;
	const struct process *candidate = d->candidate;
	uint32_t uid = candidate ? candidate->uid : YOUNG_ANY_USER, pid;
	uint64_t left_ns = YOUNG_NS;
	char text[32];

	/* A process may be old before it executes the server, such as the script of a container. */
	pid = candidate && d->executed ? candidate->pid :
					 young_process(&target->file, &uid, &left_ns);
	if (!pid)
		return 0;
	snprintf(text, sizeof(text), "pid %u", pid);
	error_set(error, ERROR_YOUNG, -EAGAIN, target->path, text);
	if (young_add(&d->young, &target->file, uid, left_ns))
		d->error(d->listener, error);
	return -EAGAIN;
}

int discover_init(struct discover *d, const struct server_filter *filter, struct error *error)
{
	int err;

	*d = (struct discover){ .filter = filter, .forget_at = FORGET_AT };
	d->detect.pause = &d->common.pause;
	d->common.ntargets = &d->ntargets;
	d->common.copies = discover_copies;
	d->common.copies_arg = d;
	if (!filter->start)
		return 0;
	err = user_engine_init(&d->user_engine, filter->start, filter->done, filter->text_arg);
	if (err)
		return error_set(error, ERROR_NO_PROBES, err, filter->start, "PROVIDER:NAME");
	d->engines[0] = &d->user_engine.engine;
	return 0;
}

int discover_open(struct discover *d, struct runtime *rt, struct error *error)
{
	static const struct map_def maps[] = {
		{ "pids", BPF_MAP_TYPE_HASH, 4, 1, DISCOVER_PIDS, 0 },
		{ "servers", BPF_MAP_TYPE_HASH, 8, sizeof(struct wanted_server), DISCOVER_PIDS, 0 },
		{ "comms", BPF_MAP_TYPE_HASH, sizeof(struct exec_name), 1, AWAIT_NAMES_MAX,
		  RUNTIME_ALLOC },
	};
	const struct server_filter *filter = d->filter;
	int err = runtime_maps(rt, maps, sizeof(maps) / sizeof(maps[0]), error);

	if (err)
		return err;
	d->runtime = d->common.runtime = rt;
	d->pids = runtime_map(rt, "pids");
	d->servers = runtime_map(rt, "servers");
	d->comms = runtime_map(rt, "comms");
	runtime_constant(rt, "constant_filter_pids", filter->npids > 0);
	/* Those of an engine that is known have the PID of their server. */
	d->later = wanted_children(rt, filter->npids && filter->start);
	runtime_constant(rt, "constant_ns_pids", (filter->npids || rt->pid_ns_ino) &&
						 feature_has(&rt->features, FEATURE_NS_PID));
	/* With -p and -x all files to trace are known at the start. */
	runtime_constant(rt, "constant_want_execs", !filter->npids && !filter->npaths);
	await_servers(d->comms, filter->paths, filter->npaths);
	return 0;
}

bool discover_waits(const struct discover *d)
{
	return young_any(&d->young);
}

size_t discover_attached(const struct discover *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->ntargets; i++)
		n += d->targets[i].links.count > 0;
	return n;
}

struct target *discover_target(const struct discover *d, const struct process_file *file)
{
	for (size_t i = 0; i < d->ntargets; i++)
		if (process_file_same(&d->targets[i].file, file))
			return &d->targets[i];
	return NULL;
}

bool discover_wants_process(const struct discover *d, const struct process *process)
{
	const struct server_filter *filter = d->filter;

	for (size_t i = 0; i < filter->npids; i++)
		if (filter->pids[i] == process->pid || filter->pids[i] == process->ppid)
			return true;
	return !filter->npids;
}

static bool discover_wants(void *arg, const struct process *process)
{
	return discover_wants_process(arg, process);
}

static bool discover_wants_main(void *arg, uint32_t pid)
{
	const struct discover *d = arg;

	for (size_t i = 0; i < d->nwanted; i++)
		if (d->wanted[i] == pid)
			return true;
	return !d->filter->npids;
}

/* Report the targets [@first, @end). See announce_targets(). */
static int discover_announce(struct discover *d, size_t first, size_t end, struct error *error)
{
	return announce_targets(&(struct announce){
		.targets = d->targets + first, .count = end - first, .runtime = d->runtime,
		.by_pid = d->filter->npids, .by_path = d->filter->npaths,
		.pause = d->common.pause, .arg = d, .wants = discover_wants,
		.wants_main = discover_wants_main,
		.process_arg = d->process_arg, .process = d->process,
		.listener = d->listener, .server = d->server, .error = d->error,
	}, error);
}

/* Attach to the file open as @fd as a server of engine @i. Return as below. */
static int discover_try(struct discover *d, size_t i, int fd, const char *path,
			struct error *error)
{
	error_clear(error);
	return target_open(&d->targets[d->ntargets], &(struct target_file){
		.engine = discover_engines(d)[i], .fd = fd, .path = path,
		.id = d->next_id, .engine_number = (uint32_t)i,
	}, &d->common, error);
}

/*
 * Set @error to what the file open as @fd is, which cannot be traced as a server of @engine, or as
 * one of any if that is NULL. Return as below.
 */
static int discover_refuse(struct discover *d, const char *engine, int fd, const char *path,
			   int err, struct error *error)
{
	const struct engine *found = detect_file(path, fd);
	size_t i = 0;

	if (detect_is_embedded(path, fd) || (!found && (!engine || d->filter->npids)))
		return detect_refuse(NULL, fd, path, err, error);
	if (found && engine && strcmp(found->name, engine))
		return error_set(error, ERROR_OTHER_SERVER, err, path, found->words[0]);
	if (!found || engine)
		return err;
	/* What it lacks as a server of its own engine, not of the one that was tried last. */
	while (discover_engines(d)[i] != found)
		i++;
	return discover_try(d, i, fd, path, error);
}

/*
 * Attach to the file open as @fd as a server of @engine, or of the first engine whose probes it has
 * if that is NULL. Return 0, -EAGAIN if that is to be done later, or -errno with the cause in
 * @error.
 */
static int discover_attach(struct discover *d, const char *engine, int fd, const char *path,
			   struct error *error)
{
	const struct engine *const *engines = discover_engines(d);
	struct target *more;
	int err = -ENOENT;

	if (!d->filter->npaths && !d->filter->npids &&
	    unused_attached(d->targets, d->ntargets, NULL) >= d->forget_at &&
	    unused_detach(d->targets, d->ntargets, 0, &d->common.pause))
		d->forget_at = FORGET_AT + unused_attached(d->targets, d->ntargets, NULL);
	more = realloc(d->targets, (d->ntargets + 1) * sizeof(*more));
	if (!more)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	d->targets = more;
	for (size_t i = 0; err && engines[i]; i++) {
		if ((engine && strcmp(engine, engines[i]->name)) ||
		    (d->common.no_statements && !engines[i]->lock_ops))
			continue;
		/* If the file has a probe but its site is unusable, no other engine can do. */
		if (!error_lacks_probes(error))
			break;
		err = discover_try(d, i, fd, path, error);
	}
	if (err && error->kind == ERROR_NONE)
		return error_set(error, ERROR_NO_PROBES, err, path, "probes of lock waits");
	if (err && !*d->engines && error_is_of_build(error))
		err = discover_refuse(d, engine, fd, path, err, error);
	if (!err || error->kind == ERROR_YOUNG)
		error_clear(error);
	if (!err && !d->resuming && more[d->ntargets - 1].refused.kind != ERROR_NONE)
		d->error(d->listener, &more[d->ntargets - 1].refused);
	d->next_id += !err;
	return err;
}

/* Detach from a file that was rewritten in place: the instructions at the sites are others. */
static void discover_outdate(struct discover *d, const struct process_file *file)
{
	for (size_t i = 0; d->targets && i < d->ntargets; i++) {
		struct target *target = &d->targets[i];

		if (target->file.dev == file->dev && target->file.ino == file->ino) {
			target_close(target);
			target->file.ino = 0;
		}
	}
}

/* Return whether the error is one of the file's content: trying again would be the same. */
static bool error_is_content(const struct error *error)
{
	if (error->kind == ERROR_TOO_LARGE)
		return error->code != -EINTR;
	return error_is_of_build(error) || error->kind == ERROR_SITE ||
	       error->kind == ERROR_UNUSABLE || error->kind == ERROR_NOP ||
	       error->kind == ERROR_NOT_SERVER || error->kind == ERROR_EMBEDDED ||
	       error->kind == ERROR_NOT_ELF ||
	       error->kind == ERROR_MACHINE || error->kind == ERROR_32_BIT;
}

/* Return whether the user names the files, or the probes: no engine is detected then. */
static bool discover_is_named(const struct discover *d)
{
	return d->filter->npaths || d->filter->start;
}

/* Attach to the executable of @process unless it is a target already. Return as above. */
static int discover_attach_process(struct discover *d, const char *engine,
				   const struct process *process, struct error *error)
{
	struct process_file file;
	int fd, err;

	if (discover_target(d, &process->file))
		return 0;
	if (!d->executed && young_is(&d->young, &process->file, process->uid))
		return -EAGAIN;
	discover_outdate(d, &process->file);
	fd = process_open(process);
	if (fd < 0)
		return error_set(error, ERROR_FILE, fd, process->exe, NULL);
	/* By exec, another program may have taken the place of the one whose path this is. */
	if (process_file_read(fd, &file) || !process_file_same(&file, &process->file))
		err = error_set(error, ERROR_FILE, -ESTALE, process->exe, NULL);
	else {
		d->candidate = process;
		err = discover_attach(d, engine, fd, process->exe, error);
		d->candidate = NULL;
	}
	close(fd);
	if (!err)
		d->targets[d->ntargets - 1].uid = process->uid;
	if (err && (engine || discover_is_named(d)) && error_is_content(error))
		detect_reject(&d->detect, process);
	if (!err)
		await_process(d->comms, process);
	return err;
}

/* Return whether @process may be attached to. If not, that is reported once a user. */
static bool discover_has_share(struct discover *d, const struct process *process)
{
	struct error error = { .kind = ERROR_NONE };

	if (discover_target(d, &process->file) ||
	    share_allows(&d->share, d->targets, d->ntargets, process))
		return true;
	if (share_refuse(&d->share, process, &error))
		d->error(d->listener, &error);
	return false;
}

static int discover_attach_path(struct discover *d, const char *path, struct error *error)
{
	int fd = open_regular(path), err = 0;
	struct process_file file;

	if (fd < 0)
		return error_set(error, fd == -EINVAL ? ERROR_NOT_ELF : ERROR_FILE, fd, path, NULL);
	if (process_file_read(fd, &file) || !discover_target(d, &file))
		err = discover_attach(d, d->filter->engine, fd, path, error);
	close(fd);
	return err == -EAGAIN ? 0 : err;
}

/* Return the name of the engine that @process is a server of, NULL if none or not wanted. */
static const char *discover_engine(struct discover *d, const struct process *process)
{
	const struct engine *engine = detect_process(&d->detect, process);

	return engine && (!d->filter->engine || !strcmp(engine->name, d->filter->engine)) ?
	       engine->name : NULL;
}

struct scan {
	struct discover *discover;
	struct error *error;
	int err;
	bool first;			/* only the first files of each user .. */
	bool more;			/* .. and there are others */
};

/* Attach to @process if it is a wanted server. Keep the first failure. */
static void scan_process(struct scan *scan, const struct process *process)
{
	struct discover *d = scan->discover;
	struct error error = { .kind = ERROR_NONE };
	const char *engine;
	int err;

	engine = discover_engine(d, process);
	if (!engine || !discover_has_share(d, process))
		return;
	err = discover_attach_process(d, engine, process, &error);
	/* Ignore failures of files that merely export a matching symbol. */
	if (err && err != -EAGAIN && !scan->err && detect_name(process)) {
		scan->err = err;
		*scan->error = error;
		error.log = NULL;
	}
	error_clear(&error);
}

static int scan_each(void *arg, const struct process *process)
{
	struct scan *scan = arg;
	struct discover *d = scan->discover;
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);

	if (runtime_stopped(d->runtime))
		return 0;
	if (!share_has_time(&d->share, process) ||
	    (scan->first && !share_allows(&d->share, d->targets, d->ntargets, process))) {
		scan->more = true;
		return 0;
	}
	scan_process(scan, process);
	share_spend(&d->share, process, clock_ns(CLOCK_MONOTONIC) - begin_ns);
	return 0;
}

/*
 * Attach to all running servers. Return -errno with the cause in @error only if servers were found
 * and none can be traced; if some can, report the failure.
 */
static int discover_scan(struct discover *d, struct error *error)
{
	struct scan scan = { .discover = d, .error = error, .first = true };
	int err;

	d->share.files = SHARE_FIRST;
	share_begin(&d->share, TIME_FIRST_NS);
	err = process_each(engine_is_executable, scan_each, &scan);
	d->share.files = d->runtime->method == ATTACH_MULTI ? SHARE : SHARE_SLOW;
	scan.first = false;
	share_begin(&d->share, TIME_NS);
	if (!err && scan.more)
		err = process_each(engine_is_executable, scan_each, &scan);
	if (err)
		return error_set(error, ERROR_PROC, err, NULL, NULL);
	if (!scan.err)
		return 0;
	if (!d->ntargets)
		return scan.err;
	d->error(d->listener, error);
	error_clear(error);
	return 0;
}

/* Have the kernel trace the backends of the server whose main process is @process. */
static int discover_want_server(struct discover *d, const struct process *process,
				struct error *error)
{
	struct wanted_server wanted = { 0 };
	uint64_t key = process->ns_pid, dev, ino;
	char pid[16];
	int err;

	snprintf(pid, sizeof(pid), "%u", process->pid);
	err = pid_namespace_read(process->pid, &dev, &ino);
	if (err)
		return error_set(error, ERROR_PROCESS, err, pid, NULL);
	sys_map_lookup(d->servers, &key, &wanted);
	for (int i = 0; i < WANTED_NAMESPACES; i++) {
		if (wanted.ns[i].ino)
			continue;
		wanted.ns[i].dev = dev;
		wanted.ns[i].ino = ino;
		wanted.ns[i].uid = process->uid;
		err = sys_map_update(d->servers, &key, &wanted);
		return err ? error_set(error, ERROR_MAP, err, "servers", NULL) : 0;
	}
	return error_set(error, ERROR_TOO_MANY, -E2BIG, "servers with the same PID", pid);
}

/*
 * Have the kernel trace process @pid: a backend, or a main process with all its backends. Called
 * before probes are attached: a session that is not wanted at its first hit is ignored for good.
 */
static int discover_want_pid(struct discover *d, uint32_t pid, struct error *error)
{
	struct process process;
	char yes = 1, text[32];
	int err = process_read(pid, engine_is_executable, &process);
	bool backend;

	snprintf(text, sizeof(text), "%u", pid);
	if (err)
		return error_set(error, ERROR_PROCESS, err, text, NULL);
	backend = !process_is_main(&process, engine_is_executable);
	if (d->nwanted < DISCOVER_PIDS)
		d->wanted[d->nwanted++] = backend ? process.ppid : pid;
	if (d->filter->start)
		return wanted_pid(d->runtime, pid, d->later, error);
	err = sys_map_update(d->pids, &pid, &yes);
	if (err)
		return error_set(error, ERROR_MAP, err, "pids", NULL);
	return backend ? 0 : discover_want_server(d, &process, error);
}

static int discover_attach_pid(struct discover *d, uint32_t pid, struct error *error)
{
	struct process process;
	char text[32];
	int err = process_read(pid, engine_is_executable, &process);

	snprintf(text, sizeof(text), "%u", pid);
	if (err)
		return error_set(error, ERROR_PROCESS, err, text, NULL);
	err = discover_attach_process(d, d->filter->engine, &process, error);
	return error->kind == ERROR_NOT_SERVER || error->kind == ERROR_EMBEDDED ?
	       detect_refuse(&process, -1, process.exe, err, error) : err == -EAGAIN ? 0 : err;
}

int discover_find(struct discover *d, struct error *error)
{
	int err = 0;

	for (size_t i = 0; !err && i < d->filter->npids; i++)
		err = discover_want_pid(d, d->filter->pids[i], error);
	for (size_t i = 0; !err && i < d->filter->npids && !runtime_stopped(d->runtime); i++)
		err = discover_attach_pid(d, d->filter->pids[i], error);
	for (size_t i = 0; !err && i < d->filter->npaths && !runtime_stopped(d->runtime); i++)
		err = discover_attach_path(d, d->filter->paths[i], error);
	if (!err && !d->filter->npaths && !d->filter->npids)
		err = discover_scan(d, error);
	return err ? err : discover_announce(d, 0, d->ntargets, error);
}

/* Return whether @file is one of filter->paths, as they are at present. */
static bool discover_wants_file(const struct discover *d, const struct process_file *file)
{
	for (size_t i = 0; i < d->filter->npaths; i++) {
		int fd = open_regular(d->filter->paths[i]);
		struct process_file wanted;
		bool same = fd >= 0 && !process_file_read(fd, &wanted) &&
			    process_file_same(&wanted, file);

		if (fd >= 0)
			close(fd);
		if (same)
			return true;
	}
	return false;
}

/*
 * Check @pid again later: it runs the dynamic loader, which has not mapped the program yet, or it
 * is to be announced with @target, 1 + its ID. Return whether there is room.
 */
static bool discover_loading(struct discover *d, uint32_t pid, uint32_t target)
{
	for (size_t i = 0; i < DISCOVER_LOADING; i++) {
		if (d->loading[i].pid)
			continue;
		d->loading[i] = (struct loading){ pid, LOADING_TRIES,
						  clock_ns(CLOCK_MONOTONIC) + LOADING_NS, target };
		return true;
	}
	return false;
}

/* Attach to the executable of @process, which was just started, if it is a wanted server. */
static void discover_check(struct discover *d, const struct process *process)
{
	struct error error = { .kind = ERROR_NONE };
	const struct target *target;
	size_t first = d->ntargets;
	bool named = discover_is_named(d);
	const char *engine = named ? d->filter->engine : discover_engine(d, process);
	int err;

	if (named ? detect_is_rejected(&d->detect, process) : !engine)
		return;
	if (d->filter->npaths && !d->resuming && !discover_wants_file(d, &process->file))
		return;
	d->started |= engine || d->filter->npaths;
	if ((d->filter->npids && !d->resuming &&
	     !(discover_waits(d) && discover_wants_process(d, process))) ||
	    !discover_has_share(d, process))
		return;
	err = discover_attach_process(d, engine, process, &error);
	target = err ? NULL : discover_target(d, &process->file);
	/* Ignore failures of files that merely export a matching symbol. */
	if (err && err != -EINTR && err != -EAGAIN && (named || detect_name(process)))
		d->error(d->listener, &error);
	else if (d->ntargets > first && !(target && target_is_starting(target, process) &&
					  discover_loading(d, process->pid, target->id + 1)))
		discover_announce(d, first, d->ntargets, NULL);
	else if (d->ntargets == first && target && d->restarted)
		d->restarted(d->process_arg, target, process);
	error_clear(&error);
}

void discover_running(struct discover *d, const struct process *process)
{
	if (!process_is_loading(process) && !discover_target(d, &process->file))
		discover_check(d, process);
}

bool discover_again(struct discover *d)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct process process;
	struct target *target;
	bool left = false, ended;
	size_t first;

	for (struct loading *l = d->loading; l < d->loading + DISCOVER_LOADING; l++) {
		if (l->pid && now >= l->next_ns) {
			l->next_ns = now + LOADING_NS;
			/* The target may have been removed. */
			target = l->target ? target_by_id(d->targets, d->ntargets, l->target - 1) :
					     NULL;
			ended = process_read(l->pid, engine_is_executable, &process) || !--l->tries;
			if (ended || (l->target ? !target || !target_is_starting(target, &process) :
						  !process_is_loading(&process)))
				l->pid = 0;
			first = target ? (size_t)(target - d->targets) : 0;
			if (!l->pid && l->target)
				discover_announce(d, first, first + !!target, NULL);
			else if (!l->pid && !ended)
				discover_check(d, &process);
		}
		left |= l->pid != 0;
	}
	return left;
}

void discover_executed(struct discover *d, const struct event_exec *exec)
{
	uint32_t pid = exec->session.pid;
	struct process process;
	bool alive = !process_read(pid, engine_is_executable, &process);

	if (!(alive && await_is(exec, &process)))
		await_again(d->comms, exec);
	if (!alive)
		return;
	/* Without a name, the process was found, not executed. */
	d->executed = *exec->name.comm;
	if (!process_is_loading(&process))
		discover_check(d, &process);
	else if (!d->filter->npids)
		discover_loading(d, pid, 0);
	d->executed = false;
}

unsigned int discover_needs(const struct discover *d)
{
	return d->filter->npids && !discover_waits(d) ? SANDBOX_READ :
							SANDBOX_READ | SANDBOX_ATTACH;
}

void discover_detach(struct discover *d)
{
	struct uprobe_links links = { 0 };

	/* The records that come meanwhile are handled afterwards. */
	if (d->runtime)
		d->runtime->attacher.pause = (struct elf_pause){ 0 };
	for (size_t i = 0; i < d->ntargets; i++) {
		uprobe_set_move(&links, &d->targets[i].links);
		target_close(&d->targets[i]);
	}
	uprobe_set_detach(&links);
}

void discover_close(struct discover *d)
{
	discover_detach(d);
	unused_close(&d->unused);
	free(d->targets);
	detect_clear(&d->detect);
}
