/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Awaited names: the programs whose executions the kernel reports each time, of servers and of
 * dynamic loaders. Others are reported once a user. @comms is the descriptor of this map.
 */
#ifndef DB_DISCOVER_AWAIT_H
#define DB_DISCOVER_AWAIT_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/event.h"
#include "db/discover/target.h"

#define AWAIT_NAMES_MAX	4096	/* elements of the map .. */
#define AWAIT_NAMES_RENEW	(AWAIT_NAMES_MAX / 2)	/* .. from which on to await_renew() */

/* Await @npaths files @paths or, if there are none, all programs named as servers; and loaders. */
void await_servers(int comms, const char *const *paths, size_t npaths);

/*
 * Await the program of @process, which may be named as no server is: after the replacement of its
 * file, a restart executes a file that has no probes.
 */
void await_process(int comms, const struct process *process);

/* Return whether @process has the name in @exec; the interpreter of a script has not. */
bool await_is(const struct event_exec *exec, const struct process *process);

/*
 * Drop all names and await again all servers, and those of @targets. Not for use with files that
 * were selected: an execution meanwhile is reported only if those under any name are.
 */
void await_renew(int comms, const struct target *targets, size_t ntargets);

/* Have the name in @exec reported again, as it could not be checked. */
void await_again(int comms, const struct event_exec *exec);

#endif
