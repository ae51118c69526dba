/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Targets that no process runs any more: each occupies descriptors and kernel memory, and container
 * images come and go. A target without an inode is detached.
 */
#ifndef DB_DISCOVER_UNUSED_H
#define DB_DISCOVER_UNUSED_H

#include <stdbool.h>
#include <stddef.h>

#include "db/discover/target.h"
#include "db/event.h"

/* Return the number of attached targets: of those of user *@uid, or of all if that is NULL. */
size_t unused_attached(const struct target *targets, size_t ntargets, const uint32_t *uid);

/*
 * Detach from some files that no process runs, of users with at least @least attached ones; an exec
 * attaches them again. @pause is called meanwhile. Return whether none is left.
 */
bool unused_detach(struct target *targets, size_t ntargets, size_t least,
		   const struct elf_pause *pause);

#define UNUSED_NAMED	256

/* What the last removed targets were, for the losses of their processes. All zero: none. */
struct unused {
	struct unused_target {
		uint32_t id;
		struct server server;	/* its file */
	} *removed;			/* owned; UNUSED_NAMED, or NULL */
	size_t count;			/* so far */
};

/*
 * Remove the detached targets of @targets, and note them in @unused. Their records must have been
 * handled. Return the number of those that are left.
 */
size_t unused_remove(struct unused *unused, struct target *targets, size_t ntargets);

/* Return the file of the removed target with @id, or NULL. */
const struct server *unused_by_id(const struct unused *unused, uint32_t id);

void unused_close(struct unused *unused);

#endif
