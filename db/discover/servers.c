// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/engines.h"
#include "host/clock.h"
#include "host/container.h"

#define SERVERS_MAX	1024
#define KNOWN_NS	1000000000u

struct server_entry {
	struct server_entry *next;
	struct server server;
	uint32_t target_id;
	char working[256];		/* directory of its processes, cut if longer */
};

static struct server_entry **servers_bucket(struct servers *servers, uint32_t target_id,
					    uint32_t pid)
{
	return &servers->bucket[(target_id * 31 + pid) % SERVERS_BUCKETS];
}

/* Return the known server as @server that runs the file @target_id in @working, or NULL. */
static const struct server *servers_find(struct servers *servers, uint32_t target_id,
					 const struct server *server, const char *working)
{
	for (const struct server_entry *one = *servers_bucket(servers, target_id, server->pid);
	     one; one = one->next)
		if (one->target_id == target_id && one->server.pid == server->pid &&
		    one->server.has_uid == server->has_uid && one->server.uid == server->uid &&
		    !strcmp(one->working, working) &&
		    /* That of the file becomes known with its first server. */
		    (server->pid || !strcmp(one->server.version, server->version)) &&
		    !strcmp(one->server.container, server->container))
			return &one->server;
	return NULL;
}

static const struct server *servers_add(struct servers *servers, uint32_t target_id,
					const struct server *server, const char *working)
{
	struct server_entry **bucket = servers_bucket(servers, target_id, server->pid);
	struct server_entry *entry = malloc(sizeof(*entry));

	if (!entry)
		return NULL;
	*entry = (struct server_entry){ .next = *bucket, .server = *server,
					.target_id = target_id };
	snprintf(entry->working, sizeof(entry->working), "%s", working);
	*bucket = entry;
	servers->count++;
	return &entry->server;
}

const struct server *servers_keep(struct servers *servers, uint32_t target_id,
				  const struct server *server)
{
	const struct server *kept = servers_find(servers, target_id, server, "");

	return kept ? kept : servers_add(servers, target_id, server, "");
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

/* Return what is known of a server that runs @target, of which no process was found. */
static const struct server *servers_partly(struct servers *servers, const struct target *target,
					   const uint32_t *uid, const char *container)
{
	struct server server;
	const struct server *known;

	describe_server(&server, target->engine, target->version, target->path);
	server.has_uid = uid;
	server.uid = uid ? *uid : 0;
	snprintf(server.container, sizeof(server.container), "%s", container);
	known = servers_keep(servers, target->id, &server);
	if (!known)
		servers->unknown = server;
	return known ? known : &servers->unknown;
}

/* Return the server of process @pid, which exists, or NULL. */
static const struct server *servers_search(struct servers *servers, const struct target *target,
					   uint32_t pid, uint32_t uid, const char *container)
{
	struct server server;
	const struct server *known;
	struct process process;
	char working[sizeof(server.directory)] = "";
	bool own, several;

	if (process_directory(pid, working, sizeof(working) - 1) <= 0)
		return NULL;
	describe_server(&server, target->engine, target->version, target->path);
	server.pid = pid;
	server.has_uid = true;
	server.uid = uid;
	snprintf(server.container, sizeof(server.container), "%s", container);
	own = *target->engine->executables && strcmp(working, "/");
	/* A version in memory belongs to a server with one process. */
	several = own && !target->version_vaddr;
	known = several ? NULL : servers_find(servers, target->id, &server, working);
	if (known)
		return known;
	/* Another process may have its PID. */
	if (process_read(pid, engine_is_executable, &process) || process.uid != uid ||
	    !process_file_same(&process.file, &target->file))
		return NULL;
	if (several) {
		server.pid = process.ppid;
		known = servers_find(servers, target->id, &server, working);
	}
	if (several && !known && process_is_main(&process, engine_is_executable)) {
		server.pid = pid;
		known = servers_find(servers, target->id, &server, working);
	}
	if (known)
		return known;
	/* That of the file is another server's. */
	if (target->version_vaddr)
		memset(server.version, 0, sizeof(server.version));
	target_read_version(target, &process, server.version);
	describe_product(&server);
	if (own)
		memcpy(server.directory, working, sizeof(working));
	return servers_add(servers, target->id, &server, working);
}

static const struct server *servers_read(struct servers *servers, const struct target *target,
					 uint32_t pid, uint32_t uid, const char *container)
{
	const struct server *server = servers_search(servers, target, pid, uid, container);
	struct server_entry *one = *servers_bucket(servers, target->id, pid);
	char other[sizeof(server->container)];

	for (; !server && one; one = one->next)
		if (one->server.pid == pid && one->server.has_uid && one->server.uid == uid &&
		    one->target_id == target->id)
			server = &one->server;
	if (server)
		return server;
	pid = servers_only(servers, target, uid);
	if (!pid)
		return NULL;
	container_read(pid, other, sizeof(other));
	return servers_search(servers, target, pid, uid, other);
}

const struct server *servers_of(struct servers *servers, const struct target *target, uint32_t pid,
				const uint32_t *uid)
{
	struct servers_known *known = &servers->known[pid % SERVERS_KNOWN];
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	const struct server *server = NULL;
	char container[sizeof(server->container)];

	if (known->server && known->pid == pid && known->target_id == target->id && uid &&
	    known->server->uid == *uid && now_ns < known->until_ns)
		return known->server;
	container_read(pid, container, sizeof(container));
	if (uid)
		server = servers_read(servers, target, pid, *uid, container);
	if (!server) {
		server = servers_partly(servers, target, uid, container);
	} else {
		*known = (struct servers_known){ .server = server, .target_id = target->id,
						 .pid = pid, .until_ns = now_ns + KNOWN_NS };
	}
	return server;
}

const struct server *servers_of_file(struct servers *servers, const struct target *target)
{
	struct servers_file *file = &servers->files[target->id % SERVERS_FILES];

	if (!file->server || file->target_id != target->id ||
	    strcmp(file->server->version, target->version))
		*file = (struct servers_file){ servers_partly(servers, target, NULL, ""),
					       target->id };
	return file->server;
}

bool servers_full(const struct servers *servers)
{
	return servers->count >= SERVERS_MAX;
}

void servers_clear(struct servers *servers)
{
	for (size_t i = 0; i < SERVERS_BUCKETS; i++) {
		while (servers->bucket[i]) {
			struct server_entry *next = servers->bucket[i]->next;

			free(servers->bucket[i]);
			servers->bucket[i] = next;
		}
	}
	memset(servers->known, 0, sizeof(servers->known));
	memset(servers->files, 0, sizeof(servers->files));
	servers->count = 0;
}
