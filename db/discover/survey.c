// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/embed.h"
#include "db/discover/announce.h"
#include "db/discover/detect.h"
#include "db/engines.h"
#include "host/elf_map.h"
#include "host/pid_namespace.h"
#include "usdt/probe.h"

#define FILES_MAX	256

/* The file of a running server. */
struct survey_found {
	struct process process;		/* the first one found */
	const struct engine *engine;
	uint32_t pids[SERVER_PIDS];	/* of main processes */
	size_t npids;
};

struct survey_scan {
	struct detect detect;
	struct survey_found *found;	/* FILES_MAX of them */
	size_t nfound;
};

/* The programs, which are linked but not loaded. */
struct survey_object {
	struct runtime runtime;
	struct target_common common;
};

static int survey_open(struct survey_object *object, const struct survey *survey)
{
	object->common = (struct target_common){
		.runtime = &object->runtime, .site_arg = survey->arg,
	};
	return runtime_open_offline(&object->runtime, bpf_statement, bpf_statement_end);
}

/* Bind the probes of @engine to a file. Return 0, or -errno with the cause in @error. */
static int survey_bind(const struct survey_object *object, const struct engine *engine, int fd,
		       const char *path, struct target *target, struct error *error)
{
	struct uprobe_set set = { 0 };
	int err = target_prepare(target, &(struct target_file){
		.engine = engine, .fd = fd, .path = path,
	}, &object->common, &set, error);

	uprobe_set_free(&set);
	return err;
}

/* A file that is being reported. */
struct survey_reported {
	const struct survey *survey;
	const struct survey_found *found;
	struct survey_object *object;
	struct target target;
	int fd;				/* or -errno */
	struct error *error;
};

/* Report the servers of @version. */
static void survey_each(void *arg, const char *version, const uint32_t *pids, size_t npids)
{
	struct survey_reported *of = arg;
	const struct survey *survey = of->survey;
	const char *path = of->found->process.exe;
	struct error error = { .kind = ERROR_NONE };
	uint64_t dev, own = 0;
	struct target target;

	pid_namespace_own(&dev, &own);
	survey->server(survey->arg, &(struct server_info){
		.engine = of->target.engine, .path = path, .usdt = of->target.usdt,
		.method = attach_method_name(survey->method),
		.title = describe_title(of->target.engine, version), .version = version,
		.has = of->target.has, .wants = of->target.wants, .pids = pids, .npids = npids,
		.nested = npids && pid_namespace_is_nested(pids[0], own),
	}, of->error->kind == ERROR_NONE ? NULL : of->error);
	if (of->error->kind != ERROR_NONE || !survey->site)
		return;
	/* Again with the callback: the sites follow their server. */
	of->object->common.site = survey->site;
	survey_bind(of->object, of->found->engine, of->fd, path, &target, &error);
	error_clear(&error);
}

/* Report the file open as @fd, or the error if @fd is -errno. */
static void survey_report(const struct survey *survey, const struct survey_found *found, int fd)
{
	struct survey_object *object = malloc(sizeof(*object));
	struct error error = { .kind = ERROR_NONE };
	struct survey_reported of = { .survey = survey, .found = found, .object = object,
				      .target.engine = found->engine, .fd = fd, .error = &error };

	if (!object || survey_open(object, survey))
		error_set(&error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	else if (fd < 0)
		error_set(&error, ERROR_FILE, fd, found->process.exe, NULL);
	else
		survey_bind(object, found->engine, fd, found->process.exe, &of.target, &error);
	target_versions(&of.target, found->pids, found->npids, survey_each, &of);
	error_clear(&error);
	free(object);
}

static int scan_each(void *arg, const struct process *process)
{
	struct survey_scan *scan = arg;
	struct survey_found *found = NULL;
	const struct engine *engine;

	for (size_t i = 0; i < scan->nfound && !found; i++)
		if (process_file_same(&scan->found[i].process.file, &process->file))
			found = &scan->found[i];
	if (!found) {
		engine = detect_process(&scan->detect, process);
		if (!engine || scan->nfound == FILES_MAX)
			return 0;
		found = &scan->found[scan->nfound++];
		*found = (struct survey_found){ .process = *process, .engine = engine };
	}
	if (found->npids < SERVER_PIDS && process_is_main(process, engine_is_executable))
		found->pids[found->npids++] = process->pid;
	return 0;
}

/*
 * Open the file of @found. The process that was found first may have ended: a backend lives as long
 * as its connection. Return the descriptor, -errno, or -ESRCH if all have ended.
 */
static int survey_open_found(struct survey_found *found)
{
	int fd = process_open(&found->process);

	for (size_t i = 0; fd < 0 && i < found->npids; i++) {
		struct process process;

		if (process_read(found->pids[i], engine_is_executable, &process) ||
		    !process_file_same(&process.file, &found->process.file))
			continue;
		found->process = process;
		fd = process_open(&process);
	}
	if (fd < 0 && !process_runs(found->process.pid, engine_is_executable,
				    &found->process.file))
		return -ESRCH;
	return fd;
}

int survey_running(const struct survey *survey)
{
	struct survey_scan scan = { .found = calloc(FILES_MAX, sizeof(*scan.found)) };
	int err = scan.found ? process_each(engine_is_executable, scan_each, &scan) : -ENOMEM;
	int reported = 0;

	for (size_t i = 0; !err && i < scan.nfound; i++) {
		int fd = survey_open_found(&scan.found[i]);

		if (fd == -ESRCH)
			continue;
		survey_report(survey, &scan.found[i], fd);
		reported++;
		if (fd >= 0)
			close(fd);
	}
	detect_clear(&scan.detect);
	free(scan.found);
	return err ? err : reported;
}

/* Describe a file that may not be a server's. */
static void survey_probes(const struct elf *elf, struct survey_other *other)
{
	struct probe_list probes;

	other->machine = elf->machine;
	if (probe_list_read(elf, &probes))
		return;
	for (size_t i = 0; i < probes.count; i = probe_list_end(&probes, i))
		other->probes++;
	probe_list_free(&probes);
}

int survey_file(const struct survey *survey, const char *path, int fd, struct survey_other *other)
{
	struct survey_found *found;
	struct elf_map binary;
	int err = elf_map_open(&binary, fd, NULL);

	*other = (struct survey_other){ 0 };
	if (err)
		return err;
	survey_probes(&binary.elf, other);
	elf_map_close(&binary);
	other->embedded = detect_is_embedded(path, fd);
	found = calloc(1, sizeof(*found));
	if (!found)
		return -ENOMEM;
	strncpy(found->process.exe, path, sizeof(found->process.exe) - 1);
	found->engine = detect_file(path, fd);
	if (found->engine)
		survey_report(survey, found, fd);
	else
		err = -ENOENT;
	free(found);
	return err;
}
