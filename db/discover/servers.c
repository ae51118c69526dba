// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/engines.h"
#include "host/container.h"

static bool server_same(const struct server *a, const struct server *b)
{
	return a->target_id == b->target_id && a->pid == b->pid && a->uid == b->uid &&
	       !strcmp(a->directory, b->directory) && !strcmp(a->container, b->container);
}

void servers_started(struct servers *servers, uint32_t target_id, const struct process *process)
{
	size_t n = 0;

	for (size_t i = 0; i < servers->nmains; i++) {
		struct servers_main one = servers->mains[i];

		if (one.pid != process->pid &&
		    (servers->nmains < SERVERS_MAINS || process_exists(one.pid)))
			servers->mains[n++] = one;
	}
	servers->nmains = n;
	if (n == SERVERS_MAINS)
		servers->many = true;
	else
		servers->mains[servers->nmains++] =
			(struct servers_main){ target_id, process->pid, process->uid };
}

/*
 * Return the only main process of user @uid that runs @target, or 0. One that has ended is dropped,
 * but may have been the one that is asked for.
 */
static uint32_t servers_only(struct servers *servers, const struct target *target, uint32_t uid)
{
	uint32_t only = 0;
	size_t found = 0;

	for (size_t i = servers->many || servers->arriving ? 0 : servers->nmains; i--;) {
		struct servers_main *one = &servers->mains[i];

		if (one->target_id != target->id || one->uid != uid)
			continue;
		only = one->pid;
		found++;
		if (process_runs(one->pid, engine_is_executable, &target->file))
			continue;
		*one = servers->mains[--servers->nmains];
		found = 2;
	}
	return found == 1 ? only : 0;
}

static const struct server *servers_add(struct servers *servers, const struct target *target,
					const struct server *key, const struct process *process)
{
	struct server *server = malloc(sizeof(*server));

	if (!server)
		return NULL;
	*server = *key;
	if (!target->version_vaddr)
		snprintf(server->version, sizeof(server->version), "%s", target->version);
	else
		target_read_version(target, process, server->version);
	server->brand = describe_brand(target->engine, server->version);
	server->next = servers->list;
	servers->list = server;
	servers->count++;
	return server;
}

/* Return the known server of @key, whose PID is set to @pid, or NULL. */
static const struct server *servers_known(const struct servers *servers, struct server *key,
					  uint32_t pid)
{
	key->pid = pid;
	for (const struct server *one = servers->list; one; one = one->next)
		if (server_same(one, key))
			return one;
	return NULL;
}

/* Return the server of process @pid of user @uid, which exists, or NULL. */
static const struct server *servers_find(struct servers *servers, const struct target *target,
					 uint32_t pid, uint32_t uid, const char *container)
{
	struct server key = { .target_id = target->id, .uid = uid };
	const struct server *known;
	struct process process;
	ssize_t len = process_directory(pid, key.directory, sizeof(key.directory) - 1);
	bool several;

	if (len <= 0)
		return NULL;
	key.has_directory = *target->engine->executables && strcmp(key.directory, "/");
	/* A version in memory belongs to a server with one process. */
	several = key.has_directory && !target->version_vaddr;
	snprintf(key.container, sizeof(key.container), "%s", container);
	known = several ? NULL : servers_known(servers, &key, pid);
	if (known)
		return known;
	/* Another process may have its PID. */
	if (process_read(pid, engine_is_executable, &process) || process.uid != uid ||
	    !process_file_same(&process.file, &target->file))
		return NULL;
	if (several) {
		known = servers_known(servers, &key, process.ppid);
		if (!known && process_is_main(&process, engine_is_executable))
			known = servers_known(servers, &key, pid);
	}
	return known ? known : servers_add(servers, target, &key, &process);
}

const struct server *servers_of(struct servers *servers, const struct target *target, uint32_t pid,
				uint32_t uid, const char *container)
{
	const struct server *server = servers_find(servers, target, pid, uid, container);
	char other[sizeof(server->container)];

	for (const struct server *one = servers->list; !server && one; one = one->next)
		if (one->pid == pid && one->uid == uid && one->target_id == target->id)
			server = one;
	if (server)
		return server;
	pid = servers_only(servers, target, uid);
	if (!pid)
		return NULL;
	container_read(pid, other, sizeof(other));
	return servers_find(servers, target, pid, uid, other);
}

void servers_clear(struct servers *servers)
{
	while (servers->list) {
		struct server *next = servers->list->next;

		free(servers->list);
		servers->list = next;
	}
	servers->count = 0;
}
