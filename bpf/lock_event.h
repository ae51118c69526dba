/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records and map values of bpf/locks.bpf.c. Without padding, as in event.h. */
#ifndef BPF_LOCK_EVENT_H
#define BPF_LOCK_EVENT_H

#include "bpf/event.h"

/* Continues enum event_type. */
#define EVENT_LOCK_WAIT	64	/* struct event_lock: a wait begins */
#define EVENT_LOCK_END	65	/* the same, when it ends */
#define EVENT_LOCK_ERROR	66	/* MySQL: an error; ->flags are of the last wait */

#define LOCK_LWLOCK	0x01	/* an LWLock of PostgreSQL; ->name is its tranche */
#define LOCK_SESSION	0x02	/* a lock of MySQL or MariaDB; ->kind is enum _thd_wait_type_e */
#define LOCK_FAILED	0x04	/* the lock was not granted */
#define LOCK_DEADLOCK	0x08	/* .. because of a deadlock */
#define LOCK_JOINED	0x10	/* began before tracing, at an unknown time */
#define LOCK_CUT	0x20	/* the text behind the record is incomplete */
#define LOCK_MORE	0x40	/* may continue the thread's wait before, of the same kind */
/* With LOCK_SESSION: how it ended, if that is known. */
#define LOCK_TIMEOUT	0x80	/* failed at the end of its time */
#define LOCK_KILLED	0x100	/* failed as the statement or its session was killed */
#define LOCK_GRANTED	0x200	/* did not fail, as the session has gone on */

/* PostgreSQL's wait event: the class from bit 24 on; of LWLocks, the tranche in the low bits. */
#define LWLOCK_CLASS	0x01
/* ->mode of an LWLock: LW_EXCLUSIVE, LW_SHARED, LW_WAIT_UNTIL_FREE; from this value on: unknown. */
#define LWLOCK_MODES	3

/* enum _thd_wait_type_e of MySQL and MariaDB, mysql/service_thd_wait.h. */
#define LOCK_WAITS_FIRST	3	/* row, global, */
#define LOCK_WAITS_METADATA	5	/* metadata, */
#define LOCK_WAITS_TABLE	6
#define LOCK_WAITS_USER		7
#define LOCK_WAITS_LAST		7	/* table and user locks */

#define LOCK_NAME	64

/*
 * A wait. Map "waits" holds one per waiting thread, which is also the record that is sent; behind
 * EVENT_LOCK_WAIT and EVENT_LOCK_ERROR are ->text_len bytes of the statement, none if it could not
 * be read.
 */
struct event_lock {
	struct event_head head;
	__u32 target_id;
	__u32 pid, tid;		/* as seen from where the tool runs */
	__u64 start_ns;		/* CLOCK_MONOTONIC of the programs, see clock_ahead() */
	__u64 duration_ns;
	__u64 address;		/* PostgreSQL: of the LOCALLOCK; MySQL: of the THD; 0: unknown */
	__u64 relation;		/* PostgreSQL: address of the Relation of the row waited for;
				   MySQL: of the MDL_context that waits for a metadata lock;
				   MariaDB: of the THR_LOCK_DATA that waits for a table; or 0 */
	__u32 block, offset;	/* PostgreSQL: the row's ctid */
	__u32 field[4];		/* of the LOCKTAG; with LOCK_LWLOCK [0] is the tranche */
	__u32 kind, mode;
	__u32 flags;
	__u32 counted;		/* 1 + number of the owner for whom it is in the map; or 0 */
	__u32 uid;		/* of the process's user */
	__u32 text_len;		/* bytes of the text behind the record */
	char name[LOCK_NAME];
};

/* Map "rows": the row that a thread is about to wait for. */
struct lock_row {
	__u64 relation;
	__u32 xid;
	__u32 block, offset;
	__u32 reserved;
};

/* Element of PostgreSQL's NamedLWLockTrancheArray: tranches of extensions, in order. */
struct lwlock_named {
	__u32 tranche;
	__u32 reserved;
	__u64 name;		/* address of the string */
};

/* Map "sums": sums of LWLock waits. */
struct lwlock_key {
	__u32 target_id, mode;
	__u32 cpu;		/* of the writer: no two CPUs write the same maximum */
	__u32 tranche;		/* as event_lock.field[0] */
	__u32 uid;
	char name[LOCK_NAME];
};

struct lwlock_sum {
	__u64 count, total_ns, max_ns;
};

_Static_assert(sizeof(struct event_lock) == 160, "a record has no padding");
_Static_assert(sizeof(struct lock_row) == 24, "a map's value has no padding");
_Static_assert(sizeof(struct lwlock_key) == 84, "a map's key has no padding");

#endif
