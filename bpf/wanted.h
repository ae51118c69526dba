/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that -p of trace selects, and those that they forked. */
#ifndef BPF_WANTED_H
#define BPF_WANTED_H

#include "bpf/child.h"

CONSTANT(filter_pids);

/* Return whether the current process, @pid, is selected. */
INLINE int pid_wanted(__u32 pid)
{
	return !VALUE(filter_pids) || bpf_map_lookup_elem(pids, &pid) ||
	       (VALUE(child_parent) && child_wanted());
}

#endif
