/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Dropping of what this process does not need once all probes are attached: capabilities, the user
 * root, and system calls. It cannot be undone.
 */
#ifndef LOADER_SANDBOX_H
#define LOADER_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* What is still needed, bits. BPF maps, memory, waiting and output always are. */
enum sandbox_need {
	SANDBOX_LOOK = 1 << 0,		/* read files and other processes */
	SANDBOX_ATTACH = 1 << 1,	/* load programs and attach them to more files */
	SANDBOX_EVENTS = 1 << 2,	/* .. with perf events */
	SANDBOX_WRITE = 1 << 3,		/* write to files: tracefs, servers' memory, notes */
};

struct sandbox {
	uint64_t capabilities;		/* left, one bit each */
	bool nobody;			/* changed from root to nobody */
	bool filter;			/* a seccomp filter makes other system calls fail, EPERM */
	int filter_error;		/* else -errno; -EINVAL: the kernel has no filters */
};

/*
 * Keep what @needs requires and drop the rest. Best effort: @sandbox reports the result. The process
 * must have one thread.
 */
void sandbox_enter(unsigned int needs, struct sandbox *sandbox);

#endif
