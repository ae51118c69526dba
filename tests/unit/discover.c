// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * db/discover/discover in a world of our own: which processes and files are servers of which
 * engine, and which of them -p, -x, an engine's name and probes named by the user select. Nothing
 * is attached.
 */
#include <errno.h>
#include <unistd.h>

#include "db/discover/detect.h"
#include "db/discover/target.h"
#include "db/engines.h"
#include "host/arch.h"
#include "host/clock.h"
#include "host/pid_namespace.h"
#include "loader/sys.h"

/* The module under test, beside the one of the library. */
#define discover_init		tested_init
#define discover_open		tested_open
#define discover_find		tested_find
#define discover_executed	tested_executed
#define discover_again		tested_again
#define discover_needs		tested_needs
#define discover_detach		tested_detach
#define discover_close		tested_close
#define await_servers		tested_await_servers
#define await_process		tested_await_process
#define await_is		tested_await_is
#define await_again		tested_await_again
#define await_renew		tested_await_renew
#define unused_remove		tested_unused_remove
#define unused_attached		tested_unused_attached
#define unused_by_id		tested_unused_by_id
#define unused_close		tested_unused_close
#define unused_detach		tested_unused_detach
#define discover_running	tested_running
#define discover_waits		tested_waits
#define discover_attached	tested_attached
#define announce_targets	tested_announce
#define young_process		tested_young_process
#define young_add		tested_young_add
#define young_is		tested_young_is
#define young_any		tested_young_any
#define young_due		tested_young_due
#define discover_target		tested_target
#define discover_wants_process	tested_wants_process
#define share_begin		tested_share_begin
#define share_has_time		tested_share_has_time
#define share_spend		tested_share_spend
#define share_allows		tested_share_allows
#define share_refuse		tested_share_refuse
#define share_make_room		tested_share_make_room
#include "db/discover/await.h"
#include "db/discover/discover.h"

/* Calls that read the host or the kernel. */
#define process_each		fake_process_each
#define process_read		fake_process_read
#define process_is_main		fake_process_is_main
#define process_is_loading	fake_process_is_loading
#define process_open		fake_process_open
#define open_regular	fake_file_open
#define process_file_read	fake_file_read
#define pid_namespace_read	fake_namespace_read
#define pid_namespace_is_nested(pid, own)	((void)(pid), (void)(own), false)
#define close			fake_close
#define clock_ns		fake_clock_ns
#define process_code_moved	fake_code_moved
#define process_age_ns		fake_age_ns
#define detect_process		fake_detect_process
#define detect_reject(detect, process)	((void)(detect), (void)(process))
#define detect_is_rejected(detect, process)	((void)(detect), (void)(process), false)
#define target_open		fake_target_open
#define target_close		fake_target_close
#define target_is_starting	fake_is_starting
#define sys_map_update		fake_map_update
#define sys_map_lookup		fake_map_lookup
#define sys_map_delete		fake_map_delete
#define sys_map_next		fake_map_next
#define runtime_maps		fake_runtime_maps
#define runtime_map		fake_runtime_map
#define runtime_constant	fake_runtime_constant
#define feature_has		fake_feature_has
#define wanted_children		fake_wanted_children
#define wanted_pid		fake_wanted_pid
#include "tests/unit/check.h"

#define FILES_MAX	600
#define NO_PID		4194305u	/* larger than any */
#define FD_FIRST	1000
#define PIDS		1	/* maps */
#define SERVERS		2
#define COMMS		3

/* A file: its symbols are of @exports, its probes of @probes. */
static struct fake_file {
	const char *path, *exports, *probes;
	ino_t ino;
	enum error_kind refused;	/* why its probes are unusable; ERROR_NONE: they are fine */
	bool attached, copies;
	uint64_t takes_ns;		/* to read it */
} files[FILES_MAX];

static struct fake_process {
	uint32_t pid, ppid;
	const char *path;
	uint32_t uid;
	bool loading, copied;
	int64_t age_ns;
} processes[FILES_MAX];

static size_t nfiles, nprocesses, nupdates[4], nseeded, nerrors, nservers;
static struct exec_name awaited[AWAIT_NAMES_MAX];	/* map "comms" */
static size_t nawaited;
static uint32_t selected;	/* with its children */
static bool filters_pids, wants_execs;	/* constants */
static uint32_t traced_pids[8], announced[8];
static size_t nannounced;
static uint64_t now_ns = 1;
static const char *memory_version;	/* of all servers; NULL: they have none there */
static char said[256];		/* subjects of errors that were reported */

static struct fake_file *file_find(const char *path)
{
	for (size_t i = 0; i < nfiles; i++)
		if (!strcmp(files[i].path, path))
			return &files[i];
	return NULL;
}

static bool fake_fill(const struct fake_process *from, struct process *process)
{
	const struct fake_file *file = file_find(from->path);

	*process = (struct process){ .pid = from->pid, .ppid = from->ppid, .ns_pid = from->pid,
				     .uid = from->uid };
	snprintf(process->exe, sizeof(process->exe), "%s", from->path);
	process->file.ino = file ? file->ino : 1;
	return true;
}

static int fake_process_read(uint32_t pid, bool (*is_program)(const char *),
			     struct process *process)
{
	(void)is_program;
	for (size_t i = 0; i < nprocesses; i++)
		if (processes[i].pid == pid)
			return fake_fill(&processes[i], process) ? 0 : -ENOENT;
	return -ENOENT;
}

static int fake_process_each(bool (*is_program)(const char *),
			     int (*each)(void *, const struct process *), void *arg)
{
	struct process process;

	(void)is_program;
	for (size_t i = 0; i < nprocesses; i++) {
		int err = fake_fill(&processes[i], &process) ? each(arg, &process) : 0;

		if (err)
			return err;
	}
	return 0;
}

static bool fake_process_is_main(const struct process *process, bool (*is_program)(const char *))
{
	struct process parent;

	return fake_process_read(process->ppid, is_program, &parent) ||
	       parent.file.ino != process->file.ino;
}

static bool fake_process_is_loading(const struct process *process)
{
	for (size_t i = 0; i < nprocesses; i++)
		if (processes[i].pid == process->pid)
			return processes[i].loading;
	return false;
}

static int fake_file_open(const char *path)
{
	const struct fake_file *file = file_find(path);

	return file ? FD_FIRST + (int)(file - files) : -ENOENT;
}

static int fake_process_open(const struct process *process)
{
	return fake_file_open(process->exe);
}

static int fake_file_read(int fd, struct process_file *file)
{
	*file = (struct process_file){ .ino = files[fd - FD_FIRST].ino };
	return 0;
}

static int fake_close(int fd)
{
	(void)fd;
	return 0;
}

static int fake_namespace_read(uint32_t pid, uint64_t *dev, uint64_t *ino)
{
	(void)pid;
	*dev = *ino = 4;
	return 0;
}

static uint64_t fake_clock_ns(clockid_t id)
{
	(void)id;
	return now_ns;
}

static const struct engine *fake_detect_process(struct detect *detect,
						const struct process *process)
{
	const struct fake_file *file = file_find(process->exe);
	const char *slash = strrchr(process->exe, '/');
	const struct engine *engine = engines_by_file(slash ? slash + 1 : process->exe);

	(void)detect;
	now_ns += file ? file->takes_ns : 0;
	return engine ? engine : file && file->exports ? engines_by_name(file->exports) : NULL;
}

static int fake_target_open(struct target *target, const struct target_file *file,
			    const struct target_common *common, struct error *error)
{
	struct fake_file *seen = &files[file->fd - FD_FIRST];

	*target = (struct target){ .engine = file->engine, .id = file->id,
				   .file = { .ino = seen->ino } };
	snprintf(target->path, sizeof(target->path), "%s", file->path);
	if (!seen->probes || strcmp(seen->probes, file->engine->name))
		return error_set(error, ERROR_NO_PROBES, -ENOENT, file->path, "a function");
	if (seen->copies && common->copies(common->copies_arg, target, error))
		return error->code;
	if (seen->refused)
		return error_set(error, seen->refused, -ENOENT, file->path, "a site");
	CHECK(!seen->attached, "%s", seen->path);
	seen->attached = true;
	target->version_vaddr = memory_version ? 4096 : 0;
	++*common->ntargets;
	return 0;
}

static bool fake_is_starting(const struct target *target, const struct process *process)
{
	return target->version_vaddr && process_file_same(&process->file, &target->file) &&
	       memory_version && !*memory_version;
}

static void fake_target_close(struct target *target)
{
	struct fake_file *file = file_find(target->path);

	if (file)
		file->attached = false;
}

static struct exec_name *name_find(const struct exec_name *name)
{
	for (size_t i = 0; i < nawaited; i++)
		if (!memcmp(&awaited[i], name, sizeof(*name)))
			return &awaited[i];
	return NULL;
}

static int fake_map_update(int map, const void *key, const void *value)
{
	(void)value;
	if (map == PIDS && nupdates[PIDS] < 8)
		memcpy(&traced_pids[nupdates[PIDS]], key, 4);
	if (map == COMMS && !name_find(key)) {
		if (nawaited == AWAIT_NAMES_MAX)
			return -E2BIG;
		memcpy(&awaited[nawaited++], key, sizeof(awaited[0]));
	}
	nupdates[map]++;
	return 0;
}

static int fake_map_lookup(int map, const void *key, void *value)
{
	(void)map;
	(void)key;
	(void)value;
	return -ENOENT;
}

static int fake_map_delete(int map, const void *key)
{
	struct exec_name *name = map == COMMS ? name_find(key) : NULL;

	if (!name)
		return -ENOENT;
	*name = awaited[--nawaited];
	return 0;
}

static int fake_map_next(int map, const void *key, void *next)
{
	const struct exec_name *name = key ? name_find(key) : NULL;

	CHECK(map == COMMS && (!key || name));
	/* From the end, as a deletion moves the last one. */
	name = name ? name - 1 : awaited + nawaited - 1;
	if (name < awaited)
		return -ENOENT;
	memcpy(next, name, sizeof(*name));
	return 0;
}

static int fake_runtime_maps(struct runtime *rt, const struct map_def *maps, size_t n,
			     struct error *error)
{
	(void)rt;
	(void)maps;
	(void)error;
	CHECK(n == 3, "%zu", n);
	return 0;
}

static int fake_runtime_map(const struct runtime *rt, const char *name)
{
	(void)rt;
	return !strcmp(name, "pids") ? PIDS : !strcmp(name, "servers") ? SERVERS : COMMS;
}

static bool fake_wanted_children(struct runtime *rt, bool wanted)
{
	(void)rt;
	return wanted;
}

static int fake_wanted_pid(struct runtime *rt, uint32_t pid, bool later, struct error *error)
{
	(void)rt;
	(void)error;
	selected = later ? pid : 0;
	return 0;
}

static void fake_runtime_constant(struct runtime *rt, const char *name, uint64_t value)
{
	(void)rt;
	if (!strcmp(name, "constant_filter_pids"))
		filters_pids = value;
	else if (!strcmp(name, "constant_want_execs"))
		wants_execs = value;
}

static bool fake_feature_has(struct features *features, enum feature feature)
{
	(void)features;
	return feature == FEATURE_NS_PID;
}

static struct fake_process *process_find(uint32_t pid)
{
	for (size_t i = 0; i < nprocesses; i++)
		if (processes[i].pid == pid)
			return &processes[i];
	return NULL;
}

static ssize_t fake_code_moved(const struct process *process, const uint64_t *offsets, size_t count)
{
	struct fake_process *found = process_find(process->pid);

	(void)offsets;
	(void)count;
	return found ? found->copied : -ENOENT;
}

static int64_t fake_age_ns(uint32_t pid)
{
	struct fake_process *found = process_find(pid);

	return found ? found->age_ns : -ENOENT;
}

#include "db/discover/announce.c"
#include "db/discover/await.c"
#include "db/discover/discover.c"
#include "db/discover/share.c"
#include "db/discover/unused.c"
#include "db/discover/young.c"

static void on_server(void *listener, const struct server_info *server)
{
	(void)listener;
	nservers++;
	for (size_t i = 0; i < server->npids && nannounced < 8; i++)
		announced[nannounced++] = server->pids[i];
}

static void on_error(void *listener, const struct error *error)
{
	(void)listener;
	nerrors++;
	snprintf(said, sizeof(said), "%s", error->subject);
}

static void on_process(void *arg, const struct target *target, const struct process *process)
{
	(void)arg;
	(void)target;
	(void)process;
	nseeded++;
}

static void add_file(const char *path, const char *exports, const char *probes)
{
	files[nfiles] = (struct fake_file){ .path = path, .exports = exports, .probes = probes,
					    .ino = 100 + nfiles };
	nfiles++;
}

static void add_process(uint32_t pid, uint32_t ppid, const char *path)
{
	processes[nprocesses++] = (struct fake_process){ .pid = pid, .ppid = ppid, .path = path,
							 .age_ns = INT64_MAX };
}

/* A PostgreSQL server with two backends, one under another name, a MariaDB server, and others. */
static void make_world(void)
{
	nfiles = nprocesses = 0;
	memset(nupdates, 0, sizeof(nupdates));
	nseeded = nerrors = nservers = nannounced = nawaited = 0;
	*said = '\0';
	add_file("/sbin/init", NULL, NULL);
	add_file("/pg/postgres", "postgresql", "postgresql");
	add_file("/opt/renamed", "postgresql", "postgresql");
	add_file("/usr/mariadbd", "mysql", "mysql");
	add_file("/usr/bin/plugin", "mysql", NULL);
	add_file("/srv/app", NULL, "app");
	add_process(1, 0, "/sbin/init");
	add_process(10, 1, "/pg/postgres");
	add_process(11, 10, "/pg/postgres");
	add_process(12, 10, "/pg/postgres");
	add_process(20, 1, "/opt/renamed");
	add_process(30, 1, "/usr/mariadbd");
	add_process(40, 1, "/usr/bin/plugin");
	add_process(50, 1, "/srv/app");
}

/* Open discovery with @filter in the world as it is, and find servers. */
static int find(struct discover *d, const struct server_filter *filter, struct error *error)
{
	static struct runtime rt;
	int err = discover_init(d, filter, error);

	d->server = on_server;
	d->error = on_error;
	d->process = on_process;
	if (err)
		return err;
	err = discover_open(d, &rt, error);
	CHECK(!err && filters_pids == (filter->npids > 0) &&
	      wants_execs == (!filter->npids && !filter->npaths));
	return discover_find(d, error);
}

/* Return the paths of the attached files, separated by blanks. */
static const char *attached(void)
{
	static char text[512];

	*text = '\0';
	for (size_t i = 0; i < nfiles; i++)
		if (files[i].attached)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 *text ? " " : "", files[i].path);
	return text;
}

static bool awaits(const char *name)
{
	for (size_t i = 0; i < nawaited; i++)
		if (!strcmp(awaited[i].comm, name) && awaited[i].uid == EXEC_ANY_USER)
			return true;
	return false;
}

static void close_all(struct discover *d, struct error *error)
{
	discover_close(d);
	error_clear(error);
}

#define EXPECT(wanted)	CHECK(!strcmp(attached(), wanted), "%s", attached())

static void running(void)
{
	static const struct {
		struct server_filter filter;
		const char *attached;
		size_t seeded;
	} cases[] = {
		{ { .engine = NULL }, "/pg/postgres /opt/renamed /usr/mariadbd", 5 },
		{ { .engine = "mysql" }, "/usr/mariadbd", 1 },
		{ { .engine = "postgresql" }, "/pg/postgres /opt/renamed", 4 },
	};
	static const char *const loaders[] = { HOST_LOADERS };
	char loader[16];
	struct error error = { 0 };
	struct discover d;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_world();
		CHECK(!find(&d, &cases[i].filter, &error), "%zu", i);
		EXPECT(cases[i].attached);
		CHECK(nseeded == cases[i].seeded, "%zu: %zu", i, nseeded);
		/* A file that merely exports a matching symbol is ignored. */
		CHECK(!nerrors, "%s", said);
		CHECK(nservers == d.ntargets, "%zu", nservers);
		/* Names of servers and of loaders are awaited, cut as the kernel cuts them. */
		snprintf(loader, sizeof(loader), "%.15s", loaders[0]);
		CHECK(awaits("postgres") && awaits("mariadbd") && awaits(loader));
		/* So is any other name of a server that runs: its file may be replaced. */
		CHECK(awaits("renamed") == file_find("/opt/renamed")->attached);
		CHECK(!awaits("plugin"));
		close_all(&d, &error);
		EXPECT("");
	}
}

static void broken_servers(void)
{
	const struct server_filter filter = { .engine = NULL };
	struct error error = { 0 };
	struct discover d;

	/* One that cannot be traced does not keep others from it. */
	make_world();
	file_find("/pg/postgres")->probes = NULL;
	CHECK(!find(&d, &filter, &error));
	EXPECT("/opt/renamed /usr/mariadbd");
	CHECK(nerrors == 1 && !strcmp(said, "/pg/postgres"), "%s", said);
	close_all(&d, &error);
	/* Alone it is an error; so is the reason of its site, whatever other engines lack. */
	make_world();
	file_find("/pg/postgres")->refused = ERROR_SITE;
	file_find("/opt/renamed")->probes = file_find("/usr/mariadbd")->probes = NULL;
	file_find("/opt/renamed")->exports = NULL;
	CHECK(find(&d, &filter, &error) == -ENOENT && error.kind == ERROR_SITE, "%d", error.kind);
	CHECK(!strcmp(error.subject, "/pg/postgres"), "%s", error.subject);
	EXPECT("");
	close_all(&d, &error);
	/* Nothing that is a server: no error. */
	make_world();
	nprocesses = 1;
	CHECK(!find(&d, &filter, &error) && !d.ntargets && !nservers);
	close_all(&d, &error);
}

static void by_path(void)
{
	static const char *const server[] = { "/opt/renamed" }, *const app[] = { "/srv/app" };
	static const char *const twice[] = { "/usr/mariadbd", "/usr/mariadbd" };
	static const char *const none[] = { "/none" };
	static const struct {
		struct server_filter filter;
		const char *attached;
		enum error_kind kind;
	} cases[] = {
		{ { .paths = server, .npaths = 1 }, "/opt/renamed", ERROR_NONE },
		{ { .paths = server, .npaths = 1, .engine = "postgresql" }, "/opt/renamed",
		  ERROR_NONE },
		{ { .paths = server, .npaths = 1, .engine = "mysql" }, "", ERROR_NO_PROBES },
		{ { .paths = twice, .npaths = 2 }, "/usr/mariadbd", ERROR_NONE },
		{ { .paths = app, .npaths = 1 }, "", ERROR_NOT_SERVER },
		{ { .paths = none, .npaths = 1 }, "", ERROR_FILE },
		{ { .paths = app, .npaths = 1, .start = "app:a", .done = "app:b", .text_arg = 1 },
		  "/srv/app", ERROR_NONE },
		{ { .paths = server, .npaths = 1, .start = "app:a", .done = "app:b",
		    .text_arg = 1 }, "", ERROR_NO_PROBES },
		{ { .paths = app, .npaths = 1, .start = "app", .done = "app:b" }, "",
		  ERROR_NO_PROBES },
	};
	struct error error = { 0 };
	struct discover d;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int err;

		make_world();
		err = find(&d, &cases[i].filter, &error);
		CHECK(!err == !cases[i].kind && error.kind == cases[i].kind, "%zu: %d %d", i, err,
		      error.kind);
		EXPECT(cases[i].attached);
		close_all(&d, &error);
	}
	/* Only their names are awaited. */
	make_world();
	CHECK(!find(&d, &cases[0].filter, &error));
	CHECK(awaits("renamed") && !awaits("postgres"));
	close_all(&d, &error);
}

static void by_pid(void)
{
	static const uint32_t server[] = { 10 }, backend[] = { 12 }, init[] = { 1 };
	static const uint32_t gone[] = { 99 }, both[] = { 11, 30 }, app[] = { 50 };
	struct server_filter filter = { .pids = server, .npids = 1 };
	struct error error = { 0 };
	struct discover d;

	/* A main process: its backends by the map of servers. */
	make_world();
	CHECK(!find(&d, &filter, &error));
	EXPECT("/pg/postgres");
	CHECK(nupdates[PIDS] == 1 && traced_pids[0] == 10 && nupdates[SERVERS] == 1);
	CHECK(nannounced == 1 && announced[0] == 10 && nseeded == 3, "%zu", nseeded);
	close_all(&d, &error);
	/* A backend: itself alone; the report has its server. */
	make_world();
	filter.pids = backend;
	CHECK(!find(&d, &filter, &error));
	EXPECT("/pg/postgres");
	CHECK(nupdates[PIDS] == 1 && traced_pids[0] == 12 && !nupdates[SERVERS]);
	CHECK(nannounced == 1 && announced[0] == 10 && nseeded == 1, "%zu", nseeded);
	close_all(&d, &error);
	make_world();
	filter = (struct server_filter){ .pids = both, .npids = 2 };
	CHECK(!find(&d, &filter, &error));
	EXPECT("/pg/postgres /usr/mariadbd");
	close_all(&d, &error);
	/* No server, another engine's, or no process. */
	make_world();
	filter = (struct server_filter){ .pids = init, .npids = 1 };
	CHECK(find(&d, &filter, &error) && error.kind == ERROR_NOT_SERVER, "%d", error.kind);
	close_all(&d, &error);
	make_world();
	filter = (struct server_filter){ .pids = server, .npids = 1, .engine = "mysql" };
	CHECK(find(&d, &filter, &error) && error.kind == ERROR_OTHER_SERVER, "%d", error.kind);
	close_all(&d, &error);
	make_world();
	filter = (struct server_filter){ .pids = gone, .npids = 1 };
	CHECK(find(&d, &filter, &error) && error.kind == ERROR_PROCESS, "%d", error.kind);
	close_all(&d, &error);
	/* A process of the user's own engine. */
	make_world();
	filter = (struct server_filter){ .pids = app, .npids = 1, .start = "app:a",
					 .done = "app:b", .text_arg = 1 };
	CHECK(!find(&d, &filter, &error) && selected == app[0]);
	EXPECT("/srv/app");
	close_all(&d, &error);
}

/* The kernel reports that @pid has executed a program called @name. */
static void execute(struct discover *d, uint32_t pid, const char *name)
{
	struct event_exec exec = { .session = { .pid = pid } };

	snprintf(exec.name.comm, sizeof(exec.name.comm), "%s", name);
	discover_executed(d, &exec);
}

static void later(void)
{
	static const char *const paths[] = { "/usr/mariadbd" };
	static const uint32_t pids[] = { 10 };
	struct server_filter filter = { .engine = "mysql" };
	struct error error = { 0 };
	struct discover d;

	make_world();
	nprocesses = 1;
	CHECK(!find(&d, &filter, &error) && !d.ntargets);
	add_process(30, 1, "/usr/mariadbd");
	execute(&d, 30, "mariadbd");
	EXPECT("/usr/mariadbd");
	CHECK(d.started && nservers == 1);
	/* One that has been started under a name of its own. */
	CHECK(!awaits("mydb"));
	add_file("/opt/mydb (deleted)", "mysql", "mysql");
	add_process(31, 1, "/opt/mydb (deleted)");
	execute(&d, 31, "mydb");
	CHECK(awaits("mydb") && d.ntargets == 2 && nservers == 2);
	/* Again: it is a target already. */
	d.started = false;
	execute(&d, 30, "mariadbd");
	CHECK(d.started && nservers == 2 && d.ntargets == 2);
	/* Not wanted, no server, already gone. */
	d.started = false;
	add_process(10, 1, "/pg/postgres");
	execute(&d, 10, "postgres");
	execute(&d, 1, "init");
	execute(&d, 77, "mysqld");
	CHECK(!d.started && d.ntargets == 2);
	close_all(&d, &error);
	/* With files: these, whatever they are; with processes: none that is new. */
	make_world();
	filter = (struct server_filter){ .paths = paths, .npaths = 1 };
	CHECK(!find(&d, &filter, &error) && d.ntargets == 1);
	execute(&d, 10, "postgres");
	CHECK(!d.started && d.ntargets == 1);
	execute(&d, 30, "mariadbd");
	CHECK(d.started && d.ntargets == 1);
	close_all(&d, &error);
	make_world();
	filter = (struct server_filter){ .pids = pids, .npids = 1 };
	CHECK(!find(&d, &filter, &error) && d.ntargets == 1);
	execute(&d, 30, "mariadbd");
	CHECK(d.started && d.ntargets == 1);
	close_all(&d, &error);
}

/* A process that runs the dynamic loader is checked again until that has mapped a program. */
static void by_loader(void)
{
	const struct server_filter filter = { .engine = NULL };
	struct error error = { 0 };
	struct discover d;

	make_world();
	nprocesses = 1;
	CHECK(!find(&d, &filter, &error));
	add_process(30, 1, "/usr/mariadbd");
	processes[1].loading = true;
	execute(&d, 30, "mariadbd");
	CHECK(discover_again(&d) && !d.ntargets);
	now_ns += LOADING_NS;
	CHECK(discover_again(&d) && !d.ntargets);
	processes[1].loading = false;
	CHECK(discover_again(&d) && !d.ntargets, "not before its time");
	now_ns += LOADING_NS;
	CHECK(!discover_again(&d) && d.ntargets == 1);
	EXPECT("/usr/mariadbd");
	/* After a while it is dropped. */
	add_process(31, 1, "/pg/postgres");
	processes[2].loading = true;
	execute(&d, 31, "postgres");
	for (int i = 0; i < LOADING_TRIES; i++) {
		CHECK(discover_again(&d));
		now_ns += LOADING_NS;
	}
	CHECK(!discover_again(&d) && d.ntargets == 1);
	close_all(&d, &error);
}

/* A server is reported when it has set its version, or after a while. */
static void by_version(void)
{
	struct server_filter filter = { .engine = "mysql" };
	struct error error = { 0 };
	struct discover d;

	for (int round = 0; round < 3; round++) {
		make_world();
		nprocesses = 1;
		CHECK(!find(&d, &filter, &error) && !d.ntargets);
		memory_version = "";
		add_process(NO_PID, 1, "/usr/mariadbd");
		execute(&d, NO_PID, "mariadbd");
		CHECK(d.ntargets == 1 && !nservers, "attached, and not reported");
		now_ns += 1000000000;
		CHECK(tested_again(&d) && !nservers);
		if (round == 0)
			memory_version = "11.4-MariaDB";
		else if (round == 1)
			nprocesses = 1;
		for (int i = 0; i < (round == 2 ? 100 : 1); i++) {
			now_ns += 1000000000;
			tested_again(&d);
		}
		CHECK(!tested_again(&d) && nservers == 1, "%d: %zu", round, nservers);
		close_all(&d, &error);
	}
	memory_version = NULL;
}

/* A file before that of a starting server is forgotten meanwhile: the server is still found. */
static void starting_and_forgotten(void)
{
	struct server_filter filter = { .engine = "mysql" };
	struct error error = { 0 };
	struct discover d;

	for (int both = 0; both < 2; both++) {
		make_world();
		nprocesses = 0;
		CHECK(!find(&d, &filter, &error) && !d.ntargets);
		add_file("/usr/mysqld", "mysql", "mysql");
		memory_version = "8.0";
		add_process(30, 1, "/usr/mysqld");
		execute(&d, 30, "mysqld");
		memory_version = "";
		add_process(NO_PID, 1, "/usr/mariadbd");
		execute(&d, NO_PID, "mariadbd");
		CHECK(d.ntargets == 2 && nservers == 1, "%zu %zu", d.ntargets, nservers);
		for (int i = 0; i <= both; i++)
			d.targets[i].file.ino = 0;
		d.ntargets = unused_remove(&d.unused, d.targets, d.ntargets);
		memory_version = "11.4-MariaDB";
		now_ns += 1000000000;
		CHECK(!tested_again(&d) && nannounced == (both ? 1 : 2), "%zu", nannounced);
		close_all(&d, &error);
	}
	memory_version = NULL;
}

static void check_all(struct discover *d)
{
	struct process process;

	share_make_room(&d->share, d->targets, d->ntargets, &d->common.pause);
	for (size_t i = 0; i < nprocesses; i++)
		if (fake_fill(&processes[i], &process))
			discover_running(d, &process);
}

/* Servers whose exec was not reported. */
static void unreported(void)
{
	const struct server_filter filter = { .engine = "mysql" };
	struct error error = { 0 };
	struct discover d;

	make_world();
	nprocesses = 1;
	CHECK(!find(&d, &filter, &error) && !d.ntargets);
	add_process(30, 1, "/usr/mariadbd");
	processes[1].loading = true;
	check_all(&d);
	CHECK(!d.ntargets && !discover_again(&d));
	processes[1].loading = false;
	check_all(&d);
	CHECK(d.ntargets == 1 && d.started);
	EXPECT("/usr/mariadbd");
	check_all(&d);
	CHECK(d.ntargets == 1, "once");
	close_all(&d, &error);
}

static size_t count_attached(uint32_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < nprocesses; i++)
		n += processes[i].uid == uid && file_find(processes[i].path)->attached;
	return n;
}

/* A user who runs many files: others come first, and a part of his is not traced, which is said. */
static void shares(void)
{
	static char paths[2 * SHARE][32];
	struct server_filter filter = { .engine = NULL };
	struct error error = { 0 };
	struct discover d;
	struct target *last;

	make_world();
	nprocesses = 1;
	for (size_t i = 0; i < SHARE + 10; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/own%zu/mysqld", i);
		add_file(paths[i], "mysql", "mysql");
		add_process(100 + (uint32_t)i, 1, paths[i]);
		processes[nprocesses - 1].uid = 1001;
	}
	add_process(900, 1, "/pg/postgres");
	processes[nprocesses - 1].uid = 26;
	CHECK(!find(&d, &filter, &error));
	CHECK(d.ntargets == SHARE + 1 && count_attached(1001) == SHARE, "%zu", d.ntargets);
	last = &d.targets[SHARE_FIRST];
	CHECK(last->uid == 26 && !strcmp(last->path, "/pg/postgres"), "%s", last->path);
	CHECK(nerrors == 1 && strstr(said, "/own256/"), "%zu %s", nerrors, said);
	/* Others have theirs, root has no limit, and the file of another user may be used. */
	add_process(901, 1, "/usr/mariadbd");
	processes[nprocesses - 1].uid = 27;
	execute(&d, 901, "mariadbd");
	add_process(902, 1, "/opt/renamed");
	execute(&d, 902, "renamed");
	CHECK(file_find("/usr/mariadbd")->attached && file_find("/opt/renamed")->attached);
	execute(&d, 100 + SHARE + 1, "mysqld");
	CHECK(count_attached(1001) == SHARE && nerrors == 1);
	/* When some end, others take their place. */
	processes[1].path = processes[2].path = processes[3].path = "/sbin/init";
	check_all(&d);
	CHECK(count_attached(1001) == SHARE && !file_find(paths[0])->attached, "%zu",
	      count_attached(1001));
	close_all(&d, &error);
	/* Paths that are given have no limit. */
	make_world();
	for (uint32_t i = 0; i < SHARE + 10; i++)
		add_file(paths[i], "mysql", "mysql");
	filter = (struct server_filter){ .npaths = SHARE + 10 };
	filter.paths = calloc(filter.npaths, sizeof(*filter.paths));
	for (size_t i = 0; i < filter.npaths; i++)
		((const char **)(uintptr_t)filter.paths)[i] = paths[i];
	CHECK(!find(&d, &filter, &error) && d.ntargets == SHARE + 10 && !nerrors);
	close_all(&d, &error);
	free((void *)(uintptr_t)filter.paths);
}

/* Many files of a user that take long to read, none of which is a server. */
static void slow_files(void)
{
	static char paths[100][32];
	const struct server_filter filter = { .engine = NULL };
	uint64_t begin_ns = now_ns;
	struct error error = { 0 };
	struct discover d;

	make_world();
	nprocesses = 1;
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/slow%u/program", i);
		add_file(paths[i], NULL, NULL);
		files[nfiles - 1].takes_ns = 900000000;
		add_process(100 + i, 1, paths[i]);
		processes[nprocesses - 1].uid = 1001;
	}
	add_process(900, 1, "/pg/postgres");
	processes[nprocesses - 1].uid = 26;
	CHECK(!find(&d, &filter, &error));
	EXPECT("/pg/postgres");
	CHECK(now_ns - begin_ns < 32000000000u, "%ju", (uintmax_t)(now_ns - begin_ns));
	close_all(&d, &error);
}

static void rewritten(void)
{
	const struct server_filter filter = { .engine = "mysql" };
	struct error error = { 0 };
	struct discover d;

	make_world();
	CHECK(!find(&d, &filter, &error) && d.ntargets == 1);
	/* The same inode with other content: the fake files have no times, so the target has. */
	d.targets[0].file.size = 1;
	execute(&d, 30, "mariadbd");
	EXPECT("/usr/mariadbd");
	CHECK(d.ntargets == 2 && !d.targets[0].file.ino && d.targets[1].file.ino);
	close_all(&d, &error);
}

static void unused(void)
{
	static char paths[FORGET_AT + 4][32];
	const struct server_filter filter = { .engine = NULL };
	struct error error = { 0 };
	struct discover d;
	size_t n = 0;

	make_world();
	nfiles = nprocesses = 1;
	CHECK(!find(&d, &filter, &error));
	for (size_t i = 0; i < FORGET_AT + 4; i++) {
		snprintf(paths[i], sizeof(paths[i]), "/image%zu/mysqld", i);
		add_file(paths[i], "mysql", "mysql");
		nprocesses = 1;
		add_process(100 + (uint32_t)i, 1, paths[i]);
		execute(&d, 100 + (uint32_t)i, "mysqld");
	}
	for (size_t i = 0; i < nfiles; i++)
		n += files[i].attached;
	CHECK(n <= FORGET_AT && n > FORGET_AT - FORGET_ONCE - 1, "%zu", n);
	CHECK(!files[1].attached && files[nfiles - 1].attached, "the oldest go");
	/* Started again, one is attached again. */
	processes[1].path = paths[0];
	execute(&d, processes[1].pid, "mysqld");
	CHECK(files[1].attached);
	close_all(&d, &error);
}

/* Files and names come and go: of what has gone nothing is kept. */
static void forgotten(void)
{
	static char path[64];
	const struct server_filter filter = { .engine = NULL };
	struct error error = { 0 };
	struct discover d;
	size_t most = 0;

	make_world();
	nfiles = nprocesses = 1;
	CHECK(!find(&d, &filter, &error));
	add_file(path, "mysql", "mysql");
	add_process(0, 1, path);
	for (uint32_t i = 0; i < 100000; i++) {
		/* A new process with a new file, and a name that was not used before. */
		snprintf(path, sizeof(path), "/image%u/db%u", i, i);
		files[1].ino = 1000 + i;
		files[1].attached = false;
		processes[1].pid = 1000 + i;
		execute(&d, processes[1].pid, path + strlen("/image0"));
		CHECK(d.ntargets && d.targets[d.ntargets - 1].file.ino == 1000 + i, "%u", i);
		CHECK(d.targets[d.ntargets - 1].id == i && target_by_id(d.targets, d.ntargets, i));
		/* As the tracer and arrivals_check() do. */
		d.ntargets = unused_remove(&d.unused, d.targets, d.ntargets);
		if (++d.names >= AWAIT_NAMES_RENEW) {
			await_renew(d.comms, d.targets, d.ntargets);
			d.names = 0;
		}
		most = d.ntargets > most ? d.ntargets : most;
		if (i < 99990 && i > 100)
			continue;
		CHECK(awaits(strrchr(path, '/') + 1) && awaits("postgres"), "%u", i);
	}
	CHECK(most <= FORGET_AT + 1 && nawaited < AWAIT_NAMES_MAX, "%zu %zu", most, nawaited);
	CHECK(!target_by_id(d.targets, d.ntargets, 0) && !target_by_id(d.targets, 0, 0));
	close_all(&d, &error);
}

/* Account with many user IDs: they spend no more than a few users, and root is not concerned. */
static void many_users(void)
{
	struct process process = { .uid = 0 }, root = { .uid = 0 };
	struct share share = { .files = 0 };
	uint64_t spent = 0;

	share_begin(&share, 100);
	for (uint32_t i = 0; i < 100 * SHARE_USERS; i++) {
		process.uid = 100000 + i % (10 * SHARE_USERS);
		if (!share_has_time(&share, &process))
			continue;
		share_spend(&share, &process, 10);
		spent += 10;
		share_spend(&share, &root, 1000);
	}
	CHECK(spent <= 100 * SHARE_USERS && share_has_time(&share, &root), "%ju", (uintmax_t)spent);
	/* One user who has spent all, among more than have a row: others are not concerned. */
	share_begin(&share, 100);
	process.uid = 1;
	share_spend(&share, &process, 5000);
	for (process.uid = 2; process.uid < 2 + 3 * SHARE_USERS; process.uid++) {
		CHECK(share_has_time(&share, &process), "%u", process.uid);
		share_spend(&share, &process, 1);
	}
	process.uid = 1;
	CHECK(!share_has_time(&share, &process));
}

/* More users than a few have more files than they may: of each, unused ones make room. */
static void many_refused(void)
{
	enum { USERS = 40, FILES = 2 };
	struct target targets[USERS * FILES];
	struct share share = { .files = FILES };
	struct process process = { .uid = 0 };
	struct error error = { .kind = ERROR_NONE };
	struct elf_pause pause = { 0 };
	size_t left = USERS * FILES;

	make_world();
	memset(targets, 0, sizeof(targets));
	for (uint32_t i = 0; i < USERS * FILES; i++) {
		targets[i].file.ino = 5000 + i;
		targets[i].uid = 1000 + i / FILES;
	}
	for (process.uid = 1000; process.uid < 1000 + USERS; process.uid++) {
		CHECK(!share_allows(&share, targets, USERS * FILES, &process));
		CHECK(share_refuse(&share, &process, &error), "%u", process.uid);
		CHECK(!share_refuse(&share, &process, &error), "%u: once", process.uid);
	}
	for (int i = 0; i < USERS; i++)
		share_make_room(&share, targets, USERS * FILES, &pause);
	for (process.uid = 1000; process.uid < 1000 + USERS; process.uid++)
		CHECK(share_allows(&share, targets, USERS * FILES, &process), "%u", process.uid);
	/* Users below their share keep theirs. */
	left = unused_attached(targets, USERS * FILES, NULL);
	share.files = FILES + 1;
	share_make_room(&share, targets, USERS * FILES, &pause);
	CHECK(unused_attached(targets, USERS * FILES, NULL) == left);
	error_clear(&error);
}

static const uint32_t pg_pids[] = { 10 }, both_pids[] = { 10, 30 };
static const char *const pg_path[] = { "/pg/postgres" };

/* Processes that execute copies of their code are not traced, and the others of the file are. */
static void copied(void)
{
	static const struct {
		struct server_filter filter;
		int err;
		const char *attached;
		size_t errors, servers, mains;
	} cases[] = {
		{ { .engine = NULL }, 0, "/pg/postgres /opt/renamed /usr/mariadbd", 1, 3, 3 },
		{ { .pids = pg_pids, .npids = 1 }, -ENOTSUP, "", 0, 0, 0 },
		{ { .pids = both_pids, .npids = 2 }, 0, "/usr/mariadbd", 1, 1, 1 },
		{ { .paths = pg_path, .npaths = 1 }, 0, "/pg/postgres", 1, 1, 0 },
	};
	struct error error = { 0 };
	struct discover d;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_world();
		add_process(31, 1, "/usr/mariadbd");
		for (uint32_t pid = 10; pid <= 12; pid++)
			process_find(pid)->copied = true;
		CHECK(find(&d, &cases[i].filter, &error) == cases[i].err, "%zu", i);
		CHECK((error.kind == ERROR_COPIED) == !!cases[i].err, "%zu", i);
		EXPECT(cases[i].attached);
		CHECK(nerrors == cases[i].errors && nservers == cases[i].servers, "%zu: %zu %zu", i,
		      nerrors, nservers);
		CHECK(nannounced == cases[i].mains && nseeded == cases[i].mains, "%zu: %zu %zu", i,
		      nannounced, nseeded);
		CHECK(!strcmp(cases[i].err ? error.subject : said, "/pg/postgres"), "%zu", i);
		close_all(&d, &error);
	}
	make_world();
	add_process(13, 1, "/pg/postgres");
	process_find(13)->copied = true;
	CHECK(!find(&d, &(struct server_filter){ .engine = "postgresql" }, &error));
	EXPECT("/pg/postgres /opt/renamed");
	CHECK(nerrors == 1 && nannounced == 2 && announced[0] == 10 && announced[1] == 20,
	      "%zu %zu", nerrors, nannounced);
	close_all(&d, &error);
}

#define SECOND	INT64_C(1000000000)

/* A file that copies its code at the start is attached to when its server has run for a minute. */
static void young(void)
{
	static const struct server_filter filters[] = {
		{ .engine = "postgresql" }, { .pids = pg_pids, .npids = 1 },
		{ .paths = pg_path, .npaths = 1 },
	};
	struct error error = { 0 };
	struct discover d;

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
		make_world();
		file_find("/pg/postgres")->copies = true;
		process_find(10)->age_ns = 20 * SECOND;
		CHECK(!find(&d, &filters[i], &error) && !file_find("/pg/postgres")->attached);
		CHECK(nerrors == 1 && !strcmp(said, "/pg/postgres"), "%zu %s", nerrors, said);
		CHECK(discover_waits(&d) && discover_needs(&d) & SANDBOX_ATTACH);
		for (int second = 0; second < 39; second += 3) {
			check_all(&d);
			now_ns += 3 * (uint64_t)SECOND;
			process_find(10)->age_ns += 3 * SECOND;
		}
		CHECK(!file_find("/pg/postgres")->attached && nerrors == 1, "%zu", nerrors);
		CHECK(!young_due(&d.young));
		/* It was started again. */
		process_find(10)->age_ns = 0;
		now_ns += 10 * (uint64_t)SECOND;
		CHECK(young_due(&d.young) && !young_due(&d.young));
		check_all(&d);
		CHECK(!file_find("/pg/postgres")->attached && nerrors == 1, "%zu", nerrors);
		process_find(10)->age_ns = 60 * SECOND;
		now_ns += 60 * (uint64_t)SECOND;
		check_all(&d);
		CHECK(file_find("/pg/postgres")->attached && nerrors == 1, "%zu", nerrors);
		CHECK(nannounced && announced[nannounced - 1] == 10);
		CHECK(!i || (!file_find("/opt/renamed")->attached && nannounced == 1));
		now_ns += 200 * (uint64_t)SECOND;
		CHECK(!discover_waits(&d));
		close_all(&d, &error);
	}
}

/* Neither backends nor processes of other users are waited for, but what was just executed is. */
static void young_others(void)
{
	const struct server_filter filter = { .engine = "postgresql" };
	struct error error = { 0 };
	struct discover d;

	make_world();
	file_find("/pg/postgres")->copies = true;
	process_find(11)->age_ns = process_find(12)->age_ns = 0;
	add_process(13, 1, "/pg/postgres");
	process_find(13)->age_ns = 0;
	process_find(13)->uid = 1001;
	CHECK(!find(&d, &filter, &error) && !nerrors);
	EXPECT("/pg/postgres /opt/renamed");
	close_all(&d, &error);

	make_world();
	file_find("/pg/postgres")->copies = true;
	nprocesses = 1;
	CHECK(!find(&d, &filter, &error) && !d.ntargets && !discover_waits(&d));
	add_process(10, 1, "/pg/postgres");
	execute(&d, 10, "postgres");
	CHECK(!d.ntargets && nerrors == 1 && discover_waits(&d), "%zu", nerrors);
	now_ns += YOUNG_NS;
	check_all(&d);
	EXPECT("/pg/postgres");
	close_all(&d, &error);
}

/* A user with more of them than are remembered displaces no others, and is reported once. */
static void young_many(void)
{
	struct young young = { 0 };
	struct process_file file = { .dev = 1 };
	size_t told = 0;

	file.ino = 1000;
	CHECK(young_add(&young, &file, 1, YOUNG_NS));
	for (int round = 0; round < 3; round++)
		for (file.ino = 1; file.ino <= 2 * YOUNG_FILES; file.ino++)
			told += young_add(&young, &file, 2, YOUNG_NS);
	CHECK(told == YOUNG_FILES - 1, "%zu", told);
	file.ino = 1000;
	CHECK(young_is(&young, &file, 1) && !young_add(&young, &file, 1, YOUNG_NS));
	file.ino = 1001;
	CHECK(young_add(&young, &file, 3, YOUNG_NS) && young_is(&young, &file, 3));
	/* Two such users reach an equal share. */
	for (int round = 0; round < 3; round++)
		for (file.ino = 1; file.ino <= 2 * YOUNG_FILES; file.ino++) {
			young_add(&young, &file, 4, YOUNG_NS);
			told = young_add(&young, &file, 2, YOUNG_NS);
			CHECK(!told || !round);
		}
	file.ino = 1000;
	CHECK(young_is(&young, &file, 1));
	now_ns += YOUNG_NS;
	CHECK(young_due(&young) && !young_due(&young));
	for (told = 0, file.ino = 2001; file.ino <= 2000 + YOUNG_FILES; file.ino++)
		told += young_add(&young, &file, 2, YOUNG_NS);
	CHECK(told == YOUNG_FILES, "%zu", told);
}

int main(void)
{
	RUN(running);
	RUN(broken_servers);
	RUN(by_path);
	RUN(by_pid);
	RUN(later);
	RUN(by_loader);
	RUN(by_version);
	RUN(starting_and_forgotten);
	RUN(unreported);
	RUN(shares);
	RUN(slow_files);
	RUN(rewritten);
	RUN(unused);
	RUN(forgotten);
	RUN(many_users);
	RUN(many_refused);
	RUN(copied);
	RUN(young);
	RUN(young_others);
	RUN(young_many);
	return check_done();
}
