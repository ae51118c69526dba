/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Data shared by the BPF programs and user space: the records in the ring buffer or the perf
 * buffers, and the keys and values of maps. Types are of fixed size and without padding, so that
 * every compiler produces the same layout.
 */
#ifndef BPF_EVENT_H
#define BPF_EVENT_H

#include <linux/types.h>

enum event_type {
	EVENT_STATEMENT = 1,	/* struct event_statement, then its texts */
	EVENT_SESSION = 2,	/* struct event_identity: first hit of a session */
	EVENT_EXIT = 3,		/* struct event_session: its thread exits */
	EVENT_EXEC = 4,		/* struct event_exec: a process has executed a file */
	EVENT_HIT = 5,		/* struct event_probe_hit, then its strings */
	EVENT_BREAKDOWN = 6,	/* struct event_breakdown, before its statement */
	EVENT_WAIT = 7,		/* struct event_wait, before its statement */
	EVENT_TRANSACTION = 8,	/* struct event_transaction, then a text: it has ended */
	EVENT_APPLICATION = 9,	/* struct event_application: behind an identity, and each change */
	EVENT_NESTED = 10,	/* struct event_nested, then its text */
};

/* event_statement.flags: about the statement */
#define STATEMENT_ERROR		0x01	/* failed, was cancelled or timed out */
#define STATEMENT_HAS_ROWS	0x02	/* ->rows is valid */
#define STATEMENT_CUT		0x04	/* the text is longer than what was kept */
#define STATEMENT_UNREADABLE	0x08	/* the text could not be read */
#define STATEMENT_DIED		0x10	/* its thread exited before its end */
#define STATEMENT_COMPLETED	0x20	/* the server reported its completion */
#define STATEMENT_NO_STATUS	0x40	/* success and failure cannot be distinguished */
#define STATEMENT_NO_TEXT	0x80	/* the server has no text */
#define STATEMENT_PARSED	0x100	/* no step but a Parse so far, see statement_is_prepare() */
#define STATEMENT_FETCHED	0x40000	/* its portal was suspended; ->depth is the Executes */
#define STATEMENT_CHANGED	0x200000	/* ->rows are those changed; none were sent */
#define STATEMENT_HAS_EXAMINED	0x400000	/* ->examined is valid */
#define STATEMENT_HAS_LOCK	0x800000	/* ->lock_us is valid */
#define STATEMENT_HAS_QUERY_ID	0x1000000	/* ->query_id is valid */
#define STATEMENT_ALONE		0x4000000 /* it was a transaction of its own */
#define STATEMENT_HAS_INDEX	0x8000000	/* bits of PLAN_INDEX in ->plan are valid */
#define STATEMENT_HAS_PLAN	0x10000000	/* and all others */
#define STATEMENT_DROPPED	0x40000000	/* its text was left out, see bpf/cost.h .. */
#define STATEMENT_NO_WHY	0x20000000	/* .. and so was the breakdown, or it did not fit */
/* .. and about the session, see session_phase(); not for users of the record */
#define SESSION_OPEN		0x200	/* a statement is running, or has completed but not ended */
#define SESSION_JOINED		0x400	/* its statement began before the session's first hit */
#define SESSION_INTERNAL	0x800	/* not a client's: its transactions are not followed */
#define SESSION_LATE		0x1000	/* texts are read at the end of statements */
#define SESSION_TEXT		0x2000	/* the command is a text, not a prepared statement */
#define SESSION_ADDED		0x4000	/* added by user space while its statement was running */
#define SESSION_BOUND		0x8000	/* the statement's portal was bound in it, then executed */
#define SESSION_PAUSED		0x10000	/* its portal is suspended, and the client silent */
#define SESSION_RESUMED		0x20000	/* it was so before, or ran before tracing began */
#define SESSION_UNPARSED	0x80000	/* its last statement began without a Parse */
#define SESSION_SETTLED		0x100000 /* it has no portal that may be executed again */
#define SESSION_UNNAMED		0x2000000 /* a record with its application's name was lost */
#define SESSION_KILLED		0x80000000 /* its process is being killed */

/* In the key of a session that is an object of the server. */
#define SESSION_OBJECT		(1ULL << 63)

/* The first member of each record. */
struct event_head {
	__u16 type;		/* enum event_type */
	__u16 owner;		/* number of the owner whose share it is charged to */
};

/*
 * A statement. Each session has one, which is also the record that is sent: @text_len bytes of text
 * follow and, after OF_GAP bytes, @of_len bytes of the other one, without a NUL.
 */
struct event_statement {
	struct event_head head;
	__u32 target_id;	/* the attached file */
	__u32 pid, tid;		/* as seen from where the tool runs */
	__u64 start_ns;		/* CLOCK_MONOTONIC */
	__u64 duration_ns;	/* until the end: of the pauses of SESSION_PAUSED */
	__u64 completed_ns;	/* CLOCK_MONOTONIC; 0: not completed, or a simple query */
	__u64 rows;
	union {
		__u64 examined;	/* rows read by the engine, as counted by MySQL */
		__u64 query_id;	/* as computed by PostgreSQL; 0: none */
	};
	union {
		__u64 lock_us;	/* waits for locks, as MySQL and MariaDB log them */
		/* PostgreSQL: bytes of the text behind an EXECUTE or a FETCH, and if it is cut */
		struct { __u32 of_len, of_cut; };
	};
	__u64 query_bytes;	/* length of the whole text; 0 with STATEMENT_CUT: unknown */
	__u64 connection_id;	/* the server's ID of the connection; 0: unknown */
	__u64 sqlstate;		/* with STATEMENT_ERROR: five characters from bit 0; 0: unknown */
	__u32 error_code;	/* with STATEMENT_ERROR; 0: unknown */
	union {
		__u32 depth;	/* nested statements; PostgreSQL: last steps of one kind */
		__u32 plan;	/* bits of enum plan, see plan.h */
	};
	__u32 text_len;
	__u32 flags;
};

/*
 * Phases of a session, by the flags and ->completed_ns:
 *
 *	OPEN	LATE	COMPLETED ->completed_ns
 *	no	-	-	-	SESSION_IDLE: no statement; the client is silent
 *	yes	no	-	0	SESSION_RUNNING
 *	yes	no	yes	not 0	SESSION_SYNCING: completed at that time; part of a pipeline,
 *					whose next message has not come: a statement or a Sync
 *	yes	no	no	not 0	SESSION_SUSPENDED: flag SESSION_PAUSED; may go on from there
 *	yes	yes	no	0	SESSION_RUNNING
 *	yes	yes	yes	0	SESSION_BETWEEN: a statement of the packet has ended; if
 *					another one follows, it runs since then
 *
 * A simple query that has completed is still running: it ends when its session becomes idle, the
 * commit included. SESSION_JOINED says more about the statement itself.
 */
enum session_phase {
	SESSION_IDLE,
	SESSION_RUNNING,
	SESSION_SYNCING,
	SESSION_BETWEEN,
	SESSION_SUSPENDED,
};

static inline __attribute__((always_inline)) enum session_phase
session_phase(const struct event_statement *s)
{
	const __u32 between = SESSION_LATE | STATEMENT_COMPLETED;

	if (!(s->flags & SESSION_OPEN))
		return SESSION_IDLE;
	if (s->completed_ns)
		return s->flags & SESSION_PAUSED ? SESSION_SUSPENDED : SESSION_SYNCING;
	return (s->flags & between) == between ? SESSION_BETWEEN : SESSION_RUNNING;
}

/*
 * Return whether @s, which has ended, is a Parse that nothing followed. It prepares a statement and
 * executes nothing.
 */
static inline __attribute__((always_inline)) int
statement_is_prepare(const struct event_statement *s)
{
	const __u32 more = STATEMENT_COMPLETED | STATEMENT_ERROR;

	return (s->flags & (STATEMENT_PARSED | more)) == STATEMENT_PARSED;
}

#define OF_GAP	2	/* bytes between a statement's own text and the other one */

/* Return the bytes of the texts of @s. */
static inline __attribute__((always_inline)) __u64
statement_length(const struct event_statement *s)
{
	if (s->flags & SESSION_LATE || !s->of_len)
		return s->text_len;
	return (__u64)s->text_len + OF_GAP + s->of_len;
}

#define SQLSTATE_LENGTH	5
#define TEXT_SCAN_BYTES	131072	/* size of the value of map "scratch" */
#define HEAD_WORDS	16	/* a session's text has room for at least this many 64-bit words */

struct event_session {
	struct event_head head;
	__u32 target_id;
	__u32 pid, tid;
	__u64 time_ns;		/* CLOCK_MONOTONIC */
};

/* The texts of changes that a replica applies, if it has none: of PostgreSQL, and of MySQL. */
#define EVENT_APPLY	"logical replication apply"
#define EVENT_APPLY_ROWS	"replication apply"

/* What a session serves. */
enum event_backend {
	BACKEND_CLIENT,		/* also those of engines whose sessions are all clients' */
	BACKEND_WALSENDER,
	BACKEND_WORKER,		/* a background worker */
	BACKEND_AUTOVACUUM,
	BACKEND_EVENT,		/* MySQL, MariaDB: of the event scheduler */
	BACKEND_APPLIER,	/* the same: of replication */
	BACKEND_INIT,		/* the same: of a file that the server executes when it starts */
};

/*
 * Who a session is, read from the server's memory, as a short connection ends before user space
 * could look it up. Each "" if it could not be read, cut if longer.
 */
struct event_identity {
	struct event_session session;
	char user[64], database[64];
	union {
		char host[64];
		struct {			/* with ->internal */
			__u32 database_id, user_id;	/* as in the catalog; 0: unknown */
			char type[48];		/* of a background worker */
		};
	};
	char port[6];
	__u8 backend;		/* enum event_backend */
	__u8 internal;		/* a process of PostgreSQL that serves no client: has no names */
};

/*
 * The name of a session's application, "" if it could not be read, cut if longer. If the open
 * statement had completed or failed before, the name is not that of this statement, of which the
 * server's log has been written; unless it completes although it @failed.
 */
struct event_application {
	struct event_session session;
	__u64 start_ns;		/* of that statement; 0: none */
	__u64 failed;
	char name[64];
};

/* event_transaction.flags */
#define TRANSACTION_OPEN	0x01
#define TRANSACTION_UNDATED	0x02	/* its begin is unknown: ->s.start_ns is its first hit */
#define TRANSACTION_PARTIAL	0x04	/* earlier statements were not seen */
#define TRANSACTION_FAILED	0x08	/* PostgreSQL: aborted, as its last statement failed */
#define TRANSACTION_SOUND	0x10	/* PostgreSQL: a statement completed in it */
#define TRANSACTION_ENDING	0x20	/* the running statement ends it; another one may begin */
#define TRANSACTION_COMMITTED	0x40	/* how it ends, or has ended: one of these, or unknown */
#define TRANSACTION_ROLLED_BACK	0x80
#define TRANSACTION_PREPARED	0x100	/* for a two-phase commit */
#define TRANSACTION_FAILS	0x200	/* PostgreSQL: a message failed, not the statement */
#define TRANSACTION_NONE	0x400	/* none is open, so that the next statement begins one */
#define TRANSACTION_SETTLED	0x800	/* MySQL: the commit succeeded, whatever follows */
#define TRANSACTION_ASKED	0x1000	/* MySQL: to roll back, with or without a transaction */
#define TRANSACTION_OUTCOMES \
	(TRANSACTION_COMMITTED | TRANSACTION_ROLLED_BACK | TRANSACTION_PREPARED)

/*
 * A transaction. Each session has one behind its text if they are wanted, which is also the record
 * that is sent: ->s.text_len bytes of text of its longest statement follow.
 */
struct event_transaction {
	struct event_head head;
	__u32 target_id;
	__u32 flags;
	__u32 before;			/* ->flags before its last statement */
	__u64 statements;
	__u64 active_ns;		/* duration of its statements .. */
	__u64 longest_ns;		/* .. and of the longest one */
	struct event_identity who;	/* if a session is an object; else, or unknown: type 0 */
	char application[64];		/* with ->who: of its client; "": unknown */
	struct event_statement s;	/* begin, duration and IDs; and what is about the text */
};

#define NESTED_LEVELS	8	/* a power of two; statements on further levels are not followed */
#define CALLER_TEXT	256	/* bytes of the caller's text that are sent */

/* A statement in a routine, of which ->s is about; ->s.text_len bytes of text follow. */
struct event_nested {
	struct event_head head;
	__u32 target_id;
	__u32 level;		/* 1: of a routine that the statement of the session calls */
	__u32 caller_len;	/* bytes of the text of the statement that calls it */
	char caller[CALLER_TEXT];
	struct event_statement s;
};

/* A statement that is running in a routine. */
struct nested_level {
	__u64 start_ns;		/* CLOCK_MONOTONIC */
	__u64 stack;		/* the stack pointer of the function that executes it */
	__u64 caller, caller_len;	/* address and length of its caller's text */
	__u64 rows, examined;	/* counted before it */
};

/*
 * The statements that are running in routines. Each session has it behind its text, or its
 * transaction, if they are wanted. It is of the statement that began at ->outer_ns: others have
 * left theirs behind.
 */
struct nested {
	__u64 outer_ns;
	__u64 context;		/* the client's security context; 0: unknown */
	__u64 depth;		/* of ->levels */
	struct nested_level levels[NESTED_LEVELS];
	struct event_nested event;	/* the record that is sent; then its text */
};

/* The groups in which durations are counted instead of sent. */
enum stat_by {
	STAT_BY_ALL,
	STAT_BY_COMMAND,	/* the text's first word */
	STAT_BY_STATUS,
	STAT_BY_DATABASE,
	STAT_BY_USER,
};

/*
 * Map "histogram": key of a number of durations. @coarse is the binary logarithm of the duration in
 * the unit shown, and 0 for 0. @fine has STAT_FINE linear steps between powers of two of
 * nanoseconds: n < STAT_FINE is n ns, from there on each STAT_FINE of them double the duration.
 */
#define STAT_FINE	16
#define STAT_GROUP	24

struct stat_key {
	__u32 engine_number;
	char group[STAT_GROUP];	/* with a NUL, cut if longer; zeros: unknown, or STAT_BY_ALL */
	__u16 coarse, fine;
};

/* Maps "slot_sessions" and "sessions": a session, see bpf/session.h. */
struct session {
	char group[STAT_GROUP];	/* unused with STAT_BY_ALL and STAT_BY_STATUS */
	__u64 object;		/* the server's session object; 0: the session is a thread */
	/* PostgreSQL: the text's address in the first and the last step; the latter's caller */
	__u64 first_at, text_at, caller;
	__u64 of_stack;		/* the stack pointer in the first EXECUTE or FETCH; 0: none */
	__u64 query_id_at;	/* address of the server's query ID; 0: it computes none */
	__u32 tgid;		/* of its process, the kernel's; no other process may use it */
	__u16 counted;		/* 1 + number of the owner for whom it is counted; or 0 */
	__u16 backend;		/* with ->object: enum event_backend */
	__u32 engine_number;	/* of its server's engine, for struct stat_key */
	/* With ->object: the kernel's ID of its statement's thread; else: it serves no client */
	__u32 thread;
	struct event_statement s;
	char text[];	/* text_most + 2 bytes, HEAD_WORDS at least */
};

/* A string of a session's security context. */
struct object_name {
	__s64 at;	/* offset of the pointer to it; -1: unknown */
	__u64 counted;	/* its length follows the pointer, see read_name() */
};

/*
 * Map "objects": ID of the target → where its session objects have what is read when the process is
 * killed, and while a statement is running. Offsets; -1: unknown.
 */
struct object_places {
	__s64 text;		/* of the text's address, which its length follows */
	__s64 database;		/* of the address of its name */
	__s64 connection;	/* of the server's ID of the connection .. */
	__u64 connection_bytes;	/* .. 4 or 8 */
	/*
	 * Of the pointer to the security context. The session's own one is in the object, before
	 * the pointer; that of a definer, as whom a procedure or a view runs, is not.
	 */
	__s64 context;
	struct object_name user, host, address;
	/*
	 * Of the pointer to what has the client's attributes; unless -1, of another pointer in
	 * that, if a bit of attributes_if is set in the word at its beginning; and of their
	 * address.
	 */
	__s64 attributes_of, attributes_by, attributes;
	__u64 attributes_if;
};

/* Map "threads_of_objects": thread ID % THREADS_OF_OBJECTS → key of the session it works for. */
#define THREADS_OF_OBJECTS	16384

/* Map "slots", see bpf/slot.h. User space changes its elements by atomic operations only. */
struct slot {
	__u64 key;	/* of the session that is found here; 0: none */
	__u64 owner;	/* the key that claimed the slot; 0: free */
	__u32 claims;	/* 1: claimed */
	__u32 unused;
};

/* Indices of map "counters"; no counter ever decreases. */
enum counter {
	COUNT_STATEMENTS,		/* statements or lock waits that ended, or wanted hits */
	COUNT_BOUNDARY,			/* statements that ran when tracing began or ended */
	LOST_RING_FULL,
	LOST_TABLE_FULL,
	LOST_START_WITHOUT_END,
	LOST_END_WITHOUT_START,
	LOST_WHO,			/* struct event_identity */
	LOST_UNDECIDED,			/* hits whose filter has an argument that was not read */
	COUNTERS,
	LOCK_COUNTERS = COUNTERS,	/* the same of lock waits follow */
	ALL_COUNTERS = 2 * COUNTERS,
};

/*
 * Map "owners", see bpf/owner.h: what the processes of a user have caused. The number of a user's
 * element is the upper bits of the user ID times a secret.
 */
#define OWNER_BITS	10
#define OWNERS		(1u << OWNER_BITS)
#define OWNER_SHIFT	(64 - OWNER_BITS)

enum { OWNER_NONE, OWNER_ONE, OWNER_SEVERAL };

/*
 * The tables that a process can fill: maps "sessions"; "histogram", "sums" or "probe_hits";
 * "threads"; "losses"; "waits".
 */
enum { OWNER_SESSIONS, OWNER_GROUPS, OWNER_THREADS, OWNER_LOSSES, OWNER_WAITS, OWNER_TABLES };

struct owner {
	__u64 sent;		/* bytes in all, by OWNER_CHARGE() */
	__u64 entries[OWNER_TABLES];	/* added, minus those that programs removed */
	__u64 lost[COUNTERS];
	__u32 uid;		/* the first user */
	__u32 known;		/* OWNER_NONE, OWNER_ONE, OWNER_SEVERAL users */
};

/*
 * Map "losses": of the processes of a user that run a file. When a user has LOSSES_SHARE elements,
 * further losses are counted by user only.
 */
#define LOSSES_MAX	1024
#define LOSSES_SHARE	(LOSSES_MAX / 4 * 3)

struct loss_key {
	__u32 uid, target_id;
};

struct losses {
	__u64 lost[COUNTERS];
};

/* Map "grants": what user space has taken, to be subtracted from the element of map "owners". */
struct grant {
	__u64 received;		/* bytes, by OWNER_CHARGE() */
	__u64 removed;		/* entries of OWNER_SESSIONS */
};

/* Bytes that a record of @size takes: perf buffers pad it, so that its true size is unknown. */
#define OWNER_CHARGE(size)	(((__u64)(size) + 4 + 7) & ~7ULL)

/* The upper bits of this product are the number of the slot: consecutive keys get distant slots. */
#define SLOT_PRODUCT(key)	((key) * 0x9e3779b97f4a7c15ULL)

/*
 * Parts of a statement's time, one row each: the name in enum breakdown_part, which is also the
 * header of the column; the name in the output; the help. First those in which the thread runs or
 * could run.
 */
#define BREAKDOWN_RUNS(ROW)							\
	ROW(CPU, "cpu", "milliseconds on a CPU")				\
	ROW(RUNQUEUE, "runqueue", "... waiting for a CPU")			\
	ROW(THROTTLED, "throttled", "... stopped by its group's CPU limit")

/*
 * The parts in which it waits. LOCK includes metadata locks and buffer pins. FUTEX is a mutex or a
 * condition variable of unknown purpose. IPC is another process, such as a parallel worker.
 */
#define BREAKDOWN_WAITS_FOR(ROW)						\
	ROW(DISK, "disk", "... for storage")					\
	ROW(FSYNC, "fsync", "... for written data to become durable")		\
	ROW(LOCK, "lock", "... for a row, table or advisory lock")		\
	ROW(LWLOCK, "lwlock", "... for a lock inside the server (postgresql)")	\
	ROW(FUTEX, "futex", "... for a mutex or condition")			\
	ROW(NETWORK, "network", "... for the client")				\
	ROW(REMOTE, "remote", "... for another server")				\
	ROW(PIPE, "pipe", "... for a pipe")					\
	ROW(SLEEP, "sleep", "... asleep on purpose")				\
	ROW(IPC, "ipc", "... for another process of the server")		\
	ROW(REPLICATION, "replication", "... for standbys (postgresql)")	\
	ROW(EXTENSION, "extension", "... as an extension decides (postgresql)")	\
	ROW(STOPPED, "stopped", "... stopped, traced or frozen")		\
	ROW(OTHER, "other", "... for unknown reasons")

/* All of them, in the order of the columns. */
#define BREAKDOWN_TABLE(ROW)	BREAKDOWN_RUNS(ROW) BREAKDOWN_WAITS_FOR(ROW)

enum breakdown_part {
#define BREAKDOWN_NUMBER(part, name, help)	BREAKDOWN_ ## part,
	BREAKDOWN_TABLE(BREAKDOWN_NUMBER)
#undef BREAKDOWN_NUMBER
	BREAKDOWN_PARTS,
	BREAKDOWN_FIRST_WAIT = BREAKDOWN_DISK,	/* those before it are BREAKDOWN_RUNS */
};

/* Phases of a statement that the server reports. */
enum phase { PHASE_PARSE, PHASE_REWRITE, PHASE_PLAN, PHASE_EXECUTE, PHASES };

#define BREAKDOWN_LEADERS	256	/* elements of map "parallel" */
#define BREAKDOWN_SLOTS	4096	/* elements of map "active" */
#define BREAKDOWN_WAITS	8	/* kinds counted separately; the last one has all others */
#define BREAKDOWN_COMMITS	3
#define BREAKDOWN_CALLS	512	/* elements of map "calls" */
#define IO_THREADS	32768	/* elements of map "io_threads" */
/* Instead of a system call: */
#define BREAKDOWN_NO_CALL	(~0u)	/* in none: a page fault */
#define BREAKDOWN_OTHERS	(~1u)	/* any other */
#define BREAKDOWN_NONE	(~2u)	/* none is selected */
#define BREAKDOWN_STOP	(~3u)	/* it is stopped, whatever system call it is in */
/* Values of map "calls": the part, and bits. */
#define BREAKDOWN_PART		0x3f
#define BREAKDOWN_ON_FILE	0x40	/* its file can decide the part */
#define BREAKDOWN_WRITES	0x80	/* .. and whether it waits until the data is durable */
#define BREAKDOWN_ON_POLL	0x100	/* its first argument is an array of struct pollfd .. */
#define BREAKDOWN_ON_EPOLL	0x200	/* .. or an epoll, not one file */

/*
 * Waits in one system call for one wait event, as the server numbers these, or in one stage: the
 * distance of its name from event_breakdown.stage_from. 0: none, or unknown.
 */
struct breakdown_wait {
	__u32 call, event;
	__u32 part;			/* of the first of them; of BREAKDOWN_OTHERS: any */
	__u32 sleeps;
	__u64 ns;
};

struct breakdown_phase {
	__u64 first_ns;			/* first start; 0: none */
	__u64 since_ns;			/* last start */
	__u64 ns;			/* total duration */
	__u32 depth;			/* nesting; 0: not running */
	__u32 reserved;
};

/* Resources that a statement uses. */
enum use {
	USE_READ_BYTES, USE_WRITE_BYTES,	/* of storage */
	USE_READ_CALLS, USE_WRITE_CALLS,	/* system calls, mostly on files */
	USE_MINOR_FAULTS, USE_MAJOR_FAULTS,
	USE_PEAK_GROWTH,			/* of the memory: pages; in user space, bytes */
	USE_SENT, USE_RECEIVED,			/* bytes on sockets */
	/* PostgreSQL, in blocks: the first members of struct BufferUsage, in its order .. */
	USE_SHARED_HIT, USE_SHARED_READ, USE_SHARED_DIRTIED, USE_SHARED_WRITTEN,
	USE_LOCAL_HIT, USE_LOCAL_READ, USE_LOCAL_DIRTIED, USE_LOCAL_WRITTEN,
	USE_TEMP_READ, USE_TEMP_WRITTEN,
	/* .. and of struct WalUsage */
	USE_WAL_RECORDS, USE_WAL_FPI, USE_WAL_BYTES,
	/* Sorts: all, those on disk, the memory of the largest one, blocks on disk */
	USE_SORTS, USE_SORTS_EXTERNAL, USE_SORT_BYTES, USE_SORT_BLOCKS,
	USES,
};

#define USE_BUFFERS		(USE_WAL_RECORDS - USE_SHARED_HIT)
#define USE_WALS		(USE_SORTS - USE_WAL_RECORDS)
#define USE_SORTINGS		(USES - USE_SORTS)

#define SORT_BEGINS		2	/* arg_sort: not an end */

/* Sums of a statement's parallel workers that have ended. */
struct breakdown_workers {
	__u64 ns[BREAKDOWN_PARTS];
	__u64 count;
	__u64 use[USE_SORTINGS];	/* from USE_SORTS on; the leader counts the rest */
};

/*
 * The breakdown of a statement. Map "threads" has one per thread, which is also the record that is
 * sent. The sum of ->ns is the time from ->start_ns to ->since_ns.
 */
struct event_breakdown {
	struct event_head head;
	__u32 target_id;
	__u32 pid, tid;
	__u64 start_ns;			/* of its statement; 0: none is running */
	__u64 session;			/* key of its session; 0: a parallel worker */
	__u64 since_ns;			/* last change of ->part */
	__u32 part;			/* enum breakdown_part of the time since then */
	__u32 call;			/* system call that it waits in */
	__u64 argument;			/* its first argument */
	__u64 interrupted_ns;		/* of the wait in it: see wait_futex_ends() */
	__u64 wait_event;		/* address of the server's wait event; 0: none */
	__u64 stage;			/* .. instead, of a pointer to the name of its stage; 0 */
	__u64 stage_from;		/* address in the server's program */
	__u64 commit[BREAKDOWN_COMMITS];	/* addresses, see wait_is_commit(); 0: none */
	__u64 buffers, wal;		/* addresses of the server's counters; 0: none */
	__u32 announced;		/* wait reported by the server: enum breakdown_part; or 0 */
	__u32 used;			/* bits: members of ->use that are known */
	__u64 leader;			/* key of map "workers", its leader's or its own; 0: none */
	__u16 worker;			/* it is a parallel worker */
	__u16 place;			/* see breakdown_add_wait() */
	__u32 sorted;			/* sorts that have ended */
	__u32 replication;		/* wait event of waits for standbys; 0: unknown */
	__u32 event;			/* as in struct breakdown_wait, when the wait began */
	__u64 ns[BREAKDOWN_PARTS];
	struct breakdown_wait waits[BREAKDOWN_WAITS];
	struct breakdown_phase phases[PHASES];
	struct breakdown_workers workers;
	__u64 use[USES];		/* minus the counters at the start; at last, the growth */
	__u64 spent_ns;			/* with a limit: in programs on tracepoints */
};

/* A wait of the selected kind, in a statement that may be wanted or not. */
struct event_wait {
	struct event_head head;
	__u32 target_id;
	__u32 pid, reserved;
	__u64 start_ns;			/* of its statement */
	__u64 ns;
};

/*
 * Map "comms": name of an executed file, cut as the kernel cuts it, and the user → one of these, a
 * byte. With the user: or an execution by one would hide those by others.
 */
enum exec_value {
	EXEC_ALWAYS = 1,	/* of a server, EXEC_ANY_USER: report each execution */
	EXEC_REPORTED = 2,	/* another name, which has been reported */
};

#define EXEC_ANY_USER	(~0u)

struct exec_name {
	char comm[16];
	__u32 uid;
	__u32 reserved;
};

/* A process has executed a file. */
struct event_exec {
	struct event_session session;
	struct exec_name name;
};

/*
 * A hit of a probe. ->values are followed by the strings that some of them are the addresses of:
 * each the s64 that bpf_probe_read_user_str() returned, and a fixed number of bytes.
 */
struct event_probe_hit {
	struct event_head head;
	__u32 probe_id;
	__u32 pid, tid;		/* as seen from where the tool runs */
	__u64 time_ns;		/* CLOCK_MONOTONIC */
	__u64 latency_ns;	/* since the start; 0: none was requested */
	__u64 unknown;		/* HIT_FIELD_UNKNOWN() of each value that could not be read */
	char comm[16];
	__u64 values[];
};

/* Bits beyond those of the variables of usdt/expression.h */
#define HIT_FIELD_UNKNOWN(n)	(1 << (16 + (n)))
#define HIT_FILTER_UNKNOWN	(1 << 28)

/*
 * Map "probe_hits": key of the number of hits with these values. The value of a histogram is the
 * first field. The map's keys end behind the last text in use.
 */
#define PROBE_HIT_TEXT		64
#define PROBE_HIT_TEXTS		2
#define PROBE_HIT_VALUES	7

struct probe_hit_key {
	__u32 probe_id;
	__u16 slot;		/* of a histogram: log2 of its value, or HIT_…; else 0 */
	__u16 unknown;		/* bit n: value n could not be read */
	/* By field; 0: the value of a histogram, the length of a text; of a text: 0 or HIT_… */
	__u64 values[PROBE_HIT_VALUES];
	char texts[PROBE_HIT_TEXTS][PROBE_HIT_TEXT];	/* with a NUL, cut if longer; or zeros */
};

#define PROBE_HIT_KEY_SIZE(texts) \
	(sizeof(struct probe_hit_key) - (PROBE_HIT_TEXTS - (texts)) * PROBE_HIT_TEXT)

#define HIT_NEGATIVE	64	/* slot of numbers below 0; that of 0 is 0 */
#define HIT_UNKNOWN	65	/* slot of a value that could not be read */

#define HIT_NULL	1	/* the string's address is 0 */
#define HIT_UNREADABLE	2	/* its memory cannot be read */

/* Constant histogram: what is counted by powers of two. */
enum { HISTOGRAM_FIELD = 1, HISTOGRAM_LATENCY };	/* the first field; us */

/* Map "starts": when the current call of a function, or the last start of a pair, was. */
struct latency_key {
	__u32 tid;		/* of the kernel */
	__u32 pair;		/* number of the function; 0 for two probes */
	__u64 frame;		/* stack pointer before the call; 0 for two probes */
};

struct latency_start {
	__u64 ns;		/* CLOCK_MONOTONIC */
	__u32 owner;
	__u32 reserved;
};

/* The user stack of a hit follows its strings: its size in bytes or -errno, and addresses. */
#define HIT_STACK_FRAMES	127

struct event_stack {
	__s64 bytes;
	__u64 caller;		/* at the start of a function, whose frame is not set up; or 0 */
	__u64 addresses[HIT_STACK_FRAMES];	/* the innermost first */
};

/* Map "pids" of trace: only this process, or also the children that execute the same program. */
enum { WANTED_PROCESS = 1, WANTED_CHILDREN };

/* Map "control", which user space maps (BPF_F_MMAPABLE). */
struct control {
	__u32 asleep;			/* the consumer sleeps: wake it for the next record */
	__u32 reserved;
	__u64 detach_ns;		/* CLOCK_MONOTONIC when detaching began; 0: not yet */
};

/* Size of a record that only wakes the consumer; all others are larger. */
#define WAKE_BYTES	8

/*
 * Map "servers": PID of a server's main process in its own PID namespace → the namespaces (kernel
 * dev_t and inode of /proc/PID/ns/pid) in which the server with this PID is wanted.
 */
#define WANTED_NAMESPACES	4

struct wanted_server {
	struct {
		__u64 dev, ino;
		__u32 uid;	/* of the server: the PID is the process's own claim */
		__u32 reserved;
	} ns[WANTED_NAMESPACES];
};

_Static_assert(sizeof(struct event_statement) == 104, "no padding");
_Static_assert(sizeof(struct event_session) == 24, "no padding");
_Static_assert(sizeof(struct event_identity) == 224, "no padding");
_Static_assert(sizeof(struct event_application) == 104, "no padding");
_Static_assert(sizeof(struct event_transaction) == 432, "no padding");
_Static_assert(sizeof(struct event_nested) == 376, "no padding");
_Static_assert(sizeof(struct nested) == 784, "no padding");
_Static_assert(sizeof(struct event_wait) == 32, "no padding");
_Static_assert(sizeof(struct stat_key) == 32, "no padding");
_Static_assert(sizeof(struct event_probe_hit) == 56, "no padding");
_Static_assert(sizeof(struct latency_key) == 16, "no padding");
_Static_assert(sizeof(struct latency_start) == 16, "no padding");
_Static_assert(sizeof(struct probe_hit_key) == 192, "no padding");
_Static_assert(sizeof(struct control) == 16, "no padding");

#endif
