/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs of bpf/locks.bpf.c hand to user space. No padding, as in event.h. */
#ifndef BPF_LOCK_EVENT_H
#define BPF_LOCK_EVENT_H

#include <linux/types.h>

/* Beyond enum event_type. */
#define EVENT_LOCK_WAIT	64	/* struct event_lock: a wait begins */
#define EVENT_LOCK_END	65	/* … and has ended */

#define LOCK_LWLOCK	0x01	/* PostgreSQL's LWLock; ->name is its tranche */
#define LOCK_SESSION	0x02	/* MySQL's or MariaDB's: ->kind is what it told its scheduler */
#define LOCK_FAILED	0x04	/* the wait ended without the lock */
#define LOCK_DEADLOCK	0x08	/* … because of a deadlock */
#define LOCK_JOINED	0x10	/* it began before there were probes, at a time that is not known */

/* PostgreSQL's word for what it waits for has a class from bit 24 on; below, an LWLock's tranche. */
#define LWLOCK_CLASS	0x01
/* ->mode of LOCK_LWLOCK: LW_EXCLUSIVE, LW_SHARED, LW_WAIT_UNTIL_FREE; this and beyond: not known. */
#define LWLOCK_MODES	3

/* enum _thd_wait_type_e of MySQL and MariaDB, mysql/service_thd_wait.h. */
#define LOCK_WAITS_FIRST	3	/* a row's lock, a global one, .. */
#define LOCK_WAITS_METADATA	5
#define LOCK_WAITS_LAST		7	/* .. a table's, a user's */

#define LOCK_NAME	64

/* A wait. The kernel keeps one a thread, which is also the record that it sends. */
struct event_lock {
	__u32 type;
	__u32 target_id;
	__u32 pid, tid;		/* as seen from where the tool runs */
	__u64 start_ns;		/* CLOCK_MONOTONIC of the programs, see clock_ahead() */
	__u64 duration_ns;
	__u64 address;		/* PostgreSQL: the LOCALLOCK; else the session's object; 0: not known */
	__u64 relation;		/* PostgreSQL: the Relation of the row that is waited for; or 0. Else
				   the MDL_context that waits for a metadata lock */
	__u32 block, offset;	/* … and the row's place in it */
	__u32 field[4];		/* of the lock's tag; with LOCK_LWLOCK [0] is the tranche */
	__u32 kind, mode;
	__u32 flags;
	__u32 reserved;
	char name[LOCK_NAME];
};

/* Map "rows": what a thread is about to wait for. */
struct lock_row {
	__u64 relation;
	__u32 xid;
	__u32 block, offset;
	__u32 reserved;
};

/* Element of PostgreSQL's NamedLWLockTrancheArray: those that extensions asked for, in order. */
struct lwlock_named {
	__u32 tranche;
	__u32 reserved;
	__u64 name;		/* the address of the text */
};

/* Map "sums": LWLock waits, summed up. */
struct lwlock_key {
	__u32 target_id, mode;
	__u32 cpu;		/* that counted: so two never write the same maximum */
	__u32 tranche;		/* as event_lock.field */
	char name[LOCK_NAME];
};

struct lwlock_sum {
	__u64 count, total_ns, max_ns;
};

_Static_assert(sizeof(struct event_lock) == 152, "a record has no padding");
_Static_assert(sizeof(struct lock_row) == 24, "a map's value has no padding");
_Static_assert(sizeof(struct lwlock_key) == 80, "a map's key has no padding");

#endif
