/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The servers of statements. Those that run the same file are distinguished by user, container and
 * working directory, which is the data directory: all processes of PostgreSQL, MySQL and MariaDB
 * have it, so that the process of a statement is enough to find its server. Other servers are
 * distinguished by process. A user can choose the path in a mount namespace of his own, but not the
 * user ID.
 */
#ifndef DB_DISCOVER_SERVERS_H
#define DB_DISCOVER_SERVERS_H

#include "db/discover/target.h"

#define SERVERS_MAX	1024	/* then all are dropped and found again */
#define SERVERS_MAINS	64

/* Foreign bytes; "" is unknown. */
struct server {
	struct server *next;
	uint32_t target_id;
	uint32_t pid;			/* of its main process */
	bool has_directory;		/* ->directory is its own, see above */
	char version[TARGET_VERSION];
	uint32_t uid;			/* of its user */
	char container[64];
	char directory[256];		/* cut if longer */
	const struct engine_brand *brand;	/* NULL: there is one only, or it is unknown */
};

/* Empty if all zero; servers_clear() frees it. */
struct servers {
	struct server *list;
	size_t count;
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
 * Return the server of process @pid, which runs @target for user @uid, as the kernel knows it, in
 * @container ("": none). If the process is gone, its server is known if only one of that user runs
 * that file. Return NULL if it is unknown. Valid until servers_clear().
 */
const struct server *servers_of(struct servers *servers, const struct target *target, uint32_t pid,
				uint32_t uid, const char *container);

/* Drop all servers, but for their main processes. */
void servers_clear(struct servers *servers);

#endif
