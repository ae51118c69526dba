// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/engines.h"
#include "host/arch.h"
#include "host/process_memory.h"

/* The symbols of the runtime that BOLT's --hugify adds: __bolt_hugify_start_program, .. */
#define COPIES_ITSELF	"__bolt_hugify"

struct target *target_by_id(struct target *targets, size_t ntargets, uint32_t id)
{
	size_t low = 0, high = ntargets;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (targets[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ntargets && targets[low].id == id ? &targets[low] : NULL;
}

static int target_bind(struct target *target, const struct target_file *file,
		       const struct target_common *common, const struct elf *elf,
		       struct uprobe_set *set, struct error *error)
{
	struct bind bind;
	int err;

	if (elf->machine != (elf->is64 ? HOST_ELF_MACHINE : HOST_ELF_COMPAT))
		return error_set(error, ERROR_MACHINE, -ENOEXEC, target->path, NULL);
	/* Engines with words have tables for 64-bit servers. The breakdown knows 64-bit calls. */
	if (!elf->is64 && (*target->engine->words || common->asked & ~(uint32_t)ENGINE_IDENTITY))
		return error_set(error, ERROR_32_BIT, -ENOEXEC, target->path, NULL);
	if (common->copies && elf_symbol_has_prefix(elf, COPIES_ITSELF)) {
		err = common->copies(common->copies_arg, target, error);
		if (err)
			return err;
	}
	describe_version(elf, target->engine, target->version, sizeof(target->version));
	target->version_vaddr = describe_version_vaddr(elf, target->engine);
	target->lowest_vaddr = elf_map_lowest_vaddr(elf);
	err = bind_open(&bind, &(struct bind_config){
		.engine = target->engine, .elf = *elf, .path = target->path,
		.version = target->version, .fd = file->fd, .features = &common->runtime->features,
		.target_id = target->id, .engine_number = file->engine_number,
		.asked = common->asked, .no_statements = common->no_statements,
		.locks = common->locks, .limited = common->limited,
		.no_semaphores = target->no_semaphores,
		.object = &common->runtime->objects[0],
		.values = common->runtime->values, .nvalues = common->runtime->nvalues,
	}, set, error);
	target->has = bind.has;
	target->wants = bind.wants;
	target->usdt = bind.usdt;
	target->refused = bind.harm.refused;
	if (!err)
		backend_find(elf, target->engine, &target->places);
	if (!err && common->site)
		describe_sites(&bind, common->site, common->site_arg);
	bind_close(&bind);
	return err;
}

int target_prepare(struct target *target, const struct target_file *file,
		   const struct target_common *common, struct uprobe_set *set,
		   struct error *error)
{
	struct elf_map map;
	int err;

	*target = (struct target){ .engine = file->engine, .id = file->id,
				   .no_semaphores = file->no_semaphores ||
						    common->runtime->uncounted };
	*set = (struct uprobe_set){ 0 };
	snprintf(target->path, sizeof(target->path), "%s", file->path);
	process_file_read(file->fd, &target->file);
	err = elf_map_open(&map, file->fd, &common->pause);
	if (err)
		return error_set(error, err == -ENOEXEC ? ERROR_NOT_ELF : ERROR_FILE, err,
				 file->path, NULL);
	err = target_bind(target, file, common, &map.elf, set, error);
	if (elf_map_limit(&map)) {
		uprobe_set_free(set);
		error_clear(error);
		err = error_set(error, ERROR_TOO_LARGE, elf_map_limit(&map), file->path, NULL);
	}
	elf_map_close(&map);
	return err;
}

static int target_attach(struct target *target, const struct target_file *file,
			 const struct target_common *common, struct error *error)
{
	struct uprobe_set set;
	int err = target_prepare(target, file, common, &set, error);

	if (err)
		return err;
	err = uprobe_set_offsets(&set, &target->sites, &target->nsites);
	if (err) {
		uprobe_set_free(&set);
		return error_set(error, ERROR_MEMORY, err, NULL, NULL);
	}
	if (common->attaching)
		common->attaching(common->attaching_arg, target->id);
	/* Its records may be handled before the last probe is attached. */
	if (common->ntargets)
		++*common->ntargets;
	err = runtime_attach(common->runtime, &set, &(struct uprobe_file){
		.name = file->engine->name, .fd = file->fd, .path = target->path,
	}, &target->links, error);
	uprobe_set_free(&set);
	if (err && common->ntargets)
		--*common->ntargets;
	if (err)
		target_close(target);
	return err;
}

/*
 * A process of any user that maps the file can store a number in its own copy of a semaphore that
 * the kernel cannot increment. It then refuses the probe for all processes.
 */
int target_open(struct target *target, const struct target_file *file,
		const struct target_common *common, struct error *error)
{
	int err = target_attach(target, file, common, error);
	struct error other = { .kind = ERROR_NONE };
	struct target_file without = *file;

	if (err != -EINVAL || error->kind != ERROR_ATTACH)
		return err;
	without.no_semaphores = true;
	if (!target_attach(target, &without, common, &other)) {
		error_clear(error);
		err = 0;
	}
	error_clear(&other);
	return err;
}

void target_read_version(const struct target *target, const struct process *process, char *version)
{
	char read[SERVER_VERSION];
	struct process_memory memory;

	if (!target->version_vaddr ||
	    process_memory_open_program(process, target->lowest_vaddr, &memory))
		return;
	if (!process_memory_variable(&memory, target->version_vaddr, read, sizeof(read) - 1)) {
		read[sizeof(read) - 1] = '\0';
		snprintf(version, SERVER_VERSION, "%s", read);
	}
	process_memory_close(&memory);
}

void target_versions(const struct target *target, const uint32_t *pids, size_t npids,
		     void (*each)(void *arg, const char *version, const uint32_t *pids,
				  size_t npids), void *arg)
{
	char (*versions)[SERVER_VERSION] = npids ? calloc(npids, SERVER_VERSION) : NULL;
	uint32_t *same = versions ? calloc(npids, sizeof(*same)) : NULL;
	struct process process;

	for (size_t i = 0; same && i < npids; i++) {
		snprintf(versions[i], SERVER_VERSION, "%s", target->version);
		if (target->version_vaddr && !process_read(pids[i], engine_is_executable, &process))
			target_read_version(target, &process, versions[i]);
	}
	for (size_t i = 0; same && i < npids; i++) {
		size_t n = 0, before = 0;

		while (before < i && strcmp(versions[before], versions[i]))
			before++;
		for (size_t k = i; before == i && k < npids; k++)
			if (!strcmp(versions[k], versions[i]))
				same[n++] = pids[k];
		if (n)
			each(arg, versions[i], same, n);
	}
	if (!same)
		each(arg, target->version, pids, npids);
	free(versions);
	free(same);
}

void target_close(struct target *target)
{
	uprobe_set_detach(&target->links);
	free(target->sites);
	target->sites = NULL;
	target->nsites = 0;
}

bool target_is_starting(const struct target *target, const struct process *process)
{
	char version[SERVER_VERSION] = "";

	if (!target->version_vaddr || !process_file_same(&process->file, &target->file))
		return false;
	target_read_version(target, process, version);
	return !*version;
}
