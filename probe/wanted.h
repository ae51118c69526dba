/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes whose hits are wanted, see bpf/wanted.h. */
#ifndef PROBE_WANTED_H
#define PROBE_WANTED_H

#include "loader/runtime.h"

#define WANTED_PIDS	4096	/* maximum, the size of map "pids" */

/*
 * Select the processes @pids, none: all; and of each main process (see process_is_main()) the
 * children that execute the same program, also those that it forks later. Where the kernel's types
 * are unknown, only those that exist are selected, and rt->config.error is called. Return 0, or
 * -errno and the cause in @error.
 */
int wanted_select(struct runtime *rt, const uint32_t *pids, size_t npids, struct error *error);

#endif
