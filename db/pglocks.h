/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who holds a lock that a PostgreSQL backend waits for, and what a backend does, read from their
 * memory while they wait. What differs by release is not taken from a table but found, by what must
 * hold: a lock's tag is the one that is waited for, what hangs on it points back to it, a PID
 * is that of a process of the same server. Where it does not hold, it is not known.
 */
#ifndef DB_PGLOCKS_H
#define DB_PGLOCKS_H

#include "bpf/locks.h"
#include "db/process.h"
#include "usdt/elf.h"

#define PGLOCKS_KINDS	16
#define PGLOCKS_NAME	65	/* of a relation, with the NUL */
#define PGLOCKS_HOLDERS	8	/* that are kept of those there are */

/* Of a server's file. */
struct pglocks {
	uint64_t lowest;	/* address of what is loaded, as linked */
	/* Variables as linked; 0: not there. */
	uint64_t proc, entry, query, client, kinds;
	unsigned int nkinds;
	/* Where a PGPROC has what it waits for, and its share in that; -1: not seen yet. */
	int64_t wait_at, holder_at;
	uint64_t link_at;	/* … and its link in the queue */
};

void pglocks_find(const struct elf *elf, struct pglocks *places);

/* A backend. */
struct pglocks_party {
	uint32_t pid;		/* 0: a prepared transaction, which no process has */
	bool queued;		/* does not hold the lock, but was there first */
	bool known;		/* what follows could be read */
	bool running;		/* a statement: ->text; else that was the last */
	bool idle;		/* in a transaction, for ->idle_ns if that is not 0 */
	uint64_t idle_ns;
	bool cut;		/* the text is longer */
	char *text;		/* owned, no NUL; foreign bytes; NULL: not known */
	size_t len;
};

/* What is there to know of a wait. */
struct pglocks_wait {
	uint64_t begun_ns;	/* CLOCK_REALTIME; 0: not known */
	struct event_lock event;	/* fields, kind and mode */
	uint32_t relation;	/* of the row that is waited for; 0: none, or not known */
	char name[PGLOCKS_NAME];	/* its name, foreign bytes; "" */
	struct pglocks_party self, holders[PGLOCKS_HOLDERS];
	unsigned int nholders, more;	/* ->more is how many others there are */
};

/*
 * Reads of process @pid what it waits for, as @event tells; without fields, if ->address is
 * 0. At most @size bytes of each text. 0; -ENOENT: it waits for no lock; or -errno: @wait has
 * what could be had all the same. pglocks_clear() ends it.
 */
int pglocks_read(struct pglocks *places, uint32_t pid, const struct event_lock *event, size_t size,
		 struct pglocks_wait *wait);

/* The server's own name for kind @kind of locks, as "relation", to @name; "" where it is not known. */
void pglocks_kind(struct pglocks *places, uint32_t pid, uint32_t kind, char name[24]);

void pglocks_clear(struct pglocks_wait *wait);

#endif
