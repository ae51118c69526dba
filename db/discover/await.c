// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/await.h"

#include <stdio.h>
#include <string.h>

#include "db/engines.h"
#include "host/arch.h"
#include "loader/sys.h"

#define COMM_LEN	15

static void await_name(int comms, const char *name)
{
	struct exec_name key = { .comm = "", .uid = EXEC_ANY_USER };
	const char *slash = strrchr(name, '/');
	char always = EXEC_ALWAYS;

	name = slash ? slash + 1 : name;
	memcpy(key.comm, name, strnlen(name, COMM_LEN));
	sys_map_update(comms, &key, &always);
}

void await_servers(int comms, const char *const *paths, size_t npaths)
{
	/* A server may be started by running the dynamic loader. */
	static const char *const loaders[] = { HOST_LOADERS };

	for (size_t i = 0; i < npaths; i++)
		await_name(comms, paths[i]);
	for (size_t i = 0; !npaths && engine_table[i]; i++)
		for (const char *const *name = engine_table[i]->executables; *name; name++)
			await_name(comms, *name);
	for (size_t i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++)
		await_name(comms, loaders[i]);
}

void await_process(int comms, const struct process *process)
{
	char name[256];

	process_name(process, name, sizeof(name));
	await_name(comms, name);
}

/* Delete all elements. Programs may add some meanwhile. */
static void await_clear(int comms)
{
	struct exec_name keys[2];
	int err = sys_map_next(comms, NULL, &keys[0]);

	for (uint32_t n = 0; !err && n < 2 * AWAIT_NAMES_MAX; n++) {
		err = sys_map_next(comms, &keys[n % 2], &keys[(n + 1) % 2]);
		sys_map_delete(comms, &keys[n % 2]);
	}
}

void await_renew(int comms, const struct target *targets, size_t ntargets)
{
	struct process process;

	await_clear(comms);
	await_servers(comms, NULL, 0);
	for (size_t i = 0; i < ntargets; i++) {
		snprintf(process.exe, sizeof(process.exe), "%s", targets[i].path);
		if (targets[i].file.ino)
			await_process(comms, &process);
	}
}

bool await_is(const struct event_exec *exec, const struct process *process)
{
	char name[256];

	process_name(process, name, sizeof(name));
	return !strncmp(name, exec->name.comm, COMM_LEN);
}

void await_again(int comms, const struct event_exec *exec)
{
	char value;

	if (!sys_map_lookup(comms, &exec->name, &value) && value == EXEC_REPORTED)
		sys_map_delete(comms, &exec->name);
}
