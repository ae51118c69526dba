/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernel struct offsets that the time breakdown's BPF programs are linked with, read from the
 * running kernel: from BTF (types), or from tracefs (records of the scheduler's tracepoints).
 */
#ifndef DB_SESSION_KERNEL_OFFSETS_H
#define DB_SESSION_KERNEL_OFFSETS_H

#include "loader/feature.h"
#include "loader/linker.h"

#define KERNEL_OFFSETS	49	/* constants */
#define KERNEL_EVENTS	3

/*
 * Fill @numbers with the constants' names and values. If the kernel has no usable BTF, the offsets
 * in the records of sched_switch, sched_wakeup and sched_waking are used instead: @events are then
 * the numbers of these events, whose records the programs must get; else 0. Return 0, or -errno if
 * neither is available.
 */
int kernel_offsets_read(struct features *features, struct object_value numbers[KERNEL_OFFSETS],
			int events[KERNEL_EVENTS]);

/* Fill @numbers with the constants' names and 0, for programs that do not use them. */
void kernel_offsets_none(struct object_value numbers[KERNEL_OFFSETS]);

#endif
