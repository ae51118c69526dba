/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Gives up, once all is attached, what this process does not need any more: capabilities, the
 * user root, and system calls. There is no way back.
 */
#ifndef LOADER_SANDBOX_H
#define LOADER_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* What is still to be done, bits; BPF maps, memory, waiting and output are always. */
enum sandbox_need {
	SANDBOX_LOOK = 1 << 0,		/* read files, and the processes of others */
	SANDBOX_ATTACH = 1 << 1,	/* load programs and attach them to more files */
	SANDBOX_EVENTS = 1 << 2,	/* .. by perf events */
	SANDBOX_WRITE = 1 << 3,		/* write to files: tracefs, servers' memory, our notes */
};

struct sandbox {
	uint64_t capabilities;		/* that are left, a bit each */
	bool nobody;			/* it was root and is no more */
	bool filter;			/* other system calls fail with EPERM from now on; or */
	int filter_error;		/* why not: -errno, -EINVAL: the kernel has no filters */
};

/*
 * Keeps what @needs takes and gives up the rest. What cannot be given up stays, which is no error:
 * @confined says what became of it. For a process with one thread.
 */
void sandbox_enter(unsigned int needs, struct sandbox *sandbox);

#endif
