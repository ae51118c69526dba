/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lock information of a wait: the waiting backend, the awaited lock and its holders. */
#ifndef DB_LOCK_INFO_H
#define DB_LOCK_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/lock_event.h"
#include "sql/fingerprint.h"

#define LOCK_RELATION	65	/* bytes of a relation's name with the NUL */
#define LOCK_OBJECT	144	/* bytes of a locked object's name with the NUL */
#define LOCK_HOLDERS_KEPT	8	/* others are only counted */

/* A backend: a process or, in MySQL and MariaDB, a connection. */
struct lock_backend {
	uint32_t pid;		/* 0: a prepared transaction, which has no process */
	uint64_t connection;	/* the server's connection ID; 0: unknown, or a process */
	bool queued;		/* does not hold the lock, but is ahead in its queue */
	bool valid;		/* the members below could be read */
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
	uint32_t relation;	/* OID, of the awaited row; 0: none, or unknown */
	char name[LOCK_RELATION];	/* the relation's name; "": unknown */
	char object[LOCK_OBJECT];	/* MySQL, MariaDB: the locked object; "": unknown */
	struct lock_backend self, holders[LOCK_HOLDERS_KEPT];
	unsigned int nholders;	/* elements of ->holders */
	unsigned int more;	/* holders beyond those */
};

/* Truncate ->text to @len bytes and shrink its memory to that. */
void lock_backend_text(struct lock_backend *backend, size_t len);

/* Free the texts and drop the holders. */
void lock_info_clear(struct lock_info *info);

/* Remove literals and comments from the texts, see fingerprint_redact(). */
void lock_info_redact(struct lock_info *info, enum fingerprint_dialect dialect);

/* Add @backend to the holders, or only count it if they are full. @info takes over its text. */
void lock_info_add(struct lock_info *info, struct lock_backend *backend);

#endif
