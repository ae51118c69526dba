/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/recording/: recordings: the format, encoding and decoding of events, the writer, the reader,
 * and the replay of a file as if its events happened now. A file is as untrusted as a process.
 * It names no engine other than by the registry.
 */

/*
 * The format of recordings; docs/recording.md describes it completely. A file is a sequence of
 * blocks: RECORDING_START, then any number of RECORDING_EVENTS, and at last RECORDING_END. With
 * the layout in the first one, each can be read without the others.
 */
#ifndef DB_RECORDING_FORMAT_H
#define DB_RECORDING_FORMAT_H

#define RECORDING_MAGIC		"dbslower"
#define RECORDING_VERSION	2		/* files of version 1 are read, too */
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
	RECORDING_TRANSACTION = 10,	/* of version 1 */
	RECORDING_TYPES
};

/* The dictionaries of a block; an entry beyond the last replaces the oldest one. */
#define RECORDING_SERVERS	1024
#define RECORDING_SESSIONS	4096
#define RECORDING_CALLS		64
#define RECORDING_QUERIES	4096
#define RECORDING_TEXTS		256
#define RECORDING_HELD_MAX	65536	/* bytes of a text of a lock wait, at most */
#define RECORDING_TEXT_MAX	16384	/* longer ones are not in the dictionary */

#endif
