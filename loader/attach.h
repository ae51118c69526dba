/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attaching programs to probe sites. Descriptors own everything: when the last one is closed, the
 * kernel detaches the probes and decrements the semaphores.
 */
#ifndef LOADER_ATTACH_H
#define LOADER_ATTACH_H

#include "loader/feature.h"
#include "loader/sys.h"

/* Attach methods, the best one first. */
enum attach_method {
	ATTACH_MULTI,		/* one uprobe_multi link for all sites of a program */
	ATTACH_PERF,		/* a perf event per site, of the uprobe PMU */
	ATTACH_NONE,		/* the kernel supports neither */
};

/* Return the best method that the kernel supports. */
enum attach_method attach_choose(struct features *features);

/* Return "uprobe_multi", "perf uprobe" or "none". Static. */
const char *attach_method_name(enum attach_method method);

/* Return the attach type that programs must be loaded with. */
enum bpf_attach_type attach_type(enum attach_method method);

/*
 * Attach @prog to all of @sites. Store the descriptors in @fds, room for sites->count. Return their
 * number, or -errno with none left open.
 */
int attach_uprobes(struct features *features, enum attach_method method, int prog,
		   const struct uprobe_sites *sites, int *fds);

#endif
