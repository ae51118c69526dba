// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/ps/ps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/discover/detect.h"
#include "db/discover/servers.h"
#include "db/engines.h"
#include "db/ps/ops.h"
#include "host/clock.h"
#include "host/container.h"
#include "host/elf_map.h"
#include "host/open.h"

#define FILES_OF_USER	64	/* of servers of one user, except root */
#define FILES_MAX	4096
#define USER_NS		2000000000u	/* time to read the sessions of one user, except root */
#define FIND_WORK	(64u << 20)	/* bytes of a file that are read */

/*
 * A server's file, as one user runs it: a user's process can change what it reports of the file,
 * such as the version, but not what is reported of another user's.
 */
struct ps_file {
	uint32_t uid;
	struct target target;		/* only what describes it: no probe is attached */
	const struct ps_ops *ops;
	void *state;			/* of ->ops, owned; NULL: its sessions cannot be listed */
};

struct ps {
	struct ps_config config;
	struct detect detect;
	struct process_file paths[16];	/* of the filter */
	struct ps_file *files;
	size_t nfiles;
	struct servers servers;		/* of the sessions of the last ps_read() */
	bool denied;			/* it was reported that memory cannot be read, .. */
	bool refused;			/* .. that there are too many files */
};

/* The sessions of a user's servers: no user's processes can displace those of another one. */
struct ps_user {
	uint32_t uid;
	size_t n;
	size_t text_bytes;		/* of all texts */
	uint64_t spent_ns;
};

/* One reading of all processes. */
struct scan {
	struct ps *ps;
	struct ps_list *list;
	size_t room;			/* elements of ->list */
	const struct ps_file *file;	/* of the process that is read */
	struct ps_user *users;
	size_t nusers, user;		/* ->user: index of that of ->file's process */
	size_t matches;			/* processes that the filter selects */
	int err;
};

struct ps *ps_open(const struct ps_config *config)
{
	struct ps *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->config = *config;
	return ps;
}

static void ps_report(const struct ps *ps, enum error_kind kind, int code, const char *subject)
{
	struct error error = { .kind = ERROR_NONE };

	error_set(&error, kind, code, subject, NULL);
	ps->config.error(ps->config.arg, &error);
	error_clear(&error);
}

static void file_find(struct ps_file *file, const struct elf *elf, const struct process *process)
{
	const struct engine *engine = file->target.engine;
	struct target *target = &file->target;

	target->lowest_vaddr = elf_map_lowest_vaddr(elf);
	target->version_vaddr = describe_version_vaddr(elf, engine);
	describe_version(elf, engine, target->version, sizeof(target->version));
	target_read_version(target, process, target->version);
	backend_find(elf, engine, &target->places);
	file->state = calloc(1, file->ops->state_bytes);
	if (file->state && file->ops->find(file->state, elf, engine_is_executable)) {
		free(file->state);
		file->state = NULL;
	}
	if (file->state && file->ops->names)
		file->ops->names(file->state, process->pid, target->version);
}

/* Read the file that @process runs. */
static void file_open(const struct ps *ps, struct ps_file *file, const struct process *process)
{
	struct process_file found;
	struct elf_map map;
	int fd = process_open(process), err = fd;

	if (fd >= 0)
		err = process_file_read(fd, &found);
	if (!err && !process_file_same(&found, &process->file))
		err = -ESTALE;
	if (!err)
		err = elf_map_open(&map, fd, NULL);
	if (!err) {
		map.work.left = FIND_WORK;
		file_find(file, &map.elf, process);
		elf_map_close(&map);
	}
	if (fd >= 0)
		close(fd);
	if (err)
		ps_report(ps, ERROR_FILE, err, process->exe);
	else if (!file->state)
		ps_report(ps, ERROR_NO_SESSIONS, -ENOENT, process->exe);
}

/* Report once that a user runs too many files. */
static void ps_refuse_file(struct ps *ps, uint32_t uid)
{
	struct error error = { .kind = ERROR_NONE };
	char user[32];

	if (ps->refused)
		return;
	ps->refused = true;
	snprintf(user, sizeof(user), "user ID %u", uid);
	error_set(&error, ERROR_TOO_MANY, -E2BIG, "files of servers of one user", user);
	ps->config.error(ps->config.arg, &error);
	error_clear(&error);
}

/* Return the file that @process, a server of @engine, runs; NULL if there are too many. */
static const struct ps_file *ps_file(struct ps *ps, const struct engine *engine,
				     const struct process *process)
{
	struct ps_file *file;
	size_t same = 0;

	for (size_t i = 0; i < ps->nfiles; i++) {
		if (ps->files[i].uid != process->uid)
			continue;
		if (process_file_unchanged(&ps->files[i].target.file, &process->file))
			return &ps->files[i];
		same++;
	}
	if ((process->uid && same >= FILES_OF_USER) || ps->nfiles == FILES_MAX) {
		ps_refuse_file(ps, process->uid);
		return NULL;
	}
	file = realloc(ps->files, (ps->nfiles + 1) * sizeof(*file));
	if (!file)
		return NULL;
	ps->files = file;
	file += ps->nfiles++;
	*file = (struct ps_file){ .uid = process->uid };
	file->target.engine = engine;
	file->target.file = process->file;
	snprintf(file->target.path, sizeof(file->target.path), "%s", process->exe);
	file->ops = engine->ps_ops;
	if (file->ops)
		file_open(ps, file, process);
	return file;
}

/* Find the user of a process. Return 0 or -ENOMEM. */
static int scan_user(struct scan *scan, uint32_t uid)
{
	struct ps_user *more;

	for (scan->user = 0; scan->user < scan->nusers; scan->user++)
		if (scan->users[scan->user].uid == uid)
			return 0;
	more = realloc(scan->users, (scan->nusers + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	scan->users = more;
	scan->users[scan->nusers++] = (struct ps_user){ .uid = uid };
	return 0;
}

/* Make room for another session. Return whether there is. */
static bool scan_room(struct scan *scan)
{
	struct ps_list *list = scan->list;
	size_t room = scan->room ? 2 * scan->room : 64;
	struct ps_session *more;

	if (list->n == PS_SESSIONS || scan->users[scan->user].n == PS_USER_SESSIONS) {
		list->more++;
		return false;
	}
	if (list->n < scan->room)
		return true;
	more = realloc(list->session, room * sizeof(*more));
	if (!more) {
		scan->err = -ENOMEM;
		return false;
	}
	list->session = more;
	scan->room = room;
	return true;
}

/* Cut the text if all of the user's have become too long, and shrink its memory. */
static void scan_text(struct scan *scan, struct ps_session *session)
{
	struct ps_user *user = &scan->users[scan->user];
	char *text;

	if (user->text_bytes > PS_TEXT_BYTES && session->len > PS_TEXT_LEAST) {
		session->len = PS_TEXT_LEAST;
		session->cut = true;
	}
	user->text_bytes += session->len;
	text = realloc(session->text, session->len + 1);
	if (text)
		session->text = text;
}

/* Return the server of a session of ->file in process @pid, or NULL. */
static const struct server *scan_server(struct scan *scan, uint32_t pid, uint32_t main)
{
	const struct target *target = &scan->file->target;
	struct server server;

	describe_server(&server, target->engine, target->version, target->path);
	server.pid = main;
	server.has_uid = true;
	server.uid = scan->file->uid;
	container_read(pid, server.container, sizeof(server.container));
	return servers_keep(&scan->ps->servers, (uint32_t)(scan->file - scan->ps->files), &server);
}

static bool scan_add(void *arg, struct ps_session *session, uint32_t main)
{
	struct scan *scan = arg;
	bool room = scan_room(scan);

	session->server = room ? scan_server(scan, session->who.pid, main) : NULL;
	if (room && !session->server)
		scan->err = -ENOMEM;
	if (!session->server) {
		free(session->text);
		return false;
	}
	if (session->text)
		scan_text(scan, session);
	scan->users[scan->user].n++;
	scan->list->session[scan->list->n++] = *session;
	return true;
}

/* Return whether the filter selects @process, or the server that it belongs to. */
static bool scan_wants(const struct ps *ps, const struct process *process)
{
	const struct server_filter *filter = &ps->config.servers;
	bool wanted = !filter->npids, same = !filter->npaths;

	for (size_t i = 0; i < filter->npids; i++)
		wanted |= process->pid == filter->pids[i] ||
			  (process->ppid == filter->pids[i] &&
			   !process_is_main(process, engine_is_executable));
	for (size_t i = 0; i < filter->npaths && i < sizeof(ps->paths) / sizeof(*ps->paths); i++)
		same |= process_file_same(&process->file, &ps->paths[i]);
	return wanted && same;
}

/* Read the sessions of @process. Return 0, or -errno to read no other process. */
static int scan_process(struct scan *scan, const struct process *process, uint64_t deadline_ns)
{
	struct ps *ps = scan->ps;
	const struct engine *engine;
	char pid[16];
	int err;

	engine = detect_process(&ps->detect, process);
	if (!engine || (ps->config.servers.engine &&
			strcmp(engine->name, ps->config.servers.engine)))
		return 0;
	scan->matches++;
	scan->file = ps_file(ps, engine, process);
	if (!scan->file || !scan->file->state)
		return 0;
	err = scan->file->ops->read(scan->file->state, &(struct ps_query){
		.engine = engine, .process = process, .places = &scan->file->target.places,
		.lowest = scan->file->target.lowest_vaddr, .text_bytes = ps->config.text_bytes,
		.deadline_ns = deadline_ns, .more = &scan->list->more,
		.add = scan_add, .arg = scan,
	});
	if ((err == -EACCES || err == -EPERM) && !ps->denied) {
		ps->denied = true;
		snprintf(pid, sizeof(pid), "%u", process->pid);
		ps_report(ps, ERROR_PROCESS, err, pid);
	}
	if (err == -EAGAIN)
		ps_report(ps, ERROR_NO_SESSIONS, err, process->exe);
	return scan->err;
}

static int scan_each(void *arg, const struct process *process)
{
	struct scan *scan = arg;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), left_ns;
	struct ps_user *user;

	if (!scan_wants(scan->ps, process))
		return 0;
	scan->err = scan_user(scan, process->uid);
	if (scan->err)
		return scan->err;
	user = &scan->users[scan->user];
	left_ns = !process->uid ? UINT64_MAX / 2 : USER_NS - user->spent_ns;
	if (process->uid && user->spent_ns >= USER_NS) {
		scan->list->more += detect_name(process) != NULL;
		return 0;
	}
	scan->err = scan_process(scan, process, now + left_ns);
	user->spent_ns += clock_ns(CLOCK_MONOTONIC) - now;
	return scan->err;
}

/* Read the identities of the files of the filter. Return 0, or -errno with the cause in @error. */
static int ps_paths(struct ps *ps, struct error *error)
{
	const struct server_filter *filter = &ps->config.servers;
	int fd, err;

	for (size_t i = 0; i < filter->npaths && i < sizeof(ps->paths) / sizeof(*ps->paths); i++) {
		fd = open_regular(filter->paths[i]);
		err = fd < 0 ? fd : process_file_read(fd, &ps->paths[i]);
		if (fd >= 0)
			close(fd);
		if (err)
			return error_set(error, ERROR_FILE, err, filter->paths[i], NULL);
	}
	return 0;
}

/* Return the error for process @pid, which is not one of a server that is wanted. */
static int ps_refuse(struct ps *ps, uint32_t pid, struct error *error)
{
	struct process process;
	char text[32];
	int err = process_read(pid, engine_is_executable, &process);
	const struct engine *engine;

	snprintf(text, sizeof(text), "%u", pid);
	if (err)
		return error_set(error, ERROR_PROCESS, err, text, NULL);
	engine = detect_process(&ps->detect, &process);
	if (engine)
		return error_set(error, ERROR_OTHER_SERVER, -ENOENT, process.exe,
				 engine->words[0]);
	return detect_refuse(&process, process.exe, -ENOENT, error);
}

/* Return 0 if file @path, which no process that is wanted runs, is a server's, or the error. */
static int ps_refuse_path(const char *path, struct error *error)
{
	int fd = open_regular(path);
	const struct engine *engine = fd < 0 ? NULL : detect_file(path, fd);

	if (fd >= 0)
		close(fd);
	return engine ? 0 : detect_refuse(NULL, path, -ENOENT, error);
}

int ps_read(struct ps *ps, struct ps_list *list, struct error *error)
{
	struct scan scan = { .ps = ps, .list = list };
	int err = ps_paths(ps, error);

	*list = (struct ps_list){ .session = NULL };
	if (err)
		return err;
	servers_clear(&ps->servers);
	err = process_each(engine_is_executable, scan_each, &scan);
	free(scan.users);
	if (scan.err)
		err = error_set(error, ERROR_MEMORY, scan.err, NULL, NULL);
	else if (err)
		err = error_set(error, ERROR_PROC, err, NULL, NULL);
	else if (!scan.matches && ps->config.servers.npids)
		err = ps_refuse(ps, ps->config.servers.pids[0], error);
	else if (!scan.matches && ps->config.servers.npaths)
		err = ps_refuse_path(ps->config.servers.paths[0], error);
	list->servers = scan.matches;
	if (err)
		ps_list_free(list);
	return err;
}

void ps_list_free(struct ps_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->session[i].text);
	free(list->session);
	*list = (struct ps_list){ .session = NULL };
}

void ps_close(struct ps *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->nfiles; i++)
		free(ps->files[i].state);
	free(ps->files);
	detect_clear(&ps->detect);
	servers_clear(&ps->servers);
	free(ps);
}
