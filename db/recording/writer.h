/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Write a recording: to a file, of which the blocks may be a ring, or to memory, from where the
 * last blocks are written to a file later. If the bytes of either are limited, each user has blocks
 * of its own, so that the events of one displace those of others only up to OWNER_SHARE().
 */
#ifndef DB_RECORDING_WRITER_H
#define DB_RECORDING_WRITER_H

#include "db/recording/block.h"
#include "db/recording/encode.h"

#define WRITER_BLOCK	(64u << 10)	/* bytes of events after which a block is written */
#define WRITER_RING_MIN	(1u << 20)	/* smallest limit of a file, and of memory */
#define WRITER_USERS	RECORDED_USERS
#define WRITER_SEGMENTS	32

/* Events of a user that are displaced together: a block in memory, or those in a segment. */
struct writer_part {
	uint64_t bytes, statements, waits;
	uint64_t end_ns;		/* the last end */
};

/* A block in memory. */
struct writer_kept {
	struct writer_kept *next;
	struct writer_part part;
	uint64_t sequence;
	size_t len;
	uint8_t data[];			/* head and events */
};

/* A part of the file. */
struct writer_segment {
	const struct writer_user *user;	/* only its blocks, or NULL: those of any */
	uint64_t sequence;		/* of the first block; 0: none yet */
	uint64_t used;			/* bytes of its blocks .. */
	uint64_t end;			/* .. and of these and what they have not overwritten yet */
	struct writer_part part[WRITER_USERS];	/* of each user */
};

/* The events of one user. The last one of a writer stands for all that have none. */
struct writer_user {
	struct encode encode;		/* its next block .. */
	uint64_t sequence;		/* .. the number of that, if .. */
	bool begun;			/* .. it has one .. */
	uint64_t opened_ns;		/* .. and when its first event was added; 0: none */
	struct recorded_user told;	/* what was displaced */
	struct writer_kept *first, **last;	/* its blocks in memory, the oldest first .. */
	uint64_t kept;			/* .. and their bytes */
	uint64_t bytes;			/* of its blocks in the file */
};

/* Opened by writer_open(). Most of it stays untouched unless there are several users. */
struct writer {
	struct crc32c crc;
	struct recording_block block;	/* what all heads have */
	uint64_t sequence;		/* of the next block */
	struct writer_user users[WRITER_USERS];
	int fd;				/* borrowed; -1: none */
	uint64_t block_max;		/* bytes of a block, nearly always */
	uint64_t limit;			/* bytes of the file; 0: none */
	uint64_t begin, at;		/* offset after RECORDING_START, and of the file */
	struct writer_segment segments[WRITER_SEGMENTS];
	uint64_t nsegments, segment_bytes;
	const struct writer_user *heavy;	/* who has most, in segments of its own, or NULL */
	struct writer_segment *current[2];	/* for blocks of any other user, and of this one */
	/* Of the current file: */
	uint64_t written;		/* bytes */
	uint64_t statements, waits;	/* in blocks that were written, or are kept for it */
	uint64_t dropped;		/* blocks, or their ends, for which there was no room */
	/* In memory: */
	uint64_t memory;		/* bytes to keep without a file; 0: none */
	uint64_t kept;			/* bytes of the blocks but the first one */
	struct writer_kept *start;	/* the block RECORDING_START */
};

/*
 * Prepare @writer, all zero, to write blocks of a recording with the random number @id. @memory:
 * bytes to keep while there is no file. @text_bytes: length of a text, at most. The caller then
 * adds options to the first user's block by encode_option() and commits it as RECORDING_START.
 */
void writer_open(struct writer *writer, uint64_t id, uint64_t memory, uint32_t text_bytes);

/*
 * Write the blocks from now on, and those in memory, to the empty file @fd, borrowed, of @limit
 * bytes at most; 0: any. Return 0 or -errno.
 */
int writer_file(struct writer *writer, int fd, uint64_t limit);

/* Keep the blocks from now on in memory. */
void writer_no_file(struct writer *writer);

/* Return whose ->encode is to have the events of the user @uid; UINT32_MAX: it is unknown. */
struct writer_user *writer_user(struct writer *writer, uint32_t uid);

/* Return whether the block of @user is to be committed at once. */
bool writer_full(const struct writer *writer, const struct writer_user *user);

/* Return a user whose block is to be committed at @now_ns; UINT64_MAX: in any case. NULL: none. */
struct writer_user *writer_due(struct writer *writer, uint64_t now_ns);

/* Return whether there are events that are not committed. */
bool writer_pending(const struct writer *writer);

/* Make room for the block of @user and a status, so that this can count what is displaced. */
int writer_reserve(struct writer *writer, struct writer_user *user);

/* Fill @users, WRITER_USERS, with what was displaced. Return their number; 0: nothing could be. */
size_t writer_displaced(const struct writer *writer, struct recorded_user *users);

/* End the current block of @user and write it, as one of @kind. Return 0 or -errno. */
int writer_commit(struct writer *writer, struct writer_user *user, enum recording_kind kind);

void writer_close(struct writer *writer);

#endif
