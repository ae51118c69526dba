/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bind the probe rows of an engine to a server's file: find the sites of USDT probes, functions
 * and calls, resolve the arguments there, and link a BPF program for each site. Makes no bpf(2)
 * call, unless a site requires it (db/discover/harm.h). Rows and their grammar: db/engine.h.
 */
#ifndef DB_DISCOVER_BIND_H
#define DB_DISCOVER_BIND_H

#include "db/discover/harm.h"
#include "db/engine.h"
#include "loader/error.h"
#include "loader/linker.h"
#include "loader/uprobe_set.h"
#include "usdt/emit.h"
#include "usdt/site.h"

#define BIND_SITES_MAX	128	/* of all probes of a file; the most seen for one probe is 9 */
#define BIND_SPEC	256	/* bytes of an argument spec with its numbers filled in */

/* A probe site. */
struct bind_site {
	uint64_t vaddr;			/* as linked */
	uint64_t offset, semaphore;	/* in the file; semaphore 0: none */
	uint64_t semaphore_vaddr;
	const char *args;		/* specs of a USDT site, else NULL */
	char owner[SITE_REG];		/* register that holds the object, or "" */
};

struct bind_probe_site {
	const struct engine_probe *probe;
	struct bind_site site;
};

/* The file and the rows to bind. All is borrowed until the struct bind is closed. */
struct bind_config {
	const struct engine *engine;
	struct elf elf;
	int fd;					/* of the file */
	struct features *features;		/* to ask for hazards; NULL: there are none */
	const char *path;			/* for messages */
	const char *version;			/* of the file; "": unknown */
	uint32_t target_id;			/* of the file's events */
	uint32_t engine_number;			/* of ->engine, in struct stat_key */
	uint32_t asked;				/* ENGINE_* */
	bool no_statements;			/* bind none of engine->probe_sets .. */
	const struct object *locks;		/* programs for engine->lock_ops; NULL: not these */
	bool no_semaphores;			/* as if probes with a semaphore were absent */
	bool limited;				/* programs measure themselves, see bpf/limit.h */
	const struct object *object;		/* the BPF programs of statements */
	const struct object_value *values;	/* maps and constants that no file changes */
	size_t nvalues;
};

/* Per-file binding context, and its results. */
struct bind {
	struct bind_config config;
	struct bpf_insn *linked;		/* scratch, OBJECT_INSNS_MAX; owned */
	struct uprobe_set *set;			/* linked programs and their sites; the caller's */
	const struct object *object;		/* of the probes being bound */
	struct error *error;
	const struct engine_probe_set *probe_set;	/* the one that was bound */
	uint32_t has;				/* TARGET_HAS_* .. */
	uint32_t wants;				/* .. and what more the engine reads if it can */
	bool usdt;				/* a USDT probe is used */
	struct harm harm;			/* ->refused: what is not traced; or none */
	struct bind_probe_site sites[BIND_SITES_MAX];	/* as set->sites */
};

/*
 * Bind the first probe set of config->engine whose required steps the file has, and the probes of
 * its locks, if it has these; without statements, it must. @set must be empty.
 * Return 0, or -errno with the cause in @error and @set empty; -ENOENT and ERROR_NO_PROBES if the
 * file lacks a step; ERROR_NOP or ERROR_RETURN if it has one, but that would harm processes.
 * bind_close() must follow in any case.
 */
int bind_open(struct bind *bind, const struct bind_config *config, struct uprobe_set *set,
	      struct error *error);

/* Free the scratch memory. @set stays the caller's. */
void bind_close(struct bind *bind);

/* An argument at a site, resolved. */
struct bind_value {
	enum spec_reason reason;		/* SPEC_OK, or why it is absent */
	struct spec spec;			/* may borrow from ->text */
	/* The spec with its numbers filled in; if a symbol is missing, the symbol. */
	char text[BIND_SPEC];
	struct bpf_insn insns[EMIT_INSNS_MAX];	/* as spec_emit() */
};

/* Resolve @arg at @site. Return the number of instructions, or -ENOTSUP or -ENOSPC. */
int bind_value(const struct bind *bind, const struct engine_arg *arg, const struct bind_site *site,
	       struct bind_value *value);

/*
 * Return argument row @i, from 0, that applies to @probe: rows of the probe, of the engine, and
 * defaults. NULL after the last one.
 */
const struct engine_arg *bind_arg(const struct bind *bind, const struct engine_probe *probe,
				  size_t i);

/* Return what a statement has if argument @arg, "arg_user", can be read, as TARGET_HAS_*. */
uint32_t bind_provides(const char *arg);

/* Return whether the file has symbol @name; NULL counts as present. */
bool bind_has_symbol(const struct bind *bind, const char *name);

#endif
