/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server's file with probes on it. Probes attach to the inode: they cover every process that
 * runs the file, including processes that start later and those in other containers.
 */
#ifndef DB_DISCOVER_TARGET_H
#define DB_DISCOVER_TARGET_H

#include "db/discover/describe.h"
#include "db/engine.h"
#include "db/event.h"
#include "db/session/backend_state.h"
#include "host/elf_map.h"
#include "host/process.h"
#include "loader/runtime.h"

struct target;

/* The same for every file. All is borrowed. */
struct target_common {
	struct runtime *runtime;
	uint32_t asked;				/* ENGINE_* */
	bool no_statements;			/* trace lock waits, not statements */
	const struct object *locks;		/* programs of lock waits; NULL: not these */
	struct elf_pause pause;			/* while a file is read */
	size_t *ntargets;			/* incremented once probes may be hit; or NULL */
	bool limited;				/* programs measure themselves, see bpf/limit.h */
	/*
	 * Called for a file that copies its code at its start, before it is attached to. Return 0,
	 * or -errno with the cause in @error if it must not be yet. May be NULL.
	 */
	int (*copies)(void *arg, const struct target *target, struct error *error);
	void *copies_arg;
	/* Called with the ID of a file that probes are attached to; may be NULL. */
	void (*attaching)(void *arg, uint32_t target_id);
	void *attaching_arg;
	/* Called with each site of a file that was bound; may be NULL. */
	void (*site)(void *arg, const struct target_site *site);
	void *site_arg;
};

/* A file to trace. */
struct target_file {
	const struct engine *engine;
	int fd;				/* open for reading; the caller's */
	const char *path;		/* for messages */
	uint32_t id;			/* of its events */
	uint32_t engine_number;		/* of its engine, in struct stat_key */
	bool no_semaphores;		/* use no probe that has a semaphore */
};

/*
 * User and database are read from struct members whose offsets vary between releases; they are
 * trusted only after they match a process title. A process of another user can falsify both.
 */
struct target_trust {
	uint32_t uid;
	enum { TRUST_UNKNOWN, TRUST_MEMORY, TRUST_TITLE } verdict;
	unsigned int doubts;		/* titles that contradicted the members */
};

#define TARGET_TRUSTS	8

struct target {
	const struct engine *engine;
	struct process_file file;
	struct error refused;		/* what is not traced, see struct bind; or none */
	uint32_t id;			/* of its events */
	uint32_t uid;			/* of a process for which it was attached; 0 with a path */
	uint64_t paused_ns;		/* when the limit removed the probes; 0: it did not */
	struct uprobe_links links;
	uint64_t *sites;		/* file offsets of the probes, bytes; owned */
	size_t nsites;
	bool usdt;			/* a USDT probe is used, else only symbols */
	bool no_semaphores;		/* none that has a semaphore, which cannot be incremented */
	uint32_t has, wants;		/* TARGET_HAS_*, see struct bind */
	uint64_t lowest_vaddr;		/* of its segments, as linked */
	uint64_t version_vaddr;		/* of the variable with the version, as linked; 0: none */
	struct backend_places places;
	char version[SERVER_VERSION];	/* of the file, foreign bytes; "" if unknown */
	struct target_trust trust[TARGET_TRUSTS];	/* of the last users */
	unsigned int ntrusts;		/* users so far */
	char path[256];
};

/* Return the one of @targets, which are in the order of their IDs, with @id, or NULL. */
struct target *target_by_id(struct target *targets, size_t ntargets, uint32_t id);

/*
 * Bind the probes of @file->engine and link their programs to @set, without loading anything.
 * @target is filled but for its links. Return 0, or -errno with the cause in @error
 * and @set empty. uprobe_set_free() ends @set.
 */
int target_prepare(struct target *target, const struct target_file *file,
		   const struct target_common *common, struct uprobe_set *set,
		   struct error *error);

/*
 * Attach the probes of @file->engine to @file; if the kernel cannot increment their semaphores, use
 * others. Return 0, or -errno with the cause in @error and nothing attached. target_close() ends
 * it.
 */
int target_open(struct target *target, const struct target_file *file,
		const struct target_common *common, struct error *error);

/*
 * Read the version of @process, which runs the file, from its memory. It was the file's if there is
 * a variable, as an option can set it. On failure @version, of SERVER_VERSION bytes, is unchanged.
 */
void target_read_version(const struct target *target, const struct process *process, char *version);

/*
 * Call @each for each version of the main processes in @pids with those that have it; if there is
 * none, for that of the file with none.
 */
void target_versions(const struct target *target, const uint32_t *pids, size_t npids,
		     void (*each)(void *arg, const char *version, const uint32_t *pids,
				  size_t npids), void *arg);

/* Detach the probes. The rest stays known. */
void target_close(struct target *target);

/* Return whether @process, a server of @target, has not written its version to its memory yet. */
bool target_is_starting(const struct target *target, const struct process *process);

#endif
