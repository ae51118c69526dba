/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes whose hits are wanted, see bpf/wanted.h. */
#ifndef PROBE_WANTED_H
#define PROBE_WANTED_H

#include "loader/runtime.h"

#define WANTED_PIDS	4096	/* maximum, the size of map "pids" */

/*
 * Have the programs select also the children that a main process forks, if @wanted. Return whether
 * they can: not if the kernel's types are unknown, or its PIDs are not ours.
 */
bool wanted_children(struct runtime *rt, bool wanted);

/*
 * Select process @pid and, if it is a main process (see process_is_main()), its children that
 * execute the same program: without @later, which wanted_children() has returned, only those that
 * exist now, and rt->config.error is called. Return 0, or -errno and the cause in @error.
 */
int wanted_pid(struct runtime *rt, uint32_t pid, bool later, struct error *error);

/* Do both for @pids; without any, select all. Return 0, or -errno and the cause in @error. */
int wanted_select(struct runtime *rt, const uint32_t *pids, size_t npids, struct error *error);

#endif
