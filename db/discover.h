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

struct tracer_config;

/* It must not be moved: an engine of the user's own points into it. */
struct discover {
	const struct tracer_config *config;	/* borrowed */
	/* The owner's, who fills them between discover_init() and what follows it. */
	struct target_common common;
	int pids, servers, comms;	/* maps of those names */
	const struct engine *const *table;	/* engine_table, unless its owner has another */
	/* Called for each process that already ran a file when probes were put on it. */
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

/* Begins, without a server. 0, or -errno and why in @fault. discover_close() ends it. */
int discover_init(struct discover *d, const struct tracer_config *config, struct error *error);

/* Makes the kernel tell of programs that are called as servers are. */
void discover_await(struct discover *d);

/*
 * Attaches to the servers that run and are wanted, and calls config->server for each. 0, or -errno
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
