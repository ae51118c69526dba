// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The command list: the USDT probes of files, of processes with their libraries, or of the running
 * database servers. It only reads files, of any architecture.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/format/escape.h"
#include "cli/format/probe_print.h"
#include "cli/message.h"
#include "cli/option/option.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/start.h"
#include "db/discover/detect.h"
#include "db/engines.h"
#include "host/elf_map.h"
#include "host/library.h"
#include "host/open.h"
#include "host/process.h"
#include "sql/glob.h"
#include "usdt/probe.h"

#define FILTERED_MAX	1024	/* bytes of a probe's name that filters match */

static const char symbols_remedy[] = "it is traced by its symbols, which dbslower doctor -v prints";

/* A file of a process, owning its path. */
struct list_map {
	struct process_map map;
	uint32_t pid, order;
};

struct list {
	struct options options;
	struct output out, err;
	uint64_t seen, printed;		/* probes */
	struct list_map *maps;		/* owned */
	size_t nmaps, room;
	struct detect detect;
	struct process *servers;	/* owned; one for each file */
	size_t nservers;
	bool failed;
	bool explained;			/* why a server has no probes */
	bool bcc;			/* called tplist: filter and print as bcc does */
};

/* Print "dbslower: SUBJECT: CAUSE; REMEDY". The remedy may be NULL. */
static void list_report(struct list *list, const char *subject, const char *cause,
			const char *remedy)
{
	/* Keep the order of results and errors, as both may go to a terminal. */
	output_flush(&list->out);
	output_string(&list->err, "dbslower: ");
	escape_terminal(&list->err, subject, strlen(subject), false);
	output_string(&list->err, ": ");
	output_string(&list->err, cause);
	if (remedy)
		output_printf(&list->err, "; %s", remedy);
	output_char(&list->err, '\n');
	output_flush(&list->err);
}

static void list_fail(struct list *list, const char *subject, const char *cause,
		      const char *remedy)
{
	list_report(list, subject, cause, remedy);
	list->failed = true;
}

static void list_error(struct list *list, enum error_kind kind, int err, const char *subject)
{
	struct error error = { .kind = ERROR_NONE };

	error_set(&error, kind, err, subject, NULL);
	output_flush(&list->out);
	message_error(&list->err, &error);
	output_flush(&list->err);
	error_clear(&error);
	list->failed = true;
}

/*
 * Return whether a filter matches @probe: a glob of provider:name or of the name, or a part of
 * provider:name. bcc's are globs of provider:name only.
 */
static bool list_wants(const struct list *list, const struct usdt_site *probe)
{
	char full[FILTERED_MAX];

	snprintf(full, sizeof(full), "%s:%s", probe->provider, probe->name);
	for (unsigned int i = 0; i < list->options.word_count; i++) {
		const char *filter = list->options.words[i];

		if (glob_match(filter, full) || (!list->bcc && (
		    !glob_is_pattern(filter) ? strstr(full, filter) != NULL :
		    !strchr(filter, ':') && glob_match(filter, probe->name))))
			return true;
	}
	return !list->options.word_count;
}

/* Return whether @elf is a separate debug file: it has notes, but not the code they are of. */
static bool list_is_debug(const struct elf *elf)
{
	struct elf_segment segment;
	bool debug = false;

	for (uint32_t i = 0; i < elf->phnum; i++) {
		if (elf_segment(elf, i, &segment) || segment.type != PT_LOAD ||
		    !(segment.flags & PF_X))
			continue;
		if (segment.filesz)
			return false;
		debug |= segment.memsz > 0;
	}
	return debug;
}

/* Report the notes of @elf that cannot be read. */
static void list_skipped(struct list *list, const char *path, const struct elf *elf,
			 unsigned int skipped)
{
	char cause[96];

	if (list_is_debug(elf)) {
		list_fail(list, path, "a separate debug file, without code",
			  "specify the program or library that it belongs to");
		return;
	}
	snprintf(cause, sizeof(cause), "%u of its USDT notes are damaged, or point outside the "
		 "file", skipped);
	list_fail(list, path, cause, NULL);
}

/* Print the probes of @elf. Return 0, -ENOENT if there are none, or -ENOMEM. */
static int list_elf(struct list *list, const char *path, const struct elf *elf)
{
	struct probe_list probes;
	int err = probe_list_read(elf, &probes);

	if (err)
		return err;
	for (size_t i = 0, end; i < probes.count && !list->out.error; i = end) {
		end = probe_list_end(&probes, i);
		list->seen++;
		if (!list_wants(list, &probes.sites[i].site))
			continue;
		list->printed++;
		if (list->options.json)
			probe_json(&list->out, path, elf, &probes.sites[i], end - i);
		else
			probe_print(&list->out, path, elf, &probes.sites[i], end - i,
				    list->options.verbose | (list->bcc ? PROBE_PRINT_BCC : 0));
	}
	if (probes.skipped)
		list_skipped(list, path, elf, probes.skipped);
	err = probes.count || probes.skipped ? 0 : -ENOENT;
	probe_list_free(&probes);
	return err;
}

/* Print the probes of the file open as @fd, and close it. Return as above, or -ENOEXEC: not ELF. */
static int list_open_file(struct list *list, const char *path, int fd)
{
	struct elf_map binary;
	int err = elf_map_open(&binary, fd, NULL);

	close(fd);
	if (err)
		return err;
	err = list_elf(list, path, &binary.elf);
	if (elf_map_limit(&binary))
		err = elf_map_limit(&binary);
	elf_map_close(&binary);
	return err;
}

/* Report that the file at @path has no probes. */
static void list_no_probes(struct list *list, const char *path)
{
	int fd = open_regular(path);
	bool server = fd >= 0 && detect_file(path, fd);

	if (fd >= 0)
		close(fd);
	list_fail(list, path, "no USDT probes", server ? symbols_remedy :
		  "a program must be built with them: PostgreSQL with --enable-dtrace");
}

static void list_file(struct list *list, const char *path)
{
	int fd = open_regular(path);
	int err = fd < 0 ? fd : list_open_file(list, path, fd);

	if (fd >= 0 && err == -ENOENT)
		list_no_probes(list, path);
	else if (err == -ENOEXEC)
		list_fail(list, path, "not an ELF file",
			  "specify a program or a library, not a script that starts it");
	else if (err)
		list_error(list, ERROR_FILE, err, path);
}

static void list_named(struct list *list, const char *name)
{
	char path[PATH_MAX];

	if (strchr(name, '/'))
		list_file(list, name);
	else if (library_find(name, path, sizeof(path)))
		list_fail(list, name, "program or library not found",
			  "specify a path, which contains a '/', or a short name such as c for "
			  "libc.so.6");
	else
		list_file(list, path);
}

/* Return whether -l selects the file that process @pid maps; without -l all are selected. */
static bool list_wants_map(const struct list *list, uint32_t pid, const struct process_map *map)
{
	const char *file = strrchr(map->path, '/') + 1;
	char path[PATH_MAX + 32];
	struct stat st;

	for (unsigned int i = 0; i < list->options.path_count; i++) {
		const char *name = list->options.paths[i];

		if (!strchr(name, '/') ? library_is(file, name) : !strcmp(name, map->path))
			return true;
		snprintf(path, sizeof(path), "/proc/%u/root%s", pid, name);
		/* The same file may have another name: /lib is a link to /usr/lib. */
		if (*name == '/' && !stat(path, &st) && st.st_ino == map->ino)
			return true;
	}
	return !list->options.path_count;
}

/* The argument of list_map(). */
struct list_process {
	struct list *list;
	uint32_t pid;
	size_t wanted;
};

/* Collect a mapped file, unless it is data: the text of a library is executable. */
static int list_map(void *arg, const struct process_map *map)
{
	struct list_process *process = arg;
	struct list *list = process->list;
	const struct list_map *last = list->nmaps ? &list->maps[list->nmaps - 1] : NULL;
	struct list_map add = { *map, process->pid, (uint32_t)list->nmaps };

	if (!map->executable || !list_wants_map(list, process->pid, map))
		return 0;
	process->wanted++;
	if (last && last->map.dev == map->dev && last->map.ino == map->ino)
		return 0;
	if (!list->maps || list->nmaps == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct list_map *maps = realloc(list->maps, room * sizeof(*maps));

		if (!maps)
			return -ENOMEM;
		list->maps = maps;
		list->room = room;
	}
	add.map.path = strdup(map->path);
	if (!add.map.path)
		return -ENOMEM;
	list->maps[list->nmaps++] = add;
	return 0;
}

static int by_file(const void *pa, const void *pb)
{
	const struct list_map *a = pa, *b = pb;

	if (a->map.dev != b->map.dev)
		return a->map.dev < b->map.dev ? -1 : 1;
	if (a->map.ino != b->map.ino)
		return a->map.ino < b->map.ino ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static int by_order(const void *pa, const void *pb)
{
	const struct list_map *a = pa, *b = pb;

	return a->order < b->order ? -1 : 1;
}

/* Keep the first mapping of each file. */
static void list_unique(struct list *list)
{
	size_t n = 0;

	if (!list->nmaps)
		return;
	qsort(list->maps, list->nmaps, sizeof(*list->maps), by_file);
	for (size_t i = 0; i < list->nmaps; i++) {
		struct list_map *at = &list->maps[i];

		if (n && list->maps[n - 1].map.dev == at->map.dev &&
		    list->maps[n - 1].map.ino == at->map.ino)
			free((char *)at->map.path);
		else
			list->maps[n++] = *at;
	}
	list->nmaps = n;
	qsort(list->maps, n, sizeof(*list->maps), by_order);
}

/* If process @pid is a server whose program has no probes, report how it is traced. */
static void list_server_probes(struct list *list, uint32_t pid)
{
	char subject[64];
	struct process process;
	struct probe_list probes;
	struct elf_map binary;
	int fd, err;

	if (process_read(pid, engine_is_executable, &process) ||
	    !detect_process(&list->detect, &process))
		return;
	fd = process_open(&process);
	err = fd < 0 ? fd : elf_map_open(&binary, fd, NULL);
	if (!err) {
		err = probe_list_read(&binary.elf, &probes);
		if (!err)
			probe_list_free(&probes);
		elf_map_close(&binary);
	}
	if (fd >= 0)
		close(fd);
	if (err != -ENOENT || fd < 0)
		return;
	snprintf(subject, sizeof(subject), "process %u", pid);
	list_report(list, subject, "its program has no USDT probes", symbols_remedy);
	list->explained = true;
}

/* Return whether a mapping is memory with a name, not a file. */
static bool is_memory(const char *path)
{
	static const char *const names[] = { "/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(path, names[i], strlen(names[i])))
			return true;
	return false;
}

static void list_mapped(struct list *list, const struct list_map *file)
{
	const char *path = file->map.path;
	int fd = process_map_open(file->pid, &file->map);
	int err = fd < 0 ? fd : list_open_file(list, path, fd);

	if (fd >= 0 && err == -ENOENT)
		return;
	if (err == -ESTALE && !is_memory(path))
		list_fail(list, path, "deleted since the process started it",
			  "reading a deleted file requires CAP_CHECKPOINT_RESTORE, or root");
	else if (err && err != -ESTALE && err != -ENOEXEC && err != -EINVAL)
		list_error(list, ERROR_FILE, err, path);
}

static void list_process(struct list *list, uint32_t pid)
{
	struct list_process process = { .list = list, .pid = pid };
	char number[12], subject[32];
	int err = process_maps(pid, list_map, &process);

	snprintf(number, sizeof(number), "%u", pid);
	snprintf(subject, sizeof(subject), "process %u", pid);
	if (err)
		list_error(list, err == -ENOMEM ? ERROR_MEMORY : ERROR_PROCESS, err, number);
	else if (!process.wanted && list->options.path_count)
		list_fail(list, subject, "maps none of the files of -l",
			  "without -l, all files that it maps are searched");
	else if (!process.wanted)
		list_fail(list, subject, "maps no program",
			  "it may be a kernel thread, or have ended");
}

static void list_processes(struct list *list)
{
	const struct options *options = &list->options;

	for (unsigned int i = 0; i < options->pid_count; i++)
		list_process(list, options->pids[i]);
	list_unique(list);
	for (size_t i = 0; i < list->nmaps && !list->out.error; i++)
		list_mapped(list, &list->maps[i]);
	for (unsigned int i = 0; i < options->pid_count && !options->path_count; i++)
		list_server_probes(list, options->pids[i]);
	if (!list->seen && !list->failed && !list->explained)
		list_fail(list, options->path_count ? "-l" : "-p", options->path_count ?
			  "no USDT probes in these files" :
			  "no USDT probes in the programs and libraries of these processes", NULL);
}

static int list_server(void *arg, const struct process *process)
{
	struct list *list = arg;
	struct process *servers;

	if (!detect_process(&list->detect, process))
		return 0;
	for (size_t i = 0; i < list->nservers; i++)
		if (process_file_same(&list->servers[i].file, &process->file))
			return 0;
	servers = realloc(list->servers, (list->nservers + 1) * sizeof(*servers));
	if (!servers)
		return -ENOMEM;
	list->servers = servers;
	servers[list->nservers++] = *process;
	return 0;
}

/* List the programs of the servers, without their libraries, which -p includes. */
static void list_servers(struct list *list)
{
	int err = process_each(engine_is_executable, list_server, list);

	if (err)
		list_error(list, err == -ENOMEM ? ERROR_MEMORY : ERROR_PROC, err, NULL);
	else if (!list->nservers)
		list_fail(list, "servers", "no supported database server found",
			  "specify a file, a library (-l c) or a process (-p PID); processes of "
			  "other users require root");
	for (size_t i = 0; i < list->nservers; i++) {
		const struct process *server = &list->servers[i];
		char cause[64];
		int fd = process_open(server);

		/* It may have ended since. */
		if (fd < 0 && !process_runs(server->pid, engine_is_executable, &server->file))
			continue;
		err = fd < 0 ? fd : list_open_file(list, server->exe, fd);
		snprintf(cause, sizeof(cause), "no USDT probes (pid %u)", server->pid);
		if (fd >= 0 && err == -ENOENT)
			list_report(list, server->exe, cause, symbols_remedy);
		else if (err)
			list_error(list, ERROR_FILE, err, server->exe);
	}
}

/* Finish the output. Return the exit status: 0 if probes were printed and nothing failed. */
static int list_end(struct list *list)
{
	int err = output_flush(&list->out);
	char cause[80];

	if (err)
		return message_output(&list->err, err);
	if (list->seen && !list->printed) {
		snprintf(cause, sizeof(cause), list->options.word_count > 1 ?
			 "this and the other filters match none of %llu probes" :
			 "matches none of %llu probes", (unsigned long long)list->seen);
		list_fail(list, list->options.words[0], cause, list->bcc ?
			  "a filter of tplist is a glob of the whole provider:name ('*:query*')" :
			  "a filter is a part of provider:name, or a glob in quotes ('*:query*'); "
			  "the path of a file contains a '/' (./name)");
	}
	return list->failed || !list->printed ? EXIT_FAILED : EXIT_OK;
}

static void list_free(struct list *list)
{
	for (size_t i = 0; i < list->nmaps; i++)
		free((char *)list->maps[i].map.path);
	free(list->maps);
	free(list->servers);
	detect_clear(&list->detect);
	free(list);
}

static int cmd_list(const struct command *command, int argc, char *argv[])
{
	struct list *list = calloc(1, sizeof(*list));
	int ret;

	if (!list)
		return message_no_memory();
	list->bcc = command_of_program(argv[0]) == command;
	ret = start_command(command, argc, argv, &list->options, &list->out, &list->err);
	if (ret != START_GO)
		goto cleanup;
	if (list->options.pid_count)
		list_processes(list);
	else if (!list->options.path_count)
		list_servers(list);
	for (unsigned int i = 0; !list->options.pid_count && i < list->options.path_count; i++)
		list_named(list, list->options.paths[i]);
	ret = list_end(list);
cleanup:
	list_free(list);
	return ret;
}

static const struct option_row option_pid_list = {
	.letter = 'p', .name = "pid", .arg = "PID[,...]",
	.help = "search these processes and their libraries",
	.accepts = "expected a number from 1 to 4194304; separate several by commas, or repeat -p",
	.set = option_set_pid, .complete = option_complete_pids,
};

static const struct option_row option_verbose_list = {
	.letter = 'v', .name = "verbose",
	.help = "print numbers of sites and arguments; -vv: each one",
	.set = option_set_verbose,
};

static const struct option_row *const list_options[] = {
	&option_lib, &option_pid_list, &option_json, &option_verbose_list, &option_help,
	&option_version, NULL
};

const struct command command_list = {
	.name = "list",
	.alias = "tplist",
	.summary = "print the USDT probes of a file or process (alias tplist)",
	.invocation = "dbslower list",
	.usage = "[-l LIB | -p PID | PATH] [OPTION...] [FILTER...]",
	.paths = OPTION_PATHS_MAX,
	.about =
	"Print the USDT probes of a file (PATH contains a '/'), of a library, or of a\n"
	"process and the libraries that it maps (with -l, only of these libraries). The\n"
	"default is all running database servers. FILTER is a part of provider:name or a\n"
	"glob. Files may be of any architecture; reading them requires no privileges.\n",
	.examples =
	"  dbslower list                         probes of the running servers\n"
	"  dbslower list -l c                    probes of libc\n"
	"  dbslower list -v /usr/bin/python3 gc  with numbers of sites and arguments\n"
	"  dbslower list -vv -p 1234 '*:query*'  with sites and arguments\n"
	"\n"
	"Exit status: 0 success; 1 failure, or no such probes; 2 usage error.\n",
	.words = WORDS_FREE,
	.options = list_options,
	.run = cmd_list,
};
