// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/recording/layout.h"

#define COMMIT_NS	1000000000u	/* how long an event waits in memory, at most */

void writer_open(struct writer *w, uint64_t id, uint64_t memory)
{
	char layout[LAYOUT_TEXT];

	*w = (struct writer){
		.block = { .version = RECORDING_VERSION, .id = id }, .fd = -1, .memory = memory,
	};
	crc32c_init(&w->crc);
	encode_open(&w->encode);
	w->last = &w->first;
	w->block.layout = crc32c_of(&w->crc, layout, layout_write(layout));
	encode_option(&w->encode, LAYOUT_OPTION, layout);
}

/* Write all @len bytes to the file, from its offset on. Return 0 or -errno. */
static int writer_bytes(struct writer *w, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(w->fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Overwrite what follows the next block's offset: blocks of the round before the last one. */
static int writer_clear(struct writer *w)
{
	uint8_t zeros[4096] = { 0 };
	uint64_t len;
	int err = 0;

	for (; !err && w->at < w->size; w->at += len) {
		len = w->size - w->at < sizeof(zeros) ? w->size - w->at : sizeof(zeros);
		err = writer_bytes(w, zeros, len);
	}
	return err;
}

/*
 * Write a complete block. In a ring, it replaces the oldest ones: what remains of the last of these
 * is no block for a reader, as its head is gone.
 */
static int writer_block(struct writer *w, const uint8_t *data, size_t len)
{
	int err;

	if (w->limit && w->at + len > w->limit) {
		if (w->begin + len > w->limit) {
			w->dropped++;
			return 0;
		}
		err = writer_clear(w);
		if (err)
			return err;
		w->at = w->begin;
		/* The sandbox permits this one, but not pwrite(2). */
		if (lseek(w->fd, (off_t)w->at, SEEK_SET) < 0)
			return -errno;
	}
	err = writer_bytes(w, data, len);
	if (err)
		return err;
	w->at += len;
	w->size = w->at > w->size ? w->at : w->size;
	w->written += len;
	return 0;
}

/* Drop the oldest blocks in memory until @room bytes are free. */
static void writer_forget(struct writer *w, uint64_t room)
{
	struct writer_kept *first;

	while (w->first && w->kept + room > w->memory) {
		first = w->first;
		w->first = first->next;
		w->kept -= sizeof(*first) + first->len;
		w->statements -= first->statements;
		w->waits -= first->waits;
		free(first);
	}
	if (!w->first)
		w->last = &w->first;
}

/* Keep a block of @kind in memory. */
static void writer_keep(struct writer *w, enum recording_kind kind, const uint8_t *head,
			const struct encoder *events)
{
	size_t len = RECORDING_HEAD + events->len;
	struct writer_kept *kept;

	if (kind != RECORDING_START)
		writer_forget(w, sizeof(*kept) + len);
	kept = w->kept + sizeof(*kept) + len > w->memory ? NULL : malloc(sizeof(*kept) + len);
	if (!kept) {
		w->dropped++;
		return;
	}
	*kept = (struct writer_kept){
		.len = len, .statements = w->encode.statements, .waits = w->encode.waits,
	};
	memcpy(kept->data, head, RECORDING_HEAD);
	memcpy(kept->data + RECORDING_HEAD, events->data, events->len);
	if (kind == RECORDING_START) {
		w->start = kept;
		return;
	}
	*w->last = kept;
	w->last = &kept->next;
	w->kept += sizeof(*kept) + len;
	w->statements += kept->statements;
	w->waits += kept->waits;
}

/* Write head and events as one block. */
static int writer_put(struct writer *w, const uint8_t *head, struct encoder *events)
{
	size_t len = events->len;
	int err;

	/* One write(2) of both: the room for the head is made behind the events. */
	encode_bytes(events, head, RECORDING_HEAD);
	if (events->failed) {
		w->dropped++;
		return 0;
	}
	memmove(events->data + RECORDING_HEAD, events->data, len);
	memcpy(events->data, head, RECORDING_HEAD);
	err = writer_block(w, events->data, events->len);
	if (err)
		return err;
	w->statements += w->encode.statements;
	w->waits += w->encode.waits;
	return 0;
}

bool writer_due(struct writer *w, uint64_t now_ns)
{
	if (!writer_pending(w))
		return false;
	if (!w->opened_ns)
		w->opened_ns = now_ns;
	return w->encode.events.len >= WRITER_BLOCK || now_ns - w->opened_ns >= COMMIT_NS;
}

bool writer_pending(const struct writer *w)
{
	return w->encode.events.len;
}

int writer_commit(struct writer *w, enum recording_kind kind)
{
	struct encoder *events = &w->encode.events;
	uint8_t head[RECORDING_HEAD];
	int err = 0;

	/* The events before the one that did not fit are sound. */
	w->dropped += events->failed;
	events->failed = false;
	w->block.kind = kind;
	w->block.begin_ns = w->encode.begin_ns;
	w->block.end_ns = w->encode.end_ns;
	w->block.statements = (uint32_t)w->encode.statements;
	w->block.length = (uint32_t)events->len;
	w->block.crc = crc32c_of(&w->crc, events->data, events->len);
	block_write(&w->crc, &w->block, head);
	if (w->memory && (w->fd < 0 || kind == RECORDING_START))
		writer_keep(w, kind, head, events);
	if (w->fd >= 0)
		err = writer_put(w, head, events);
	if (kind == RECORDING_START)
		w->begin = w->at;
	w->block.sequence++;
	w->opened_ns = 0;
	encode_reset(&w->encode);
	return err;
}

int writer_file(struct writer *w, int fd, uint64_t limit)
{
	struct writer_kept *first;
	int err = 0;

	w->fd = fd;
	w->limit = limit;
	w->at = w->begin = w->size = w->written = 0;
	if (w->start)
		err = writer_block(w, w->start->data, w->start->len);
	w->begin = w->at;
	while (w->first) {
		first = w->first;
		w->first = first->next;
		if (!err)
			err = writer_block(w, first->data, first->len);
		free(first);
	}
	w->last = &w->first;
	w->kept = 0;
	return err;
}

void writer_no_file(struct writer *w)
{
	w->fd = -1;
	w->statements = w->waits = w->dropped = 0;
}

void writer_close(struct writer *w)
{
	w->memory = 0;
	writer_forget(w, 1);
	free(w->start);
	encode_close(&w->encode);
}
