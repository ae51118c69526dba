/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is looked up of a wait for a lock: who waits, and who holds it. */
#ifndef DB_LOCK_INFO_H
#define DB_LOCK_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/lock_event.h"
#include "sql/fingerprint.h"

#define LOCK_RELATION	65	/* a relation's name with the NUL */
#define LOCK_OBJECT	144
#define LOCK_HOLDERS_KEPT	8	/* of those there are */

/* A process or, of MySQL and MariaDB, a connection. */
struct lock_backend {
	uint32_t pid;		/* 0: a prepared transaction, which no process has */
	uint64_t connection;	/* the server's number for it; 0: not known, or a process is one */
	bool queued;		/* does not hold the lock, but was there first */
	bool valid;		/* what follows could be read */
	bool running;		/* a statement: ->text; else that was the last */
	bool idle;		/* in a transaction, for ->idle_ns if that is not 0 */
	uint64_t idle_ns;
	bool cut;		/* the text is longer */
	char *text;		/* owned, no NUL; foreign bytes; NULL: not known */
	size_t len;
};

/* What is there to know of a wait. */
struct lock_info {
	uint64_t begun_ns;	/* CLOCK_REALTIME; 0: not known */
	struct event_lock event;	/* fields, kind and mode */
	uint32_t relation;	/* of the row that is waited for; 0: none, or not known */
	char name[LOCK_RELATION];	/* its name, foreign bytes; "" */
	char object[LOCK_OBJECT];	/* of MySQL and MariaDB: what is locked, foreign bytes; "" */
	struct lock_backend self, holders[LOCK_HOLDERS_KEPT];
	unsigned int nholders, more;	/* ->more is how many others there are */
};

/* Keeps of ->text the first @len bytes, more than none, in no more memory than that takes. */
void lock_backend_text(struct lock_backend *backend, size_t len);

/* Frees what it owns. */
void lock_info_clear(struct lock_info *info);

/* Takes literals and comments out of the texts, see fingerprint_redact(). */
void lock_info_redact(struct lock_info *info, enum fingerprint_dialect dialect);

/* Adds @backend, which is taken over, or only counts it where there is no room. */
void lock_info_add(struct lock_info *info, struct lock_backend *backend);

#endif
