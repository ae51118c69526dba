/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/recording/: recordings: the format, encoding and decoding of events, the writer, the reader,
 * and the replay of a file as if its events happened now. A file is as untrusted as a process.
 * It names no engine other than by the registry.
 */

/*
 * The format of recordings; docs/recording.md describes it completely. A file is a sequence of
 * blocks: RECORDING_START, then any number of RECORDING_EVENTS, and at last RECORDING_END. Each
 * block can be read without the others.
 */
#ifndef DB_RECORDING_FORMAT_H
#define DB_RECORDING_FORMAT_H

#define RECORDING_MAGIC		"dbslower"
#define RECORDING_VERSION	1
#define RECORDING_HEAD		64		/* bytes of a block before its events */
#define RECORDING_BLOCK_MAX	(8u << 20)	/* bytes of a block's events, at most */

/* Kinds of blocks. */
enum recording_kind { RECORDING_START = 1, RECORDING_EVENTS = 2, RECORDING_END = 3 };

/* Types of events. */
enum recording_type {
	RECORDING_OPTIONS = 1,		/* a property of the recording */
	RECORDING_SERVER = 2,		/* an entry of the dictionary of servers .. */
	RECORDING_SESSION = 3,		/* .. of sessions .. */
	RECORDING_CALL = 4,		/* .. and of system calls */
	RECORDING_CLOCK = 5,		/* CLOCK_REALTIME - CLOCK_MONOTONIC from now on */
	RECORDING_STATEMENT = 6,
	RECORDING_WAIT = 7,		/* a lock wait */
	RECORDING_STATUS = 8,		/* losses, and the recorder's own cost, so far */
	RECORDING_QUERY = 9,		/* an entry of the dictionary of query IDs */
	RECORDING_TRANSACTION = 10,
	RECORDING_TYPES
};

/* The losses of a status, in their order; and those for the overhead limit, which follow. */
#define RECORDING_LOSSES						\
	{ LOSS_RING_FULL, LOSS_TABLE_FULL, LOSS_START_WITHOUT_END,	\
	  LOSS_END_WITHOUT_START, LOSS_WHO_UNKNOWN, LOSS_TEXT_UNREADABLE,	\
	  LOSS_TEXT_TRUNCATED }
#define RECORDING_LIMIT_LOSSES	{ LOSS_TEXT_DROPPED, LOSS_WHY_DROPPED }

/* Flags of a statement. The first ones are frequent: flags below 128 take one byte. */
#define RECORDED_TEXT		0x01
#define RECORDED_STATUS		0x02	/* success and failure are distinguished */
#define RECORDED_ROWS		0x04
#define RECORDED_WHOLE		0x08	/* the whole text has the length of the recorded one */
#define RECORDED_WHY		0x10
#define RECORDED_CHANGED	0x20	/* the rows were changed; none were sent */
#define RECORDED_QUERY		0x40	/* a query ID follows */
#define RECORDED_TRUNCATED	0x80
#define RECORDED_BYTES		0x100	/* the length of the whole text follows */
#define RECORDED_ERROR		0x200	/* error number and SQLSTATE follow */
#define RECORDED_EXAMINED	0x400
#define RECORDED_LOCK		0x800	/* lock time */
#define RECORDED_FETCHES	0x1000
#define RECORDED_PREPARE	0x2000
#define RECORDED_RUNNING	0x4000
#define RECORDED_NO_TEXT	0x8000
#define RECORDED_REDACTED	0x10000	/* the length before redaction follows */
#define RECORDED_PARENT		0x20000	/* the trace context follows */
#define RECORDED_FAILED		0x40000
#define RECORDED_SHARED		0x80000	/* not a transaction of its own, or that is unknown */
#define RECORDED_PLAN		0x100000	/* how it was executed */

/* Flags of a transaction. RECORDED_TEXT to RECORDED_REDACTED are as those of a statement. */
#define RECORDED_OPEN		0x02
#define RECORDED_DATED		0x04	/* its begin is known */
#define RECORDED_COUNTED	0x10	/* the number of statements, and the idle time, follow */

/* Flags of a lock wait. */
#define RECORDED_WAIT_RUNNING	0x01
#define RECORDED_WAIT_JOINED	0x02	/* began before the recording */
#define RECORDED_WAIT_INFO	0x04	/* the lock and its holders follow */
#define RECORDED_WAIT_KNOWN	0x08	/* all holders could be read */

/* Flags of a backend in a lock wait. */
#define RECORDED_QUEUED		0x01	/* does not hold the lock, but is ahead in its queue */
#define RECORDED_VALID		0x02	/* the next flag and the text could be read */
#define RECORDED_BUSY		0x04	/* the text is running; else it was the last statement */
#define RECORDED_IDLE_VALID	0x08
#define RECORDED_IDLE		0x10	/* in a transaction */
#define RECORDED_CUT		0x20	/* the text is incomplete */

/* The dictionaries of a block; an entry beyond the last replaces the oldest one. */
#define RECORDING_SERVERS	1024
#define RECORDING_SESSIONS	4096
#define RECORDING_CALLS		64
#define RECORDING_QUERIES	4096
#define RECORDING_TEXTS		256
#define RECORDING_HELD_MAX	65536	/* bytes of a text of a lock wait, at most */
#define RECORDING_TEXT_MAX	16384	/* longer ones are not in the dictionary */

#endif
