/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attacher: a child process that attaches programs, and holds a second descriptor of each link.
 *
 * The kernel writes breakpoints and semaphores into each process that maps the file. If a fatal
 * signal is pending meanwhile, it can access no page of another process: attaching fails, and so
 * does the removal of what was attached so far, which then stays for good. The same is true of
 * detaching. The child is in a session of its own and blocks all signals, so that a SIGKILL of this
 * process, or of its process group, does not reach it. When this process ends, the child's socket
 * reports it, and the child closes the links.
 *
 * If the child is killed, the links of this process keep the probes attached; only new ones are not
 * possible any more.
 */
#ifndef LOADER_ATTACHER_H
#define LOADER_ATTACHER_H

#include <sys/types.h>

#include "host/elf_map.h"
#include "loader/attach.h"

/* All zero attaches nothing and is closed. */
struct attacher {
	struct features *features;	/* borrowed */
	enum attach_method method;
	pid_t child;			/* 0: none, this process attaches */
	int socket;			/* to the other process; owned */
	struct elf_pause pause;		/* called while the child works, or all zero */
	uint32_t held;			/* in the child: number of its links .. */
	int end;			/* .. whose descriptors are below this */
};

/* An attached link or perf event. */
struct attacher_link {
	int fd;				/* owned */
	int held;			/* the child's descriptor of it; -1: none */
};

/*
 * Start the child. Called while the process is small, as the child keeps a copy of its memory. Best
 * effort: without a child, this process attaches. attacher_stop() ends it.
 */
void attacher_start(struct attacher *attacher, struct features *features,
		    enum attach_method method);

/*
 * Attach @prog to all of @sites of the file open as @file. Store the links in @links, room for
 * sites->count. Return their number, or -errno with none left.
 */
int attacher_attach(struct attacher *attacher, int prog, int file,
		    const struct uprobe_sites *sites, struct attacher_link *links);

/* Detach the @count links in @links, and return after that. */
void attacher_detach(struct attacher *attacher, const struct attacher_link *links, uint32_t count);

/* Restrict the child to @needs and what detaching requires, see sandbox_enter(). */
void attacher_confine(const struct attacher *attacher, unsigned int needs);

/* End the child, after it has closed its links. */
void attacher_stop(struct attacher *attacher);

#endif
