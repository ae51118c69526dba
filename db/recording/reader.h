/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Read a recording, which may have any content: its blocks in order, and their events. */
#ifndef DB_RECORDING_READER_H
#define DB_RECORDING_READER_H

#include "db/recording/block.h"
#include "db/recording/decode.h"

/* The missing parts. */
struct reader_damage {
	uint64_t missing;		/* blocks between others, which may have been displaced */
	uint64_t broken;		/* blocks with changed bytes */
	uint64_t offset;		/* of the first block with changed bytes */
	bool cut;			/* the file ends within a block */
	bool unended;			/* there is no RECORDING_END */
	bool unstarted;			/* there is no RECORDING_START */
};

#define READER_LANES	8		/* blocks that are decoded at a time */

struct reader_lane;

/* Opened by reader_open(). */
struct reader {
	int fd;				/* borrowed */
	bool (*stopped)(void *arg);	/* or NULL: never */
	void *arg;
	uint64_t work;			/* in bytes, since it was asked */
	uint64_t bytes;			/* of the file, about, without holes */
	struct recording_block *blocks;	/* owned; in order, RECORDING_START first */
	size_t nblocks, room;
	struct reader_damage damage;
	bool ring;			/* later blocks are before earlier ones in the file */
	bool late;			/* of a ring or of memory: the oldest blocks are gone */
	struct decode_file file;
	struct reader_lane *lanes[READER_LANES];	/* owned; NULL: not needed so far */
	struct reader_lane *last;	/* of the last event, or NULL */
	size_t next;			/* block to begin with */
};

/*
 * Find the blocks of the regular file @fd, borrowed. @stopped, or NULL, is called with @arg now and
 * then, at most some tenths of a second apart but for millions of blocks in disorder: if it returns
 * true, reading ends with -EINTR. Return 0; -EINVAL if there is no block; -EPROTONOSUPPORT if it
 * has an unknown version or, with ->damage.unstarted, an unknown layout; or another -errno.
 * reader_close() ends it in any case.
 */
int reader_open(struct reader *reader, int fd, bool (*stopped)(void *arg), void *arg);

void reader_close(struct reader *reader);

/* Continue with the first block that has an event at @ns of CLOCK_MONOTONIC or later. */
void reader_seek(struct reader *reader, uint64_t ns);

/* Continue with ->blocks[@block]. */
void reader_continue(struct reader *reader, size_t block);

/*
 * Read the next event to *@event, which is borrowed until the next call. Events of blocks that
 * overlap in time are merged by their ends. Blocks with changed bytes are skipped and counted.
 * Return 1; 0 at the end; -EINTR if it was stopped; or another -errno.
 */
int reader_next(struct reader *reader, struct decode_event **event);

/* Return the index of the first block of which events are left, that of the last event included. */
size_t reader_first(const struct reader *reader);

/* Return the time range of the events in *@begin_ns and *@end_ns, CLOCK_MONOTONIC; 0: none. */
void reader_range(const struct reader *reader, uint64_t *begin_ns, uint64_t *end_ns);

#endif
