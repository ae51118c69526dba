/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Puts programs on probe sites. Everything hangs on descriptors: when the
 * last one closes, also by kill -9, the kernel takes the probes away and
 * gives the semaphores back. Only the names of tracefs events are left by kill -9, to
 * the next start.
 */
#ifndef LOADER_ATTACH_H
#define LOADER_ATTACH_H

#include "loader/feature.h"
#include "loader/sys.h"

/* How uprobes get on their sites, the best way first. */
enum attach_method {
	ATTACH_MULTI,		/* one uprobe_multi link for all sites of a program */
	ATTACH_PERF,		/* the uprobe PMU: a perf event a site */
	ATTACH_TRACEFS,		/* the same on events of tracefs */
	ATTACH_NONE,		/* this kernel has no way */
};

/* The best way that the kernel has. */
enum attach_method attach_choose(struct features *features);

/* "uprobe_multi", "perf uprobe", "uprobe_events" or "none". Static. */
const char *attach_method_name(enum attach_method method);

/* The program type's attach type that @way wants at load. */
enum bpf_attach_type attach_type(enum attach_method method);

/*
 * Attaches @prog to all of @sites. The descriptors go to @fds, room for
 * sites->count of them; how many it took, or -errno with none left open.
 */
int attach_uprobes(struct features *features, enum attach_method method, int prog,
		   const struct uprobe_sites *sites, int *fds);

/*
 * Closes the @count descriptors in @fds, which came with @features, and removes what does not go
 * with them. None: @features may be NULL.
 */
void attach_close(struct features *features, const int *fds, uint32_t count);

#endif
