/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What crosses from the BPF programs to user space: the records in the ring
 * buffer or the perf buffers, the counters, and the page that both sides map. Fixed-size types and
 * no padding, so that every compiler lays them out alike.
 */
#ifndef BPF_EVENT_H
#define BPF_EVENT_H

#include <linux/types.h>

enum event_type {
	EVENT_STATEMENT = 1,	/* struct event_statement and its text */
	EVENT_SESSION = 2,	/* struct event_identity: first hit of a thread */
	EVENT_EXIT = 3,		/* struct event_session: that thread has ended */
	EVENT_EXEC = 4,		/* struct event_exec: a program was executed */
	EVENT_HIT = 5,		/* struct event_probe_hit, of any probe of any file */
	EVENT_BREAKDOWN = 6,		/* struct event_breakdown, before its statement */
	EVENT_WAIT = 7,		/* struct event_wait, too */
};

/* event_statement.flags: what is known of the statement */
#define STATEMENT_ERROR		0x01	/* failed, was cancelled or timed out */
#define STATEMENT_HAS_ROWS	0x02	/* ->rows is the server's word */
#define STATEMENT_CUT		0x04	/* the text is longer than text_size - 1 */
#define STATEMENT_UNREADABLE	0x08	/* the text could not be read */
#define STATEMENT_DIED		0x10	/* the thread ended in the middle of it */
#define STATEMENT_COMPLETED	0x20	/* the server said that it completed */
#define STATEMENT_NO_STATUS	0x40	/* whether it failed cannot be told */
#define STATEMENT_NO_TEXT	0x80	/* the server has none */
/* … and where its session stands; of no meaning to user space */
#define SESSION_OPEN		0x200	/* a statement is running */
#define SESSION_JOINED		0x400	/* it was running before its thread was first seen */
#define SESSION_REPLICATION	0x800	/* a walsender, whose commands are no statements */
#define SESSION_TEXT		0x2000	/* its command is a text, not a prepared statement */
#define SESSION_ADDED		0x4000	/* by user space, which found its statement running */
#define SESSION_LATE		0x1000	/* its texts are read when statements end, not before */

/* Of a session that is an object of the server's the key is its address ^ (PID << this). */
#define SESSION_PID_SHIFT	42

/*
 * A statement. The kernel keeps one of these a thread, which is also the
 * record that it sends: @text_len bytes of text follow, without a NUL.
 */
struct event_statement {
	__u32 type;
	__u32 target_id;		/* which attached file, a number of the loader's */
	__u32 pid, tid;		/* as seen from where the tool runs */
	__u64 start_ns;		/* CLOCK_MONOTONIC */
	__u64 duration_ns;
	__u64 completed_ns;	/* CLOCK_MONOTONIC; 0: not yet, or it was one step that did */
	__u64 rows;
	__u64 query_bytes;	/* the text's whole length; 0 with STATEMENT_CUT: unknown */
	__u64 connection_id;	/* the server's number for the connection; 0: not known */
	__u32 error_code;	/* the server's, with STATEMENT_ERROR; 0: not known */
	__u32 depth;		/* statements inside it, or its steps; of no meaning outside */
	__u32 text_len;
	__u32 flags;
};

/*
 * What a session does. A statement is timed from its start; the flags and ->completed_ns tell:
 *
 *	OPEN	LATE	COMPLETED ->completed_ns
 *	no	-	-	-	SESSION_IDLE: no statement; the client is silent
 *	yes	no	-	0	SESSION_RUNNING
 *	yes	no	yes	not 0	SESSION_SYNCING: completed at that time; part of a pipeline,
 *					whose next message has not come: a statement or a Sync
 *	yes	yes	no	0	SESSION_RUNNING
 *	yes	yes	yes	0	SESSION_BETWEEN: a statement of the packet has ended; if another
 *					one follows, it runs since then
 *
 * A simple query that has completed is still running: it ends when its session becomes idle, the
 * commit included. SESSION_REPLICATION and SESSION_JOINED say more about the statement itself.
 */
enum session_phase {
	SESSION_IDLE,
	SESSION_RUNNING,
	SESSION_SYNCING,
	SESSION_BETWEEN,
};

static inline __attribute__((always_inline)) enum session_phase
session_phase(const struct event_statement *s)
{
	const __u32 between = SESSION_LATE | STATEMENT_COMPLETED;

	if (!(s->flags & SESSION_OPEN))
		return SESSION_IDLE;
	if (s->completed_ns)
		return SESSION_SYNCING;
	return (s->flags & between) == between ? SESSION_BETWEEN : SESSION_RUNNING;
}

#define TEXT_SCAN_BYTES	32768	/* size of map scratch's value */
#define HEAD_WORDS	16	/* a session has room for so many 64-bit words of text, or more */

struct event_session {
	__u32 type;
	__u32 target_id;
	__u32 pid, tid;
	__u64 time_ns;		/* CLOCK_MONOTONIC */
};

/*
 * Who is connected, read from the server's memory; a short connection is gone before
 * anybody could look it up. Each "" where it could not be read, and cut if longer.
 */
struct event_identity {
	struct event_session session;
	char user[64], database[64], host[64], port[8];
};

/* What durations are counted by, instead of being sent. */
enum stat_by {
	STAT_BY_ALL,
	STAT_BY_COMMAND,	/* the text's first word */
	STAT_BY_STATUS,
	STAT_BY_DATABASE,
	STAT_BY_USER,
};

/*
 * Map "histogram": how many statements had such a duration. @coarse is the binary logarithm of
 * the duration in the unit shown, 0 for 0 too. @fine is linear in STAT_FINE steps between powers
 * of two of nanoseconds: slot n < STAT_FINE is n ns, and then each STAT_FINE of them are an
 * octave.
 */
#define STAT_FINE	16
#define STAT_GROUP	24

struct stat_key {
	__u32 target_id;
	char group[STAT_GROUP];	/* with a NUL, cut if longer; all zero: not known, or all */
	__u16 coarse, fine;
};

/* Maps "slot_sessions" and "sessions": what there is of each; see bpf/session.h. */
struct session {
	char group[STAT_GROUP];	/* with STAT_BY_DATABASE and STAT_BY_USER */
	struct event_statement s;
	char text[];	/* text_size bytes */
};

/* Map "slots", see bpf/slot.h. User space changes its elements by atomic operations only. */
struct slot {
	__u64 key;	/* whose session is found here; 0: nobody's */
	__u64 owner;	/* the key that claimed the slot; 0: free */
	__u32 claims;	/* 1: claimed */
	__u32 unused;
};

/* The upper bits of this product are the number of the slot: consecutive keys lie far apart. */
#define SLOT_PRODUCT(key)	((key) * 0x9e3779b97f4a7c15ULL)

/* What a thread does, or waits for. */
enum breakdown_part {
	BREAKDOWN_CPU,
	BREAKDOWN_RUNQUEUE,		/* it could run, and waits for a CPU */
	BREAKDOWN_DISK,
	BREAKDOWN_FSYNC,
	BREAKDOWN_LOCK,		/* of the server's, as those of rows, tables and advisory ones */
	BREAKDOWN_LWLOCK,		/* of the server's, inside it */
	BREAKDOWN_FUTEX,		/* a mutex or a condition, nothing more is known */
	BREAKDOWN_NETWORK,
	BREAKDOWN_SLEEP,
	BREAKDOWN_IPC,		/* another process of the server's, as a parallel worker */
	BREAKDOWN_OTHER,
	BREAKDOWN_PARTS,
};

/* Steps of a statement that the server tells of. */
enum phase { PHASE_PARSE, PHASE_REWRITE, PHASE_PLAN, PHASE_EXECUTE, PHASES };

#define BREAKDOWN_LEADERS	256	/* elements of map "parallel" */
#define BREAKDOWN_SLOTS	4096	/* elements of map "active" */
#define BREAKDOWN_WAITS	8	/* system calls that are told apart; the last one has all others */
#define BREAKDOWN_CALLS	512	/* elements of map "calls": number of a system call → enum breakdown_part */
#define BREAKDOWN_NO_CALL	(~0u)	/* in no system call: a page fault */
#define BREAKDOWN_OTHERS	(~1u)
#define BREAKDOWN_NONE	(~2u)	/* no system call is meant */

struct breakdown_wait {
	__u32 call, count;
	__u64 ns;
};

struct breakdown_phase {
	__u64 first_ns;			/* when it began first; 0: it did not */
	__u64 since_ns;			/* when it began last */
	__u64 ns;			/* how long it took, in all */
	__u32 depth;			/* inside how many it is: 0, it does not run */
	__u32 reserved;
};

/* What a statement used. */
enum use {
	USE_READ_BYTES, USE_WRITE_BYTES,	/* from and to storage */
	USE_READ_CALLS, USE_WRITE_CALLS,	/* system calls, of files mostly */
	USE_MINOR_FAULTS, USE_MAJOR_FAULTS,
	USE_PEAK_GROWTH,			/* of a process's memory: pages, bytes once it is taken */
	USE_SENT, USE_RECEIVED,			/* bytes by sockets */
	/* Of PostgreSQL, in blocks: struct BufferUsage's first ones, in its order … */
	USE_SHARED_HIT, USE_SHARED_READ, USE_SHARED_DIRTIED, USE_SHARED_WRITTEN,
	USE_LOCAL_HIT, USE_LOCAL_READ, USE_LOCAL_DIRTIED, USE_LOCAL_WRITTEN,
	USE_TEMP_READ, USE_TEMP_WRITTEN,
	/* … and struct WalUsage's */
	USE_WAL_RECORDS, USE_WAL_FPI, USE_WAL_BYTES,
	/* Sorts; of what they took: how many went to disk, the largest one's memory, blocks on disk */
	USE_SORTS, USE_SORTS_EXTERNAL, USE_SORT_BYTES, USE_SORT_BLOCKS,
	USES,
};


#define USE_BUFFERS		(USE_WAL_RECORDS - USE_SHARED_HIT)
#define USE_WALS		(USE_SORTS - USE_WAL_RECORDS)
#define USE_SORTINGS		(USES - USE_SORTS)

#define SORT_BEGINS		2

/* What parallel workers of a statement did, which have ended. */
struct breakdown_workers {
	__u64 ns[BREAKDOWN_PARTS];
	__u64 count;
	__u64 use[USE_SORTINGS];	/* from USE_SORTS on: its leader has the rest */
};

/*
 * Where a statement's time went: of the thread that runs it, while it does, in map "threads". The
 * parts' sum is the time from ->start_ns to ->since_ns.
 */
struct event_breakdown {
	__u32 type, target_id;
	__u32 pid, tid;
	__u64 start_ns;			/* as its statement's; 0: none runs */
	__u64 session;			/* key of its session */
	__u64 since_ns;			/* when it began with what it does now */
	__u32 doing;			/* enum breakdown_part */
	__u32 call;			/* that it waits in */
	__u64 word;			/* address of what the server says it waits for; 0: none */
	__u64 buffers, wal;		/* addresses of its counters; 0: none */
	__u32 said;			/* or that itself: enum breakdown_part; 0: nothing */
	__u32 used;			/* bits: which of ->use are known */
	__u64 leader;			/* whose worker it is, or the key that its own have; 0: none */
	__u32 worker;			/* it is one */
	__u32 sorted;			/* sorts that ended */
	__u64 ns[BREAKDOWN_PARTS];
	struct breakdown_wait waits[BREAKDOWN_WAITS];
	struct breakdown_phase phases[PHASES];
	struct breakdown_workers workers;
	__u64 use[USES];		/* what the counters were at the start; then what was added */
};

/* A wait inside a statement that may be wanted or not. */
struct event_wait {
	__u32 type, target_id;
	__u32 pid, reserved;
	__u64 start_ns;			/* as its statement's */
	__u64 ns;			/* how long it took */
};

/* Map "comms": the name of an executed file, cut as the kernel cuts it → one of these, a byte. */
enum exec_value {
	EXEC_ALWAYS = 1,	/* a server's: tell each time */
	EXEC_TOLD = 2,		/* some other program's, told once */
};

struct exec_name {
	char comm[16];
};

/* A program was executed. */
struct event_exec {
	struct event_session session;
	struct exec_name name;
};

/*
 * A probe was hit. Behind ->values are the texts of those of them that are addresses of one: each
 * an s64, what bpf_probe_read_user_str() returned for it, and so many bytes as the tool said.
 */
struct event_probe_hit {
	__u32 type;
	__u32 probe_id;		/* which probe, a number of the loader's */
	__u32 pid, tid;		/* as seen from where the tool runs */
	__u64 time_ns;		/* CLOCK_MONOTONIC */
	char comm[16];
	__u64 values[];
};

/* Map "probe_hits": how many hits had this value, or one of this power of two. */
#define PROBE_HIT_TEXT	64

struct probe_hit_key {
	__u32 probe_id;
	__u32 slot;		/* of a histogram, see HIT_NEGATIVE; else 0 */
	__u64 value;		/* 0 with a histogram; with a text: 0, or why there is none */
	char text[PROBE_HIT_TEXT];	/* with a NUL, cut if longer; else all zero */
};

#define HIT_NEGATIVE	64	/* slot of numbers below 0; else the binary logarithm, 0 for 0 */

#define HIT_NULL	1	/* a text at address 0 */
#define HIT_UNREADABLE	2	/* its memory is not there */

/* Indices into the per-CPU array of counters; each only ever grows. */
enum counter {
	COUNT_STATEMENTS,		/* statements that ended, or hits that were wanted */
	LOST_RING_FULL,
	LOST_TABLE_FULL,
	LOST_START_WITHOUT_END,
	LOST_END_WITHOUT_START,
	LOST_WHO,			/* records of who is connected */
	COUNTERS,
};

/* The page that user space maps (BPF_F_MMAPABLE) to talk to the programs. */
struct control {
	__u32 asleep;			/* the consumer waits: wake it for the next record */
	__u32 reserved;
};

/* With perf buffers, a record that only wakes the consumer; all others are longer. */
#define WAKE_BYTES	8

/*
 * Map "servers": the PID of a server's main process as its own namespace counts → the
 * namespaces (kernel dev_t and inode of /proc/PID/ns/pid) in which that one is wanted.
 */
#define WANTED_NAMESPACES	4

struct wanted_server {
	struct {
		__u64 dev, ino;
	} ns[WANTED_NAMESPACES];
};

_Static_assert(sizeof(struct event_statement) == 80, "a record's head has no padding");
_Static_assert(sizeof(struct event_session) == 24, "a record has no padding");
_Static_assert(sizeof(struct event_identity) == 224, "a record has no padding");
_Static_assert(sizeof(struct event_wait) == 32, "a record has no padding");
_Static_assert(sizeof(struct stat_key) == 32, "a map's key has no padding");
_Static_assert(sizeof(struct event_probe_hit) == 40, "a record's head has no padding");
_Static_assert(sizeof(struct probe_hit_key) == 80, "a map's key has no padding");
_Static_assert(sizeof(struct control) == 8, "a map's value has no padding");

#endif
