/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/discover/: which servers run and which start, what their files are, and where probes are on
 * these: detect (is it a server?), bind (which sites and arguments?), target (attached), survey and
 * describe (only listed), the shares of users.
 * It reads no statements and no sessions.
 */

/*
 * Discovery: find the servers to trace, those that run and those that start later, and attach
 * probes to their files.
 */
#ifndef DB_DISCOVER_DISCOVER_H
#define DB_DISCOVER_DISCOVER_H

#include "bpf/event.h"
#include "db/discover/announce.h"
#include "db/discover/detect.h"
#include "db/discover/share.h"
#include "db/discover/target.h"
#include "db/discover/unused.h"
#include "db/discover/user_engine.h"
#include "db/discover/young.h"
#include "db/engines.h"
#include "loader/runtime.h"

#define DISCOVER_PIDS		256	/* PIDs of one kind in maps */
#define DISCOVER_LOADING	8

/*
 * The servers to trace. All of it is borrowed. Files are selected by ->paths; else by the
 * processes in ->pids; else all files of running and later servers are. ->engine and ->pids apply
 * to each of these.
 */
struct server_filter {
	const char *engine;		/* only servers of the engine of this name; NULL: all */
	const uint32_t *pids;		/* only these processes and their children; none: all */
	size_t npids;
	const char *const *paths;	/* only these files; none: every running server */
	size_t npaths;
	/* USDT probes around the statements of a server that is not in the table; NULL: none. */
	const char *start, *done;	/* PROVIDER:NAME */
	unsigned int text_arg;		/* of the start probe, from 1; 0: 1 if it has one */
};

/* Must not be moved: the engine of the user's probes points into it. */
struct discover {
	const struct server_filter *filter;	/* borrowed */
	/* Set by the owner between discover_init() and the calls that follow. */
	struct target_common common;
	/* Called for each file that is traced, and for a later server that cannot be. */
	void *listener;
	void (*server)(void *listener, const struct server_info *server);
	void (*error)(void *listener, const struct error *error);
	/* Called for each wanted process that already ran a file when probes were attached. */
	void (*process)(void *arg, const struct target *target, const struct process *process);
	/* Called for each server that runs such a file later; may be NULL. */
	void (*restarted)(void *arg, const struct target *target, const struct process *process);
	void *process_arg;

	/* Set by discover_open(). */
	struct runtime *runtime;	/* borrowed */
	int pids, servers, comms;	/* maps of those names, borrowed */

	/*
	 * Owned; in the order of their IDs, none of which is used twice. Without unused_remove()
	 * an ID is the index.
	 */
	struct target *targets;
	size_t ntargets;
	uint32_t next_id;
	struct unused unused;		/* targets that were removed */
	size_t names;			/* that programs have added to map "comms" */
	size_t forget_at;		/* attached targets at which to detach unused ones */
	struct share share;		/* without a limit for ->pids and ->paths */
	uint32_t wanted[DISCOVER_PIDS];	/* main processes of filter->pids */
	size_t nwanted;
	bool started;			/* a wanted server was started; its reader clears it */
	bool resuming;			/* attach to a file of filter->pids or ->paths again */
	struct young young;		/* files that are not attached to yet */

	/* Private. */
	struct user_engine user_engine;
	bool later;			/* its processes select children, see wanted_pid() */
	const struct engine *engines[2];	/* the user's engine; or none: engine_table */
	struct detect detect;
	const struct process *candidate;	/* for which a file is attached to; NULL: a path */
	bool executed;			/* it was just executed */
	/* Processes that are only starting: see discover_loading(). */
	struct loading {
		uint32_t pid;		/* 0: unused */
		unsigned int tries;	/* left */
		uint64_t next_ns;	/* CLOCK_MONOTONIC */
		uint32_t target;	/* 1 + the ID of that to report; 0: none */
	} loading[DISCOVER_LOADING];
};

/* Initialise. Return 0, or -errno with the cause in @error. discover_close() ends it. */
int discover_init(struct discover *d, const struct server_filter *filter, struct error *error);

/*
 * Create the maps and set the constants by which programs choose processes and report the exec of
 * servers. @rt must outlive @d. Return 0, or -errno with the cause in @error.
 */
int discover_open(struct discover *d, struct runtime *rt, struct error *error);

/*
 * Attach to the running servers that are wanted, until runtime_stopped(), and call ->server for
 * each. Return 0, also if there is none, or -errno with the cause in @error.
 */
int discover_find(struct discover *d, struct error *error);

/* Handle the exec of a program: if it is a wanted server, attach to it and call ->server. */
void discover_executed(struct discover *d, const struct event_exec *exec);

/* Check a process whose exec was not reported, as discover_executed() does. */
void discover_running(struct discover *d, const struct process *process);

/* Return the target with @file; NULL: it is none. */
struct target *discover_target(const struct discover *d, const struct process_file *file);

/* Return whether filter->pids, if there are any, has @process or its parent. */
bool discover_wants_process(const struct discover *d, const struct process *process);

/* Return the engines, ended by NULL: index is the number in struct stat_key. */
static inline const struct engine *const *discover_engines(const struct discover *d)
{
	return *d->engines ? d->engines : engine_table;
}

/* Check processes again whose program was not mapped yet. Return whether any are left. */
bool discover_again(struct discover *d);

/* Return whether files are to be attached to when their processes are older. */
bool discover_waits(const struct discover *d);

/* Return the number of files with probes. */
size_t discover_attached(const struct discover *d);

/* Return what is still needed to find and attach to servers, SANDBOX_* of loader/sandbox.h. */
unsigned int discover_needs(const struct discover *discover);

/* Detach all probes. The targets stay known. */
void discover_detach(struct discover *d);

/* Detach, and free what it owns. */
void discover_close(struct discover *d);

#endif
