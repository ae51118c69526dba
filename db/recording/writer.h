/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Write a recording: to a file, of which the blocks may be a ring, or to memory, from where the
 * last blocks are written to a file later.
 */
#ifndef DB_RECORDING_WRITER_H
#define DB_RECORDING_WRITER_H

#include "db/recording/block.h"
#include "db/recording/encode.h"

#define WRITER_BLOCK	(64u << 10)	/* bytes of events after which a block is written */
#define WRITER_RING_MIN	(1u << 20)	/* smallest limit of a file, and of memory */

/* A block in memory. */
struct writer_kept {
	struct writer_kept *next;
	size_t len;
	uint64_t statements, waits;
	uint8_t data[];			/* head and events */
};

/* Opened by writer_open(). */
struct writer {
	struct encode encode;
	struct crc32c crc;
	struct recording_block block;	/* the next one */
	uint64_t opened_ns;		/* when the first event of the block was added; 0: none */
	int fd;				/* borrowed; -1: none */
	uint64_t limit;			/* bytes of the file; 0: none */
	uint64_t begin, at;		/* offsets of the ring, and of the next block */
	uint64_t size;			/* of the file */
	/* Of the current file: */
	uint64_t written;		/* bytes */
	uint64_t statements, waits;	/* in blocks that were written, or are kept for it */
	uint64_t dropped;		/* blocks, or their ends, for which there was no room */
	/* In memory: */
	uint64_t memory;		/* bytes to keep without a file; 0: none */
	uint64_t kept;			/* bytes of the list */
	struct writer_kept *start;	/* the block RECORDING_START */
	struct writer_kept *first, **last;	/* the others, the oldest first */
};

/*
 * Prepare to write blocks of a recording with the random number @id. @memory: bytes to keep while
 * there is no file. The caller then adds options by encode_option() and commits RECORDING_START.
 */
void writer_open(struct writer *writer, uint64_t id, uint64_t memory);

/*
 * Write the blocks from now on, and those in memory, to the empty file @fd, borrowed, of @limit
 * bytes at most; 0: any. Return 0 or -errno.
 */
int writer_file(struct writer *writer, int fd, uint64_t limit);

/* Keep the blocks from now on in memory. */
void writer_no_file(struct writer *writer);

/* Note that an event was added at @now_ns. Return whether it is time to commit the block. */
bool writer_due(struct writer *writer, uint64_t now_ns);

/* Return whether there are events that are not committed. */
bool writer_pending(const struct writer *writer);

/* End the current block and write it, as one of @kind. Return 0 or -errno. */
int writer_commit(struct writer *writer, enum recording_kind kind);

void writer_close(struct writer *writer);

#endif
