/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lock information of a wait: the waiting backend, the awaited lock and its holders. */
#ifndef DB_LOCKS_INFO_H
#define DB_LOCKS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/lock_event.h"
#include "db/event.h"

#define LOCK_RELATION	65	/* bytes of a relation's name with the NUL */
#define LOCK_OBJECT	144	/* bytes of a locked object's name with the NUL */
#define LOCK_HOLDERS_KEPT	8	/* others are only counted */

/* A backend: a process or, in MySQL and MariaDB, a connection. */
struct lock_backend {
	uint32_t pid;		/* 0: a prepared transaction, which has no process */
	uint64_t connection;	/* the server's connection ID; 0: unknown, or a process */
	bool queued;		/* does not hold the lock, but is ahead in its queue */
	bool current;		/* blocked the wait when it was last read */
	uint64_t blocked_ns;	/* time of the wait during which it held the lock, or was ahead */
	char kind[BACKEND_NAME];	/* what it serves, as who.backend; "": unknown */
	bool valid;		/* ->running and ->text could be read */
	bool idle_valid;	/* .. and ->idle */
	bool running;		/* ->text is running; else it was the last statement */
	bool idle;		/* idle in a transaction */
	uint64_t idle_ns;	/* with ->idle: for how long; 0: unknown */
	bool cut;		/* ->text is incomplete */
	char *text;		/* owned, foreign bytes without a NUL; NULL: unknown */
	size_t len;		/* of ->text, in bytes */
};

/* The resolved state of a wait. Strings are foreign bytes. */
struct lock_info {
	uint64_t begun_ns;	/* CLOCK_REALTIME; 0: unknown */
	struct event_lock event;	/* only ->field, ->kind and ->mode */
	uint64_t lock;		/* address of the awaited lock; 0: unknown */
	uint64_t session;	/* MySQL, MariaDB: address of the THD; 0: unknown */
	uint32_t relation;	/* OID, of the awaited row; 0: none, or unknown */
	char name[LOCK_RELATION];	/* the relation's name; "": unknown */
	/* MySQL, MariaDB: user, database and client of the session, if requested */
	struct who who;
	char object[LOCK_OBJECT];	/* MySQL, MariaDB: the locked object; "": unknown */
	char index[LOCK_RELATION];	/* the index of the awaited row; "": unknown, or none */
	struct lock_backend self, holders[LOCK_HOLDERS_KEPT];
	unsigned int nholders;	/* elements of ->holders */
	unsigned int more;	/* holders beyond those */
	bool known;		/* all holders could be read; else there may be others */
	/* Of a wait that is read several times; the clock of the programs. */
	uint64_t credited_ns;	/* until when ->blocked_ns of the holders counts */
	unsigned int dropped;	/* holders that were replaced; part of ->more */
};

/* Truncate ->text to @len bytes and shrink its memory to that. */
void lock_backend_text(struct lock_backend *backend, size_t len);

/* Drop the holders. */
void lock_info_drop(struct lock_info *info);

/* Free the texts and drop the holders. */
void lock_info_clear(struct lock_info *info);

/* Return whether a backend would be kept: one that holds the lock displaces one that is @queued. */
bool lock_info_has_room(const struct lock_info *info, bool queued);

/* Add @backend to the holders, or only count it if they are full. @info takes over its text. */
void lock_info_add(struct lock_info *info, struct lock_backend *backend);

/* Add the time until @now_ns to ->blocked_ns of the current holders. */
void lock_info_credit(struct lock_info *info, uint64_t now_ns);

/*
 * Update the information of a wait by @fresh, read at @now_ns with the result @err: holders are
 * added to those of earlier reads. One that is ahead in the queue and then holds the lock is added
 * twice. A later read that failed, found none or another lock adds nothing: the last holder is gone
 * by then, and the wait has ended or is about to. What a known holder does is replaced only
 * if it is idle by now, or if @now. @info takes over the memory of @fresh. All zero is a wait that
 * was not read; then ->credited_ns is its start.
 */
void lock_info_update(struct lock_info *info, struct lock_info *fresh, int err, uint64_t now_ns,
		      bool now);

#endif
