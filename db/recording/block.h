/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The head of a block of a recording, see docs/recording.md. */
#ifndef DB_RECORDING_BLOCK_H
#define DB_RECORDING_BLOCK_H

#include "db/recording/codec.h"
#include "db/recording/format.h"

struct recording_block {
	uint64_t offset;		/* of the head in the file */
	uint64_t id;			/* of the recording: random, the same in all its blocks */
	uint64_t sequence;		/* number of the block, from 0 on */
	uint64_t begin_ns, end_ns;	/* ends of its events, CLOCK_MONOTONIC; 0: none */
	uint64_t least_ns;		/* of ->begin_ns from this block on; by reader_open() */
	unsigned int version;		/* of the format */
	uint32_t statements;
	uint32_t layout;		/* CRC32C of the text of its layout; 0 in version 1 */
	uint32_t length;		/* bytes of its events, which follow the head */
	uint32_t crc;			/* CRC32C of these */
	enum recording_kind kind;
	bool broken;			/* its events were found damaged; a reader's */
};

/* Write the head to @head. */
void block_write(const struct crc32c *crc, const struct recording_block *block,
		 uint8_t head[RECORDING_HEAD]);

/*
 * Read a head to @block, but for the offset. Return 0; -EBADMSG if it is none; -EPROTONOSUPPORT if
 * it is one of an unknown version of the format.
 */
int block_read(const struct crc32c *crc, struct recording_block *block,
	       const uint8_t head[RECORDING_HEAD]);

#endif
