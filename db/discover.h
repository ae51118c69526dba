/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the servers to trace, those that run and those that start later, and puts probes on them.
 */
#ifndef DB_DISCOVER_H
#define DB_DISCOVER_H

#include "bpf/event.h"
#include "db/user_engine.h"
#include "loader/error.h"
#include "db/detect.h"
#include "db/target.h"
#include "loader/sandbox.h"

#define DISCOVER_PIDS		256	/* of one kind at once, in maps and in what is announced */
#define DISCOVER_LOADING	8

/* Which servers are traced. All of it is borrowed. */
struct server_filter {
	const char *engine;		/* servers of this name (engine.h) only; NULL: all */
	const uint32_t *pids;		/* only these processes and their children; none: all */
	size_t npids;
	const char *const *paths;	/* only these files; none: every running server */
	size_t npaths;
	/* USDT probes around the statements of a server that is not in the table; NULL: none. */
	const char *start, *done;	/* PROVIDER:NAME */
	unsigned int text_arg;		/* of the start probe, from 1 */
};

/* A server's file that is traced from now on. Borrowed for the call. */
struct server_info {
	const struct engine *engine;
	const char *path;		/* foreign bytes */
	bool usdt;			/* by USDT probes; else by symbols */
	const char *method;		/* "uprobe_multi" */
	const char *title;		/* "PostgreSQL" */
	const char *version;		/* foreign bytes, "" where it is not known */
	uint32_t has;			/* TARGET_HAS_… of engine.h */
	bool nested;			/* in a PID namespace below ours: its PIDs are not known */
	const uint32_t *pids;		/* of the main processes that run it now */
	size_t npids;
};

/* It must not be moved: an engine of the user's own points into it. */
struct discover {
	const struct server_filter *filter;	/* borrowed */
	/* The owner's, who fills them between discover_init() and what follows it. */
	struct target_common common;
	int pids, servers, comms;	/* maps of those names */
	const struct engine *const *table;	/* engine_table, unless its owner has another */
	/* Called for each file that is traced, and for a later server that cannot be. */
	void *listener;
	void (*server)(void *listener, const struct server_info *server);
	void (*error)(void *listener, const struct error *error);
	/* Called for each wanted process that already ran a file when probes were put on it. */
	void (*process)(void *arg, const struct target *target, const struct process *process);
	void *process_arg;
	uint64_t pid_ns_ino;		/* of the PID namespace that we count in; 0: the initial one */

	/* Owned. An event's target_id is its index here; none is ever taken out. */
	struct target *targets;
	size_t ntargets;
	size_t forget_at;		/* with so many attached it looks which of them still run */
	/* The main processes that -p means. */
	uint32_t wanted[DISCOVER_PIDS];
	size_t nwanted;
	bool started;			/* a server has; whoever saw that clears it */

	/* Its own. */
	struct user_engine user_engine;
	const struct engine *engines[2];	/* the custom one alone, or none: the table's */
	struct detect detect;
	/* Programs that their loader has not mapped yet, which may be servers. */
	struct loading {
		uint32_t pid;		/* 0: free */
		unsigned int tries;
		uint64_t next_ns;
	} loading[DISCOVER_LOADING];
};

/* Begins, without a server. 0, or -errno and why in @error. discover_close() ends it. */
int discover_init(struct discover *d, const struct server_filter *filter, struct error *error);

/* Makes the kernel tell of programs that are called as servers are. */
void discover_await(struct discover *d);

/*
 * Attaches to the servers that run and are wanted, and calls ->server for each. 0, or -errno
 * and why in @fault. That there is none is no error.
 */
int discover_find(struct discover *d, struct error *error);

/* A program was executed: attaches to it if it is a server that is wanted, and tells of it. */
void discover_executed(struct discover *d, const struct event_exec *exec);

/* Looks again at what a loader had not mapped yet. Whether there is any left. */
bool discover_again(struct discover *d);

/*
 * Puts one of our own programs, @program of @object, on raw tracepoint @name; or, where @event is
 * not 0, on the event of that number and name, whose record it is given. A link's descriptor, the
 * caller's to close, or -errno and why in @fault.
 */
int discover_tracepoint(const struct discover *discover, const struct object *object,
			const char *program, const char *name, int event, struct error *error);

/*
 * Gives up what is not needed to go on like this, see loader/sandbox.h. @semaphores: they are written
 * into the servers' memory.
 */
void discover_sandbox(const struct discover *discover, bool semaphores, struct sandbox *sandbox);

/* Takes all probes away; the targets stay known. */
void discover_detach(struct discover *d);

/* Detaches, and frees what it owns. */
void discover_close(struct discover *d);

#endif
