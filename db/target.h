/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server's file with probes on it. Attached by inode: every process that runs it is
 * covered, also those started later and those in other containers.
 */
#ifndef DB_TARGET_H
#define DB_TARGET_H

#include "db/backend_state.h"
#include "db/engine.h"
#include "loader/error.h"
#include "loader/uprobe_set.h"
#include "host/process.h"
#include "loader/semaphore.h"
#include "loader/linker.h"

/* What a program asks for at a site. */
struct target_arg {
	const char *name;		/* "text" */
	char spec[256];			/* where it is, see usdt/spec.h; "" where it is absent */
	char absent[256];		/* why it is; may have foreign bytes */
};

#define TARGET_ARGS	64

/* A place where a probe goes, for people. All is borrowed for the call. */
struct target_site {
	const struct engine_probe *probe;
	uint64_t vaddr, semaphore_vaddr;	/* as linked; semaphore 0: none */
	const struct target_arg *args;
	size_t nargs;
};

/* What every program is linked with: the maps and numbers that do not depend on the file. */
struct target_common {
	struct features *features;
	enum attach_method method;
	const struct object *object;
	const struct object_value *values;
	size_t nvalues;
	uint32_t asked;			/* for which probes, ENGINE_… */
	struct semaphores *semaphores;	/* that are written if ->on; may be NULL */
	/* Shown each program as it goes to the kernel; may be NULL. */
	void (*program)(void *arg, const char *name, const struct bpf_insn *insns, size_t count);
	void *program_arg;
	/* Told of each site of a plan that was made; may be NULL. */
	void (*site)(void *arg, const struct target_site *site);
	void *site_arg;
};

struct target {
	const struct engine *engine;
	struct process_file file;
	uint32_t id;		/* its number in the events */
	struct uprobe_links links;
	uint64_t *semaphores;		/* the addresses of those in use, as linked; owned */
	size_t nsemaphores;
	bool usdt;			/* by USDT probes; else by symbols only */
	uint32_t has;			/* TARGET_HAS_*: what the programs can read */
	uint64_t lowest_vaddr;			/* of what is loaded, as linked */
	uint64_t version_vaddr;			/* the variable with the version; 0: not there */
	struct backend_places places;
	char version[64];		/* the server's, foreign bytes; "" where it is not known */
	/* Whether what the programs read of who is connected agrees with a process's title. */
	enum { TRUST_UNKNOWN, TRUST_MEMORY, TRUST_TITLE } trust;
	unsigned int doubts;
	char path[256];
};

/*
 * Finds where @engine's probes go in the file open as @fd, and links their programs, without the
 * kernel: @target is filled but for its links. 0, or -errno and why in @fault with @plan empty.
 */
int target_plan(struct target *target, const struct engine *engine, int fd, const char *path,
		uint32_t id, const struct target_common *common, struct uprobe_set *set,
		struct error *error);

/*
 * Puts @engine's probes on the file open as @fd; @path is for people. 0, or
 * -errno and why in @fault, with nothing attached. target_close() ends it.
 */
int target_open(struct target *target, const struct engine *engine, int fd, const char *path,
		uint32_t id, const struct target_common *common, struct error *error);

/* Reads the version that a server has in its memory only: that of @process, which runs the file. */
void target_read_version(struct target *target, const struct process *process);

/* Writes the semaphores into @process, which runs the file, if that is for us to do; NULL: it is not. */
void target_semaphores(const struct target *target, struct semaphores *semaphores,
		       const struct process *process);

/* Return the product's name, static: that of its brand if the version is known. */
const char *target_title(const struct target *target);

/* Return OpenTelemetry's name for the product, static. */
const char *target_otel_system(const struct target *target);

/* Takes the probes away. */
void target_close(struct target *target);

#endif
