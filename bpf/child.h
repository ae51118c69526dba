/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The children of processes that -p selects, by the kernel's structures. */
#ifndef BPF_CHILD_H
#define BPF_CHILD_H

#include "bpf/record.h"

/* Offsets in these; the first one 0: unknown, or not wanted. */
CONSTANT(child_parent);
CONSTANT(child_tgid);
CONSTANT(child_mm);
CONSTANT(child_file);
CONSTANT(child_inode);

MAP(pids);	/* hash: tgid of a wanted process → __u8, WANTED_… */

/* Return the inode of the program that @task executes. */
INLINE __u64 task_program(__u64 task)
{
	return kernel_word(kernel_word(kernel_word(task + VALUE(child_mm)) + VALUE(child_file)) +
			   VALUE(child_inode));
}

/* Return whether the current process is a child of a wanted one that executes the same program. */
INLINE int child_wanted(void)
{
	__u64 task = bpf_get_current_task(), parent = kernel_word(task + VALUE(child_parent));
	__u32 tgid = kernel_word(parent + VALUE(child_tgid));
	const __u8 *wanted = bpf_map_lookup_elem(pids, &tgid);

	return wanted && *wanted == WANTED_CHILDREN && task_program(task) == task_program(parent);
}

#endif
