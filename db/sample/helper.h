/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/sample/: the sessions of running servers, read from their memory by a child process: at once,
 * for db/ps/, or at an interval, which turns them into statements.
 * It attaches nothing, and knows no engine by name.
 */

/*
 * The child process that reads. To read a page of another process can take for ever: it may be of a
 * file system that a user serves, and does not. A child that waits for HELPER_MS is killed, and
 * another one reads that process once more; if that waits for a second, the processes of the user
 * whose process it read are left out for a while.
 */
#ifndef DB_SAMPLE_HELPER_H
#define DB_SAMPLE_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/error.h"

#define HELPER_MS	100
#define HELPER_USERS	4096

/* A user whose processes are read: none of them displaces those of another one. */
struct helper_user {
	uint32_t uid;
	bool stalled;		/* a read of one of its processes did not end .. */
	uint32_t pid;		/* .. which is this one .. */
	unsigned int stalls;	/* .. and so many before .. */
	uint64_t until_ns;	/* .. and none is read until this CLOCK_MONOTONIC */
	size_t left_out;	/* processes that were not read, since helper_begin() */
	/* For the reading. */
	size_t sessions;
	size_t text_bytes;	/* of all texts */
	uint64_t spent_ns;
};

/* What outlives the child. */
struct helper_shared {
	uint32_t pid, uid;	/* of the process that is read, and of its user; 0: none */
	uint32_t section;	/* number of times that one was begun to be read */
	size_t matches;		/* processes of servers that were found and selected */
	size_t sessions;	/* of all users */
	size_t more;		/* that there was no room or time for */
	size_t nusers;
	struct helper_user users[HELPER_USERS];	/* the last one stands for all others, too */
};

/* All zero is closed. */
struct helper {
	struct helper_shared *shared;
	const char *name;	/* of the child; borrowed */
	void (*run)(void *arg, int socket);	/* what the child does */
	void *arg;
	pid_t child;		/* 0: none */
	int socket;
	/* How far it was when last looked at. */
	uint32_t seen_section;
	uint64_t begin_ns;	/* CLOCK_MONOTONIC, less what it ran, or waited for a CPU, before */
	uint64_t seen_run_ns;	/* what that has been, and .. */
	uint64_t seen_ns;	/* .. CLOCK_MONOTONIC, when it last changed */
	uint64_t until_ns;	/* CLOCK_MONOTONIC: a child that is silent is ended; 0: never */
	unsigned int stuck;	/* children that SIGKILL did not end */
};

/* Prepare what is set in @helper: ->name, ->run and ->arg. Return 0 or -ENOMEM. */
int helper_open(struct helper *helper);

/* Start the child unless it runs. Return 0, or -EAGAIN: the kernel refuses. */
int helper_start(struct helper *helper);

/*
 * Look after the child. Return 0; or -ETIMEDOUT: it was killed, as its read of a process, whose
 * PID is in *@pid, does not end; that process's user is left out from now on, but for the first
 * time, unless the child still waits: see helper_uid_of().
 */
int helper_watch(struct helper *helper, uint32_t *pid);

/*
 * Wait for a message and read its first @size bytes. Return 0; -ETIMEDOUT, as above; or -ECHILD:
 * the child has ended.
 */
int helper_receive(struct helper *helper, void *data, size_t size, uint32_t *pid);

/* The same of an error, which has no log. */
int helper_error(struct helper *helper, struct error *error, uint32_t *pid);

/*
 * Return for how long the child may wait at once for a process of ->uid, in ns: HELPER_MS, but the
 * second time up to a second, which is less the more users are left out.
 */
uint64_t helper_wait_ns(const struct helper_shared *shared);

/*
 * Note that process @pid of @user has stalled at @now_ns, CLOCK_MONOTONIC, and that the child has
 * @ended, or still waits: leave the user out, but for the first time; each time for twice as long,
 * unless he has answered for as long in between.
 */
void helper_user_stalls(struct helper_user *user, uint32_t pid, bool ended, uint64_t now_ns);

/* Return the user that is left out as process @pid did not answer, or (uint32_t)-1. */
uint32_t helper_uid_of(const struct helper *helper, uint32_t pid);

/* Forget what was counted. */
void helper_begin(struct helper_shared *shared);

/* In the child: the user @uid, whom the other process may have noted. */
struct helper_user *helper_user(struct helper_shared *shared, uint32_t uid);

/*
 * In the child: from helper_enter() on, it may be killed for a read of process @pid of user @uid,
 * until helper_leave().
 */
void helper_enter(struct helper_shared *shared, uint32_t pid, uint32_t uid);
void helper_leave(struct helper_shared *shared);

/* In the child: end with the other process. To be repeated after a change of the user. */
void helper_bind(void);

/* In the child: return whether processes of @user are to be left out for now. */
bool helper_excludes(struct helper_user *user);

/* Return whether a user's processes are left out, as one did not answer. */
bool helper_has_stalled(const struct helper_shared *shared);

/* End the child. */
void helper_stop(struct helper *helper);

/* The same, and free all. */
void helper_close(struct helper *helper);

#endif
