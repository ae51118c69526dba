// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe/wanted.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/lockdown.h"
#include "host/process.h"
#include "loader/btf.h"

static const struct {
	const char *constant, *structure, *member;
} wanted_offsets[] = {
	{ "constant_child_parent", "task_struct", "real_parent" },
	{ "constant_child_tgid", "task_struct", "tgid" },
	{ "constant_child_mm", "task_struct", "mm" },
	{ "constant_child_file", "mm_struct", "exe_file" },
	{ "constant_child_inode", "file", "f_inode" },
};

#define OFFSETS	(sizeof(wanted_offsets) / sizeof(wanted_offsets[0]))

/* A main process whose children are added. */
struct wanted_main {
	const struct process *process;
	int map;
};

bool wanted_children(struct runtime *rt, bool wanted)
{
	uint64_t offsets[OFFSETS] = { 0 };
	struct btf_place place;
	struct btf btf = { 0 };
	char lockdown[24];
	int err;

	/* Under lockdown programs may not read the kernel's memory. */
	lockdown_read(lockdown, sizeof(lockdown));
	err = wanted && !rt->pid_ns_ino && strcmp(lockdown, "confidentiality") &&
	      feature_has(&rt->features, FEATURE_TYPES) ? btf_load(&btf) : -ENOENT;
	for (size_t i = 0; !err && i < OFFSETS; i++) {
		err = btf_member(&btf, wanted_offsets[i].structure, wanted_offsets[i].member,
				 &place);
		offsets[i] = place.offset;
	}
	btf_close(&btf);
	for (size_t i = 0; i < OFFSETS; i++)
		runtime_constant(rt, wanted_offsets[i].constant, err ? 0 : offsets[i]);
	return !err;
}

/* For process_each(). */
static int wanted_child(void *arg, const struct process *process)
{
	const struct wanted_main *main_process = arg;
	const struct process *parent = main_process->process;
	const uint8_t only = WANTED_PROCESS;

	if (process->ppid != parent->pid || !process_file_same(&process->file, &parent->file))
		return 0;
	return sys_map_update(main_process->map, &process->pid, &only);
}

int wanted_pid(struct runtime *rt, uint32_t pid, bool later, struct error *error)
{
	int map = runtime_map(rt, "pids");
	bool (*is_program)(const char *name) = rt->config.is_program;
	struct error unknown = { .kind = ERROR_NONE };
	struct process process;
	struct wanted_main main_process = { &process, map };
	bool children = !process_read(pid, is_program, &process) &&
			process_is_main(&process, is_program);
	uint8_t value = children ? WANTED_CHILDREN : WANTED_PROCESS;
	char text[16];
	int err = sys_map_update(map, &pid, &value);

	if (!err && children && !later) {
		err = process_each(is_program, wanted_child, &main_process);
		snprintf(text, sizeof(text), "%u", pid);
		error_set(&unknown, ERROR_CHILDREN, 0, text, NULL);
		rt->config.error(rt->config.arg, &unknown);
	}
	return err ? error_set(error, ERROR_MAP, err, "pids", NULL) : 0;
}

int wanted_select(struct runtime *rt, const uint32_t *pids, size_t npids, struct error *error)
{
	bool later = wanted_children(rt, npids > 0);
	int err = 0;

	runtime_constant(rt, "constant_filter_pids", npids > 0);
	for (size_t i = 0; !err && i < npids; i++)
		err = wanted_pid(rt, pids[i], later, error);
	return err;
}
