// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/arch.h"
#include "host/elf_map.h"
#include "host/process_memory.h"

static int target_bind(struct target *target, const struct target_common *common,
		       const struct elf *elf, struct uprobe_set *set, struct error *error)
{
	struct bind bind;
	int err;

	if (elf->machine != HOST_ELF_MACHINE)
		return error_set(error, ERROR_MACHINE, -ENOEXEC, target->path, NULL);
	describe_version(elf, target->engine, target->version, sizeof(target->version));
	target->version_vaddr = describe_version_vaddr(elf, target->engine);
	target->lowest_vaddr = describe_lowest_vaddr(elf);
	err = bind_open(&bind, &(struct bind_config){
		.engine = target->engine, .elf = *elf, .path = target->path,
		.target_id = target->id, .asked = common->asked, .object = common->object,
		.values = common->values, .nvalues = common->nvalues,
	}, set, error);
	target->has = bind.has;
	target->usdt = bind.usdt;
	if (!err)
		backend_find(elf, target->engine, bind.probe_set, &target->places);
	if (!err && common->site)
		describe_sites(&bind, common->site, common->site_arg);
	bind_close(&bind);
	return err;
}

int target_plan(struct target *target, const struct target_file *file,
		const struct target_common *common, struct uprobe_set *set, struct error *error)
{
	struct elf_map map;
	int err;

	*target = (struct target){ .engine = file->engine, .id = file->id };
	*set = (struct uprobe_set){ 0 };
	snprintf(target->path, sizeof(target->path), "%s", file->path);
	process_file_read(file->fd, &target->file);
	err = elf_map_open(&map, file->fd);
	if (err)
		return error_set(error, err == -ENOEXEC ? ERROR_NOT_ELF : ERROR_FILE, err,
				 file->path, NULL);
	err = target_bind(target, common, &map.elf, set, error);
	elf_map_close(&map);
	return err;
}

/* Keep the addresses of the semaphores of @set, each once. Return 0 or -ENOMEM. */
static int target_keep(struct target *target, const struct uprobe_set *set)
{
	target->semaphores = calloc(set->nsites, sizeof(*target->semaphores));
	if (!target->semaphores)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->nsites; i++) {
		uint64_t vaddr = set->sites[i].semaphore ? set->sites[i].semaphore_vaddr : 0;
		size_t n = 0;

		while (n < target->nsemaphores && target->semaphores[n] != vaddr)
			n++;
		if (vaddr && n == target->nsemaphores)
			target->semaphores[target->nsemaphores++] = vaddr;
	}
	return 0;
}

void target_semaphores(const struct target *target, struct semaphores *semaphores,
		       const struct process *process)
{
	if (semaphores && process_file_same(&process->file, &target->file))
		semaphores_write(semaphores, process, target->lowest_vaddr, target->semaphores,
				 target->nsemaphores);
}

struct target_writer {
	const struct target *target;
	struct semaphores *semaphores;
};

static int writer_each(void *arg, const struct process *process)
{
	const struct target_writer *writer = arg;

	target_semaphores(writer->target, writer->semaphores, process);
	return 0;
}

/*
 * Write the semaphores into all processes that run the file. Repeat until none is new: a process
 * may be forked from one that was not yet written to.
 */
static void target_semaphores_all(struct target *target, struct semaphores *semaphores)
{
	struct target_writer writer = { target, semaphores };
	size_t before;

	do {
		before = semaphores->nmarks;
		process_each(semaphores->is_program, writer_each, &writer);
	} while (semaphores->nmarks > before);
}

int target_open(struct target *target, const struct target_file *file,
		const struct target_common *common, struct error *error)
{
	bool uncounted = common->semaphores && common->semaphores->on;
	struct uprobe_set set;
	int err = target_plan(target, file, common, &set, error);

	if (err)
		return err;
	err = uncounted ? target_keep(target, &set) : 0;
	if (err) {
		uprobe_set_free(&set);
		return error_set(error, ERROR_MEMORY, err, NULL, NULL);
	}
	err = uprobe_set_attach(&set, &(struct uprobe_file){
		.name = file->engine->name, .fd = file->fd, .path = target->path,
		.features = common->features, .method = common->method,
		.uncounted = uncounted,
		.program = common->program, .program_arg = common->program_arg,
	}, &target->links, error);
	uprobe_set_free(&set);
	if (err)
		target_close(target);
	else if (uncounted && target->nsemaphores)
		target_semaphores_all(target, common->semaphores);
	return err;
}

void target_read_version(struct target *target, const struct process *process)
{
	size_t size = sizeof(target->version) - 1;
	struct process_memory memory;

	if (!target->version_vaddr || !process->pid ||
	    process_memory_open_program(process, target->lowest_vaddr, &memory))
		return;
	if (process_memory_variable(&memory, target->version_vaddr, target->version, size))
		size = 0;
	target->version[size] = '\0';
	process_memory_close(&memory);
}

const char *target_title(const struct target *target)
{
	const struct engine_brand *brand = describe_brand(target->engine, target->version);

	return brand ? brand->title : target->engine->title;
}

const char *target_otel_system(const struct target *target)
{
	const struct engine_brand *brand = describe_brand(target->engine, target->version);

	return brand ? brand->otel_system : target->engine->otel_system;
}

void target_close(struct target *target)
{
	uprobe_set_detach(&target->links);
	free(target->semaphores);
	target->semaphores = NULL;
	target->nsemaphores = 0;
}
