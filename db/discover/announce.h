/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports of the files that are traced, with the main processes that run them, and of processes
 * that execute a copy of a file's code, which have no probes: see host/process_code.h.
 */
#ifndef DB_DISCOVER_ANNOUNCE_H
#define DB_DISCOVER_ANNOUNCE_H

#include "db/discover/target.h"

#define SERVER_PIDS	64	/* processes that -p selects, or that are listed of a server */

/* A server's file that is traced from now on. Borrowed for the call. */
struct server_info {
	const struct engine *engine;
	const char *path;		/* foreign bytes */
	bool usdt;			/* a USDT probe is used, else only symbols */
	const char *method;		/* of attaching: "uprobe_multi" */
	const char *title;		/* "PostgreSQL" */
	const char *version;		/* foreign bytes; "": unknown */
	uint32_t has, wants;		/* TARGET_HAS_* of engine.h, see struct bind */
	bool copied;			/* all processes that run it execute copies of its code */
	bool nested;			/* in a child PID namespace: its own PIDs are unknown */
	const uint32_t *pids;		/* of the main processes that run it now */
	size_t npids;
};

/* The files to report. Everything is borrowed. */
struct announce {
	struct target *targets;
	size_t count;
	const struct runtime *runtime;
	bool by_pid, by_path;		/* how they were selected; neither: by discovery */
	struct elf_pause pause;		/* between two processes */
	void *arg;			/* of these functions: */
	bool (*wants)(void *arg, const struct process *process);
	bool (*wants_main)(void *arg, uint32_t pid);
	/* See struct discover. */
	void *process_arg;
	void (*process)(void *arg, const struct target *target, const struct process *process);
	void *listener;
	void (*server)(void *listener, const struct server_info *server);
	void (*error)(void *listener, const struct error *error);
};

/*
 * Call ->process for each wanted process of the files, and ->server for each version of the servers
 * that run one. Return 0; or, unless @error is NULL, -ENOTSUP with the cause if no process that was
 * selected by its PID is left.
 */
int announce_targets(const struct announce *announce, struct error *error);

#endif
