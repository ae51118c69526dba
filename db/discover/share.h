/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shares: how many files may be attached for the processes of one user, and how long reading them
 * may take in a scan of all processes. Attaching, detaching and reading take time for each file,
 * and no user is to delay them for another one. Root has no limit.
 */
#ifndef DB_DISCOVER_SHARE_H
#define DB_DISCOVER_SHARE_H

#include "db/discover/target.h"

#define SHARE_REFUSED	1024	/* each of them has files attached */
#define SHARE_USERS	64

/* Without a limit if all zero. */
struct share {
	size_t files;			/* of one user at most; 0: no limit */
	uint32_t refused[SHARE_REFUSED];	/* the last users who have had more */
	size_t nrefused;		/* of all, each time that one was added */
	uint64_t time_ns;		/* for one user in the current scan */
	/*
	 * Of more users, a further one replaces the one with the least time and begins with that.
	 * So a user may have spent less than is known, but not more, and however many user IDs an
	 * account has, they spend SHARE_USERS times ->time_ns in all.
	 */
	struct share_user {
		uint32_t uid;
		uint64_t ns;		/* spent */
	} users[SHARE_USERS];
	size_t nusers;
};

/* Begin a scan of all processes, in which reading the files of one user may take @time_ns. */
void share_begin(struct share *share, uint64_t time_ns);

/* Return whether the file of @process may be read in this scan: one more than fit into the time. */
bool share_has_time(const struct share *share, const struct process *process);

/* Add @ns to the time of the user of @process. */
void share_spend(struct share *share, const struct process *process, uint64_t ns);

/* Return whether a further file may be attached for the user of @process. */
bool share_allows(const struct share *share, const struct target *targets, size_t ntargets,
		  const struct process *process);

/* Set @error to report that @process is not traced. Return false if its user is in ->refused. */
bool share_refuse(struct share *share, const struct process *process, struct error *error);

/* Detach from unused files of users without room for another. @pause is called meanwhile. */
void share_make_room(const struct share *share, struct target *targets, size_t ntargets,
		     const struct elf_pause *pause);

#endif
