// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/sample/served.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "db/discover/describe.h"
#include "db/engines.h"
#include "host/clock.h"
#include "host/container.h"
#include "host/open.h"

#define USER_NS		2000000000u	/* time to read the sessions of one user, except root */

/* One pass over all processes. */
struct pass {
	struct served *served;
	uint32_t from;
	int (*each)(void *arg, const struct served_process *of);
	void *arg;
};

/* Return whether the filter selects @process, or the server that it belongs to. */
static bool served_wants(const struct served *served, const struct process *process)
{
	const struct server_filter *filter = served->filter;
	bool wanted = !filter->npids, same = !filter->npaths;

	for (size_t i = 0; i < filter->npids; i++)
		wanted |= process->pid == filter->pids[i] ||
			  (process->ppid == filter->pids[i] &&
			   !process_is_main(process, engine_is_executable));
	for (size_t i = 0; i < filter->npaths && i < SERVED_PATHS; i++)
		same |= process_file_same(&process->file, &served->paths[i]);
	return wanted && same;
}

/* Call ->each for @process if it is of a server that is wanted. */
static int pass_server(struct pass *pass, const struct process *process, struct helper_user *user,
		       uint64_t deadline_ns)
{
	struct served *served = pass->served;
	const struct engine *engine = detect_process(&served->detect, process);
	const struct served_file *file;

	if (!engine || (served->filter->engine && strcmp(engine->name, served->filter->engine)))
		return 0;
	served->shared->matches++;
	file = files_of(&served->files, engine, process);
	if (!file || !file->state)
		return 0;
	return pass->each(pass->arg, &(struct served_process){
		.file = file, .process = process, .user = user, .deadline_ns = deadline_ns,
	});
}

static int pass_process(struct pass *pass, const struct process *process)
{
	struct served *served = pass->served;
	struct helper_user *user;
	uint64_t now_ns, left_ns;
	int ret;

	if (!served_wants(served, process))
		return 0;
	user = helper_user(served->shared, process->uid);
	if (helper_excludes(user)) {
		user->left_out += detect_name(process) != NULL;
		return 0;
	}
	if (process->uid && user->spent_ns >= USER_NS) {
		served->shared->more += detect_name(process) != NULL;
		return 0;
	}
	now_ns = clock_ns(CLOCK_MONOTONIC);
	left_ns = !process->uid ? UINT64_MAX / 2 : USER_NS - user->spent_ns;
	ret = pass_server(pass, process, user, now_ns + left_ns);
	user->spent_ns += clock_ns(CLOCK_MONOTONIC) - now_ns;
	return ret;
}

static int pass_pid(void *arg, uint32_t pid)
{
	struct pass *pass = arg;
	struct process process;
	uint32_t uid;
	int ret = 0;

	if (pid <= pass->from)
		return 0;
	if (pass->served->until_ns && clock_ns(CLOCK_MONOTONIC) >= pass->served->until_ns)
		return 1;
	pass->served->reached = pid;
	if (process_uid(pid, &uid))
		return 0;
	helper_enter(pass->served->shared, pid, uid);
	if (!process_read(pid, engine_is_executable, &process))
		ret = pass_process(pass, &process) != 0;
	helper_leave(pass->served->shared);
	return ret;
}

/* Read the identities of the files of the filter. Return 0, or -errno with the cause in @error. */
static int served_paths(struct served *served, struct error *error)
{
	const struct server_filter *filter = served->filter;
	int fd, err;

	for (size_t i = 0; i < filter->npaths && i < SERVED_PATHS; i++) {
		fd = open_regular(filter->paths[i]);
		err = fd < 0 ? fd : process_file_read(fd, &served->paths[i]);
		if (fd >= 0)
			close(fd);
		if (err)
			return error_set(error, ERROR_FILE, err, filter->paths[i], NULL);
	}
	return 0;
}

/* Return the error for process @pid, which is not one of a server that is wanted. */
static int served_refuse(struct served *served, uint32_t pid, struct error *error)
{
	struct process process;
	char text[32];
	int err = process_read(pid, engine_is_executable, &process);
	const struct engine *engine;

	snprintf(text, sizeof(text), "%u", pid);
	if (err)
		return error_set(error, ERROR_PROCESS, err, text, NULL);
	engine = detect_process(&served->detect, &process);
	if (engine)
		return error_set(error, ERROR_OTHER_SERVER, -ENOENT, process.exe,
				 engine->words[0]);
	return detect_refuse(&process, -1, process.exe, -ENOENT, error);
}

/* Return 0 if file @path, which no process that is wanted runs, is a server's, or the error. */
static int served_refuse_path(const char *path, struct error *error)
{
	int fd = open_regular(path);
	const struct engine *engine = fd < 0 ? NULL : detect_file(path, fd);
	int err = engine ? 0 : detect_refuse(NULL, fd, path, -ENOENT, error);

	if (fd >= 0)
		close(fd);
	return err;
}

int served_each(struct served *served, uint32_t from,
		int (*each)(void *arg, const struct served_process *of), void *arg,
		struct error *error)
{
	struct pass pass = { .served = served, .from = from, .each = each, .arg = arg };
	const struct server_filter *filter = served->filter;
	int err = served_paths(served, error);
	bool none;

	if (err)
		return err;
	err = process_pids(pass_pid, &pass);
	none = !served->shared->matches && !helper_has_stalled(served->shared);
	if (err < 0)
		return error_set(error, ERROR_PROC, err, NULL, NULL);
	if (!err && none && filter->npids)
		return served_refuse(served, filter->pids[0], error);
	if (!err && none && filter->npaths)
		return served_refuse_path(filter->paths[0], error);
	return err;
}

void served_deny(struct served *served, uint32_t pid, int err)
{
	char text[16];

	if (served->denied)
		return;
	served->denied = true;
	snprintf(text, sizeof(text), "%u", pid);
	files_report(&served->files, ERROR_PROCESS, err, text);
}

void served_server(const struct served_file *file, uint32_t main, uint32_t pid,
		   struct server *server)
{
	const struct target *target = &file->target;

	describe_server(server, target->engine, target->version, target->path);
	server->pid = main;
	server->has_uid = true;
	server->uid = file->uid;
	container_read(pid, server->container, sizeof(server->container));
}

void served_clear(struct served *served)
{
	files_clear(&served->files);
	detect_clear(&served->detect);
}
