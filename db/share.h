/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shares: how many files may be attached for the processes of one user. Attaching and detaching
 * take time for each file, and no user is to delay them for another one. Root has no limit.
 */
#ifndef DB_SHARE_H
#define DB_SHARE_H

#include "db/target.h"

#define SHARE_REFUSED	32

/* Without a limit if all zero. */
struct share {
	size_t files;			/* of one user at most; 0: no limit */
	uint32_t refused[SHARE_REFUSED];	/* users who have had more */
	size_t nrefused;
};

/* Return whether a further file may be attached for the user of @process. */
bool share_allows(const struct share *share, const struct target *targets, size_t ntargets,
		  const struct process *process);

/*
 * Set @error to report that @process is not traced. Return false if that was done before for its
 * user, or for too many users.
 */
bool share_refuse(struct share *share, const struct process *process, struct error *error);

/* Detach from unused files of refused users. @pause is called meanwhile. */
void share_make_room(const struct share *share, struct target *targets, size_t ntargets,
		     const struct elf_pause *pause);

#endif
