/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits for locks: finds the servers, puts probes on them, and looks up who holds what is waited for
 * while the wait lasts.
 */
#ifndef DB_LOCKS_H
#define DB_LOCKS_H

#include "db/discover.h"
#include "db/lock_waits.h"
#include "db/statement.h"

/* A wait; what is borrowed is so for the call. Strings are foreign bytes. */
struct lock_wait {
	const struct target *target;
	const struct event_lock *event;
	uint64_t start_ns;		/* when it began, CLOCK_MONOTONIC */
	uint64_t wall_ns;		/* .. and CLOCK_REALTIME */
	uint64_t duration_ns;		/* until now, if it is running */
	bool running;
	bool joined;			/* it began before there were probes: it took longer */
	const char *kind;		/* "transactionid", "row"; "" where it is not known */
	const struct lock_info *info;	/* what was looked up; NULL: it could not be */
	uint32_t cycle[LOCK_WAITS_CYCLE];	/* with LOCK_DEADLOCK: who waited for whom, the first is us */
	unsigned int ncycle;
};

/* LWLock waits of one tranche and mode. */
struct lwlock_count {
	const struct target *target;
	uint32_t mode;
	char name[LOCK_NAME];		/* foreign bytes */
	struct lwlock_sum sum;
};

struct locks_config {
	struct server_filter servers;
	uint64_t threshold_ns;		/* shorter waits are not reported */
	uint32_t text_bytes;		/* of a backend's statement, at most */
	bool redact;			/* drop literals and comments from texts */
	bool sum_lwlocks;		/* sum LWLock waits up instead of reporting each */
	uint32_t denied;		/* features not to be used, see feature_deny() */

	/* The callbacks; strings are borrowed for the call. */
	void *arg;
	void (*wait)(void *arg, const struct lock_wait *wait);	/* a wait has ended */
	void (*server)(void *arg, const struct server_info *server);
	/* See tracer_config. */
	void (*error)(void *arg, const struct error *error);
	int (*lasting)(void *arg);
	/* Each program as it is loaded, and each site that is traced; may be NULL. */
	void (*program)(void *arg, const char *name, const struct bpf_insn *insns, size_t count);
	void (*site)(void *arg, const struct target_site *site);
};

struct locks;

/* As tracer_open(). *@locks is the caller's to close. */
int locks_open(struct locks **locks, const struct locks_config *config, struct error *error);

/* What the kernel was found to have. Borrowed. */
const struct features *locks_features(const struct locks *locks);

/* As tracer_sandbox(). */
void locks_sandbox(const struct locks *locks, struct sandbox *sandbox);

/* How many servers' files are traced. */
size_t locks_targets(const struct locks *locks);

/* As tracer_drain() and tracer_sleep(). */
int locks_drain(struct locks *locks);
int locks_sleep(struct locks *locks);

/* Calls config->wait for each wait that has not ended. */
void locks_running(struct locks *locks);

/* What was summed up; the caller's to free. The number, or -ENOMEM. Several can be of one name. */
ssize_t locks_lwlocks(struct locks *locks, struct lwlock_count **sums);

/* Takes the probes away, so that only what is in the buffer is still to come. */
void locks_detach(struct locks *locks);

/* What the kernel counted; ->statements are waits, ->printed is the caller's. */
void locks_summary(const struct locks *locks, struct summary *summary);

/* Detaches, and frees. NULL is fine. */
void locks_close(struct locks *locks);

#endif
