/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cost of a trap: the time of a hit of a probe, without its program. The kernel has no
 * statistics of it, so it is measured on the tool's own probe.
 */
#ifndef DB_OVERHEAD_TRAP_H
#define DB_OVERHEAD_TRAP_H

#include "loader/runtime.h"

/*
 * Measure the trap of the attach method in use, which takes some milliseconds. Return 0 and the
 * time in *@ns, or -errno with the cause in @error.
 */
int trap_measure(struct runtime *rt, uint64_t *ns, struct error *error);

#endif
