/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The servers of events. Those that run the same file are distinguished by user, container and
 * working directory, which is the data directory: all processes of PostgreSQL, MySQL and MariaDB
 * have it, so that the process of a statement is enough to find its server. Other servers are
 * distinguished by process. A user can choose the path in a mount namespace of his own, but not the
 * user ID.
 */
#ifndef DB_DISCOVER_SERVERS_H
#define DB_DISCOVER_SERVERS_H

#include "db/discover/target.h"
#include "db/event.h"

#define SERVERS_BUCKETS	256
#define SERVERS_KNOWN	256
#define SERVERS_MAINS	64
#define SERVERS_FILES	16

struct server_entry;

/* Empty if all zero; servers_clear() frees it. */
struct servers {
	struct server_entry *bucket[SERVERS_BUCKETS];
	size_t count;
	/* Processes whose server was found lately: reading /proc takes longer than most waits. */
	struct servers_known {
		const struct server *server;	/* NULL: unused */
		uint32_t target_id, pid;
		uint64_t until_ns;	/* CLOCK_MONOTONIC; then the PID may have been reused */
	} known[SERVERS_KNOWN];
	struct servers_file {
		const struct server *server;	/* of servers_of_file(); NULL: unused */
		uint32_t target_id;
	} files[SERVERS_FILES];
	struct server unknown;		/* if there is no memory */
	/* The main processes that may run. */
	struct servers_main {
		uint32_t target_id, pid, uid;
	} mains[SERVERS_MAINS];
	size_t nmains;
	bool many;			/* there were more at a time */
	bool arriving;			/* others may have been started */
};

/* Note that @process is the main process of a server that runs the file @target_id. */
void servers_started(struct servers *servers, uint32_t target_id, const struct process *process);

/*
 * Return the server of process @pid, which runs @target for user *@uid, as the kernel knows it;
 * NULL: unknown. If the process is gone, its server is known if only one of that user runs that
 * file. A server that is not found has no PID, but all else that is known. Valid until
 * servers_clear().
 */
const struct server *servers_of(struct servers *servers, const struct target *target, uint32_t pid,
				const uint32_t *uid);

/* Return what is known of all servers that run @target, valid as above. */
const struct server *servers_of_file(struct servers *servers, const struct target *target);

/* Return a copy of @server, which runs the file @target_id, valid as above; or NULL. */
const struct server *servers_keep(struct servers *servers, uint32_t target_id,
				  const struct server *server);

/* Return whether there are so many that they are to be dropped, and found again. */
bool servers_full(const struct servers *servers);

/* Drop all servers, but for their main processes. */
void servers_clear(struct servers *servers);

#endif
