/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A uprobe set: the probe sites of one file with their linked programs. Sites with identical
 * programs share one, their group.
 */
#ifndef LOADER_UPROBE_SET_H
#define LOADER_UPROBE_SET_H

#include <linux/bpf.h>

#include "loader/attacher.h"
#include "loader/error.h"
#include "loader/run_time.h"

/* A program. */
struct uprobe_group {
	const char *program;		/* its name, borrowed */
	struct bpf_insn *insns;		/* owned */
	uint32_t count;			/* instructions */
};

struct uprobe_site {
	uint64_t offset, semaphore;	/* in the file, bytes; semaphore 0: none */
	uint32_t group;			/* index in uprobe_set.groups */
	bool on_return;			/* at returns of the function at ->offset */
};

/* All zero is an empty set; uprobe_set_free() frees it. Arrays are owned. */
struct uprobe_set {
	struct uprobe_group *groups;
	struct uprobe_site *sites;
	uint32_t ngroups, nsites;
	/* Groups from this one on are not joined with those before: verifying takes longer. */
	uint32_t apart;
};

/* A file to attach to. Everything is borrowed. */
struct uprobe_file {
	const char *name;		/* of the program that the groups are joined into */
	int fd;				/* open for reading */
	const char *path;		/* for errors */
};

/* Attach method and options. Everything is borrowed. */
struct uprobe_method {
	struct attacher *attacher;
	struct run_time *run_time;	/* takes over the programs; NULL: they are closed */
};

/* The links that keep programs attached. All zero is none. */
struct uprobe_links {
	struct attacher_link *links;	/* owned */
	uint32_t count;
	struct attacher *attacher;	/* of the method, borrowed */
};

/*
 * Add @site with the linked @program, @count instructions, which are copied. Its ->group is
 * ignored. Return 0 or -ENOMEM.
 */
int uprobe_set_add(struct uprobe_set *set, const char *program, const struct bpf_insn *insns,
		   uint32_t count, const struct uprobe_site *site);

/* Remove all groups and sites but the first @ngroups and @nsites. */
void uprobe_set_cut(struct uprobe_set *set, uint32_t ngroups, uint32_t nsites);

/* Free everything and reset to the empty set. */
void uprobe_set_free(struct uprobe_set *set);

/*
 * Collect the file offsets of the sites in *@offsets, which is the caller's to free. Return 0 or
 * -ENOMEM.
 */
int uprobe_set_offsets(const struct uprobe_set *set, uint64_t **offsets, size_t *count);

/* Have the sites attached without incrementing semaphores. Return whether there are any. */
bool uprobe_set_drop_semaphores(struct uprobe_set *set);

/* Load a program. Return its descriptor, or -errno and the cause with the log in @error. */
int uprobe_set_load(const struct prog_def *def, struct error *error);

/*
 * Load the programs and attach them to their sites, by one link if possible. Return 0, or -errno
 * with the cause in @error and nothing attached. uprobe_set_detach() ends it.
 */
int uprobe_set_attach(const struct uprobe_set *set, const struct uprobe_file *file,
		      const struct uprobe_method *method, struct uprobe_links *links,
		      struct error *error);

/*
 * Add the links of @from to those of @to, which may be all zero, so that all are detached at once:
 * that takes as long as for one of them. @from is then empty. If memory is exhausted, detach them.
 */
void uprobe_set_move(struct uprobe_links *to, struct uprobe_links *from);

/* Detach the programs and close the descriptors. */
void uprobe_set_detach(struct uprobe_links *links);

#endif
