/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sandbox: once all probes are attached, the process drops the capabilities, the user root and
 * the system calls that it no longer requires. This cannot be undone.
 */
#ifndef LOADER_SANDBOX_H
#define LOADER_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Operations that remain permitted, a bit set. BPF maps, memory, waiting and output always do. */
enum sandbox_need {
	SANDBOX_READ = 1 << 0,		/* read files and other processes */
	SANDBOX_ATTACH = 1 << 1,	/* load programs, and have another process attach them */
	SANDBOX_EVENTS = 1 << 2,	/* open perf events, to attach without uprobe_multi */
	SANDBOX_LINKS = 1 << 3,		/* create links, to attach by uprobe_multi */
	SANDBOX_CLOSERS = 1 << 4,	/* create processes that share its descriptors */
	SANDBOX_TERMINAL = 1 << 5,	/* change the modes of a terminal */
	SANDBOX_REPLACE = 1 << 6,	/* create, rename and remove files */
	SANDBOX_TRACEPOINTS = 1 << 7,	/* attach to raw tracepoints */
	SANDBOX_HELPERS = 1 << 8,	/* start processes like this one, and end them */
	SANDBOX_NO_BPF = 1 << 9,	/* not a need: bpf(2) is not used */
};

/* The restrictions that are in effect. */
struct sandbox {
	uint64_t capabilities;		/* permitted ones, bit n: capability n */
	uid_t user;			/* changed from root to this one, which is unused; 0: not */
	bool filter;			/* other system calls fail with EPERM, by seccomp */
	int filter_error;		/* if not: -errno; -EINVAL: the kernel has no filters */
};

/*
 * Keep what @needs requires and drop the rest. Best effort: @sandbox reports the result. The
 * process must have one thread.
 */
void sandbox_enter(unsigned int needs, struct sandbox *sandbox);

/* Return 0 if the kernel has seccomp filters and permits this process to use them, or -errno. */
int sandbox_filters(void);

#endif
