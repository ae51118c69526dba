// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/block.h"

#include <errno.h>
#include <string.h>

/* Offsets in a head. Numbers have the least significant byte first. */
enum {
	HEAD_MAGIC = 0, HEAD_CRC = 8, HEAD_VERSION = 12, HEAD_KIND = 14, HEAD_ID = 16,
	HEAD_SEQUENCE = 24, HEAD_BEGIN = 32, HEAD_END = 40, HEAD_STATEMENTS = 48,
	HEAD_LAYOUT = 52, HEAD_LENGTH = 56, HEAD_EVENTS_CRC = 60,
};

static void put(uint8_t *at, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *at, int bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

/* Return the CRC of what follows it in @head. */
static uint32_t head_crc(const struct crc32c *crc, const uint8_t *head)
{
	return crc32c_of(crc, head + HEAD_VERSION, RECORDING_HEAD - HEAD_VERSION);
}

void block_write(const struct crc32c *crc, const struct recording_block *block,
		 uint8_t head[RECORDING_HEAD])
{
	memcpy(head + HEAD_MAGIC, RECORDING_MAGIC, HEAD_CRC);
	put(head + HEAD_VERSION, block->version, 2);
	put(head + HEAD_KIND, block->kind, 2);
	put(head + HEAD_ID, block->id, 8);
	put(head + HEAD_SEQUENCE, block->sequence, 8);
	put(head + HEAD_BEGIN, block->begin_ns, 8);
	put(head + HEAD_END, block->end_ns, 8);
	put(head + HEAD_STATEMENTS, block->statements, 4);
	put(head + HEAD_LAYOUT, block->layout, 4);
	put(head + HEAD_LENGTH, block->length, 4);
	put(head + HEAD_EVENTS_CRC, block->crc, 4);
	put(head + HEAD_CRC, head_crc(crc, head), 4);
}

int block_read(const struct crc32c *crc, struct recording_block *block,
	       const uint8_t head[RECORDING_HEAD])
{
	uint64_t kind = get(head + HEAD_KIND, 2), version = get(head + HEAD_VERSION, 2);

	if (memcmp(head + HEAD_MAGIC, RECORDING_MAGIC, HEAD_CRC) ||
	    get(head + HEAD_CRC, 4) != head_crc(crc, head))
		return -EBADMSG;
	if (version < 1 || version > RECORDING_VERSION)
		return -EPROTONOSUPPORT;
	if (kind < RECORDING_START || kind > RECORDING_END)
		return -EBADMSG;
	*block = (struct recording_block){
		.id = get(head + HEAD_ID, 8), .sequence = get(head + HEAD_SEQUENCE, 8),
		.begin_ns = get(head + HEAD_BEGIN, 8), .end_ns = get(head + HEAD_END, 8),
		.version = (unsigned int)version,
		.statements = (uint32_t)get(head + HEAD_STATEMENTS, 4),
		.layout = (uint32_t)get(head + HEAD_LAYOUT, 4),
		.length = (uint32_t)get(head + HEAD_LENGTH, 4),
		.crc = (uint32_t)get(head + HEAD_EVENTS_CRC, 4), .kind = (enum recording_kind)kind,
	};
	return block->length > RECORDING_BLOCK_MAX ? -EBADMSG : 0;
}
