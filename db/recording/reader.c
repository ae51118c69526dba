// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEARCH_BYTES	65536		/* read at once to find the next head */
#define BLOCKS_MAX	(1u << 24)
#define IDS_MAX		16		/* of heads in texts, that are distinguished */
#define SEARCH_LIMIT	4		/* times the file's bytes that are read for them */
#define STOP_WORK	(4u << 20)	/* bytes, after which ->stopped is asked */
#define EVENT_WORK	256		/* cost of a head, or an event beside its text, as bytes */

/* A block that is decoded. */
struct reader_lane {
	struct decode decode;
	uint8_t *bytes;			/* of its events; owned */
	size_t room;
	size_t block;			/* its index */
	bool open;			/* ->event is its next one */
	struct decode_event event;
};

/* Return whether to stop, asked after @work bytes more. */
static bool reader_stopped(struct reader *r, uint64_t work)
{
	r->work += work;
	if (r->work < STOP_WORK)
		return false;
	r->work = 0;
	return r->stopped && r->stopped(r->arg);
}

/* Read @len bytes at @offset. Return 0, or -errno; -ENODATA if the file is shorter. */
static int reader_bytes(const struct reader *r, void *data, size_t len, uint64_t offset)
{
	uint8_t *to = data;

	while (len) {
		ssize_t n = pread(r->fd, to, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENODATA;
		to += n;
		len -= (size_t)n;
		offset += (size_t)n;
	}
	return 0;
}

/* Add @block. Return 0 or -ENOMEM. */
static int reader_add(struct reader *r, const struct recording_block *block)
{
	size_t room = r->room ? 2 * r->room : 256;
	struct recording_block *blocks;

	if (r->nblocks == r->room) {
		blocks = room > BLOCKS_MAX ? NULL : realloc(r->blocks, room * sizeof(*blocks));
		if (!blocks)
			return -ENOMEM;
		r->blocks = blocks;
		r->room = room;
	}
	r->blocks[r->nblocks++] = *block;
	return 0;
}

/* Return where the bytes from @offset on that are no hole begin; @size: nowhere. */
static uint64_t reader_data(const struct reader *r, uint64_t offset, uint64_t size)
{
	off_t data = lseek(r->fd, (off_t)offset, SEEK_DATA);

	if (data >= 0)
		return (uint64_t)data;
	return errno == ENXIO ? size : offset;
}

/* Bytes of the file that were read to be searched: each only once, whatever they are. */
struct window {
	char bytes[SEARCH_BYTES];
	uint64_t offset;
	size_t len;
};

/* Fill @window with the bytes from @offset on. Return 0 or -errno. */
static int window_fill(struct window *window, struct reader *r, uint64_t offset, uint64_t size)
{
	size_t len = size - offset < SEARCH_BYTES ? size - offset : SEARCH_BYTES;
	int err = reader_stopped(r, len) ? -EINTR : reader_bytes(r, window->bytes, len, offset);

	window->len = err ? 0 : len;
	window->offset = offset;
	return err;
}

/*
 * Move *@offset to the next bytes that may be a head: of a ring, what remains of an overwritten
 * block is in between. To @size if there are none, or if the file cannot be read there. Return 0 or
 * -EINTR.
 */
static int reader_search(struct reader *r, uint64_t *offset, uint64_t size, struct window *window)
{
	const size_t magic = sizeof(RECORDING_MAGIC) - 1;
	const char *from, *found;
	uint64_t at = *offset + 1;
	size_t left;
	int err;

	for (*offset = size; at + magic <= size; at += left - (magic - 1)) {
		if (at < window->offset || at + magic > window->offset + window->len) {
			at = reader_data(r, at, size);
			if (at + magic > size)
				return 0;
			err = window_fill(window, r, at, size);
			if (err)
				return err == -EINTR ? err : 0;
		}
		from = window->bytes + (at - window->offset);
		left = window->len - (size_t)(at - window->offset);
		found = memmem(from, left, RECORDING_MAGIC, magic);
		if (found) {
			*offset = at + (size_t)(found - from);
			return 0;
		}
	}
	return 0;
}

/* Return whether @err means that there is no block, but that the file can be read. */
static bool is_damage(int err)
{
	return err == -ENODATA || err == -EBADMSG || err == -EPROTONOSUPPORT;
}

/*
 * Read the head at @offset of the @size bytes of the file. Return 0; -EFBIG if it is one whose
 * events end after the file; or another -errno, see is_damage().
 */
static int reader_head(struct reader *r, struct recording_block *block, uint64_t offset,
		       uint64_t size)
{
	uint8_t head[RECORDING_HEAD];
	int err = reader_stopped(r, EVENT_WORK) ? -EINTR :
		  reader_bytes(r, head, sizeof(head), offset);

	if (!err)
		err = block_read(&r->file.crc, block, head);
	if (err)
		return err;
	block->offset = offset;
	return block->length > size - offset - sizeof(head) ? -EFBIG : 0;
}

/* Read the events of @block. Return 0; -EBADMSG if they are damaged; -EINTR; or another -errno. */
static int lane_read(struct reader_lane *lane, struct reader *r,
		     const struct recording_block *block)
{
	uint8_t *bytes;
	int err;

	if (reader_stopped(r, block->length))
		return -EINTR;
	if (block->length > lane->room || !lane->bytes) {
		bytes = realloc(lane->bytes, block->length + 1);
		if (!bytes)
			return -ENOMEM;
		lane->bytes = bytes;
		lane->room = block->length;
	}
	err = reader_bytes(r, lane->bytes, block->length, block->offset + RECORDING_HEAD);
	if (err)
		return err == -ENODATA ? -EBADMSG : err;
	return crc32c_of(&r->file.crc, lane->bytes, block->length) == block->crc ? 0 : -EBADMSG;
}

/*
 * Find the ID of a recording without its first head: that of the blocks whose events are sound and
 * have the most bytes. A text in a damaged block may have blocks, too, but these are within it.
 */
static int reader_identify(struct reader *r, uint64_t size, struct window *window, uint64_t *id)
{
	struct { uint64_t id, bytes; } sums[IDS_MAX] = { { 0, 0 } };
	uint64_t offset = 0, read = 0, most = 0;
	struct recording_block block;
	int err, i;

	while (offset < size && read / SEARCH_LIMIT < r->bytes) {
		err = reader_head(r, &block, offset, size);
		if (!err) {
			read += block.length;
			err = lane_read(r->lanes[0], r, &block);
		}
		if (err && err != -EFBIG && !is_damage(err))
			return err;
		if (err) {
			err = reader_search(r, &offset, size, window);
			if (err)
				return err;
			continue;
		}
		for (i = 0; i < IDS_MAX - 1 && sums[i].bytes && sums[i].id != block.id; i++)
			continue;
		sums[i].bytes += sums[i].id == block.id || !sums[i].bytes ?
				 RECORDING_HEAD + block.length : 0;
		sums[i].id = block.id;
		*id = sums[i].bytes > most ? block.id : *id;
		most = sums[i].bytes > most ? sums[i].bytes : most;
		offset += RECORDING_HEAD + block.length;
	}
	return most ? 0 : -EINVAL;
}

/* Find the heads of the @size bytes of the file. Return 0 or -errno. */
static int reader_scan(struct reader *r, uint64_t size, struct window *window)
{
	struct recording_block block = { .id = 0 };
	uint64_t offset = 0, id;
	int err = reader_head(r, &block, 0, size), version = err;

	id = block.id;
	if (is_damage(err))
		err = reader_identify(r, size, window, &id);
	if (err == -EINVAL && version == -EPROTONOSUPPORT)
		return version;
	while ((!err || err == -EFBIG) && offset < size) {
		err = reader_head(r, &block, offset, size);
		if (err && err != -EFBIG && !is_damage(err))
			return err;
		/* Heads of another recording are remains of an earlier file, or texts. */
		if (!is_damage(err) && block.id != id)
			err = -EBADMSG;
		r->damage.cut |= err == -EFBIG;
		if (err) {
			err = reader_search(r, &offset, size, window);
			continue;
		}
		err = reader_add(r, &block);
		if (err)
			return err;
		offset += RECORDING_HEAD + block.length;
	}
	return err ? err : r->nblocks ? 0 : -EINVAL;
}

static int block_order(const void *a, const void *b)
{
	const struct recording_block *x = a, *y = b;

	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Put the blocks in order. */
static void reader_order(struct reader *r)
{
	struct recording_block *blocks = r->blocks;

	for (size_t i = 1; i < r->nblocks; i++)
		r->ring |= blocks[i].sequence < blocks[i - 1].sequence;
	qsort(blocks, r->nblocks, sizeof(*blocks), block_order);
	r->damage.unstarted = blocks[0].kind != RECORDING_START;
	r->damage.unended = blocks[r->nblocks - 1].kind != RECORDING_END;
	/* Events of two tracers are in the order in which they were read. */
	for (size_t i = r->nblocks; i--;) {
		uint64_t later = i + 1 < r->nblocks ? blocks[i + 1].least_ns : UINT64_MAX;

		blocks[i].least_ns = blocks[i].begin_ns < later ? blocks[i].begin_ns : later;
	}
}

/* Find what is missing. */
static void reader_check(struct reader *r)
{
	const struct recording_block *blocks = r->blocks;
	/* What follows RECORDING_START, unless it is a ring, is not a block. */
	bool gap = !r->ring && !r->file.limited && r->nblocks > 1 &&
		   blocks[1].offset != blocks[0].offset + RECORDING_HEAD + blocks[0].length;

	r->late = r->nblocks > 1 && blocks[1].sequence > blocks[0].sequence + 1 && !gap;
	/* After the start, the oldest blocks of a ring, and of memory, are not in the file. */
	for (size_t i = r->damage.unstarted || gap ? 1 : 2; i < r->nblocks; i++)
		if (blocks[i].sequence > blocks[i - 1].sequence + 1)
			r->damage.missing += blocks[i].sequence - blocks[i - 1].sequence - 1;
	/* In a ring, the block that is cut is an old one. */
	r->damage.cut &= !r->ring && !r->file.limited;
}

/* Count a block with changed bytes, once: a block may be read again. */
static void reader_broken(struct reader *r, struct recording_block *block)
{
	if (!block->broken && !r->damage.broken++)
		r->damage.offset = block->offset;
	block->broken = true;
}

/* Begin with block @i. Return 1; 0 if its bytes were changed; or -errno. */
static int lane_begin(struct reader_lane *lane, struct reader *r, size_t i)
{
	struct recording_block *block = &r->blocks[i];
	int err = lane_read(lane, r, block);

	lane->block = i;
	if (err == -EBADMSG)
		reader_broken(r, block);
	if (err)
		return err == -EBADMSG ? 0 : err;
	decode_block(&lane->decode, block, lane->bytes);
	return 1;
}

/* Decode the next event for the caller. Return 1; 0 at the end of the block; or -errno. */
static int lane_next(struct reader_lane *lane, struct reader *r)
{
	int ret;

	do {
		if (reader_stopped(r, EVENT_WORK))
			return -EINTR;
		ret = decode_next(&lane->decode, &lane->event);
		r->work += r->file.work;
		r->file.work = 0;
	} while (ret > 0 && lane->event.type == RECORDING_TYPES);
	lane->open = ret > 0;
	if (ret == -EBADMSG)
		reader_broken(r, &r->blocks[lane->block]);
	return ret == -EBADMSG ? 0 : ret;
}

/* Return a lane without a block, or NULL: all have one, or there is no memory. */
static struct reader_lane *reader_free(struct reader *r)
{
	struct reader_lane *lane;
	int i = 0;

	while (i < READER_LANES && r->lanes[i] && r->lanes[i]->open)
		i++;
	if (i == READER_LANES || r->lanes[i])
		return i == READER_LANES ? NULL : r->lanes[i];
	lane = calloc(1, sizeof(*lane));
	if (lane && decode_open(&lane->decode, &r->file)) {
		decode_close(&lane->decode);
		free(lane);
		lane = NULL;
	}
	r->lanes[i] = lane;
	return lane;
}

/*
 * Read the layout in the first block. Without the names of its members, nothing can be read: return
 * -EPROTONOSUPPORT if it is missing or damaged and no block has our names; else 0 or -errno.
 */
static int reader_layout(struct reader *r)
{
	struct reader_lane *lane = r->lanes[0];
	int ret = r->damage.unstarted ? 0 : lane_begin(lane, r, 0);
	bool sound = ret > 0;

	while (ret > 0)
		ret = lane_next(lane, r);
	if (ret)
		return ret;
	for (size_t i = 0; i < r->nblocks; i++)
		if (decode_knows(&r->file, &r->blocks[i]))
			return 0;
	/* The start alone has no members. */
	if (sound && r->nblocks == 1)
		return 0;
	r->damage.unstarted |= !sound;
	return -EPROTONOSUPPORT;
}

/*
 * Return how many bytes of the file are no hole, and up to 1 MiB more: a small file may have no
 * blocks of its own.
 */
static uint64_t reader_allocated(const struct stat *st)
{
	uint64_t bytes = (uint64_t)st->st_blocks * 512 + (1u << 20), size = (uint64_t)st->st_size;

	return bytes < size ? bytes : size;
}

int reader_open(struct reader *r, int fd, bool (*stopped)(void *arg), void *arg)
{
	struct stat st;
	struct window *window = calloc(1, sizeof(*window));
	int err;

	*r = (struct reader){ .fd = fd, .stopped = stopped, .arg = arg };
	err = decode_file_open(&r->file);
	if (!window || !reader_free(r))
		err = -ENOMEM;
	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err)
		r->bytes = reader_allocated(&st);
	if (!err)
		err = reader_scan(r, (uint64_t)st.st_size, window);
	if (!err) {
		reader_order(r);
		err = reader_layout(r);
	}
	if (!err)
		reader_check(r);
	free(window);
	return err;
}

void reader_close(struct reader *r)
{
	for (int i = 0; i < READER_LANES && r->lanes[i]; i++) {
		decode_close(&r->lanes[i]->decode);
		free(r->lanes[i]->bytes);
		free(r->lanes[i]);
	}
	decode_file_close(&r->file);
	free(r->blocks);
	*r = (struct reader){ .fd = -1 };
}

void reader_continue(struct reader *r, size_t block)
{
	for (int i = 0; i < READER_LANES && r->lanes[i]; i++)
		r->lanes[i]->open = false;
	r->last = NULL;
	r->next = block;
}

void reader_seek(struct reader *r, uint64_t ns)
{
	size_t block = 0;

	/* Blocks overlap a little in time, so that the first one that reaches @ns counts. */
	while (block < r->nblocks && r->blocks[block].end_ns < ns)
		block++;
	reader_continue(r, block);
}

/* Return the lane whose event ended first, or NULL. */
static struct reader_lane *reader_earliest(const struct reader *r)
{
	struct reader_lane *first = NULL;

	for (int i = 0; i < READER_LANES && r->lanes[i]; i++) {
		struct reader_lane *lane = r->lanes[i];

		if (lane->open && (!first || lane->event.end_ns < first->event.end_ns ||
				   (lane->event.end_ns == first->event.end_ns &&
				    lane->block < first->block)))
			first = lane;
	}
	return first;
}

/*
 * Begin with the blocks that may have an event before those at hand, as far as there are lanes.
 * Return 0 or -errno.
 */
static int reader_begin(struct reader *r)
{
	while (r->next < r->nblocks) {
		const struct reader_lane *first = reader_earliest(r);
		struct reader_lane *lane;
		int ret;

		if (first && r->blocks[r->next].least_ns >= first->event.end_ns)
			return 0;
		lane = reader_free(r);
		if (!lane)
			return first ? 0 : -ENOMEM;
		ret = lane_begin(lane, r, r->next++);
		if (ret > 0)
			ret = lane_next(lane, r);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int reader_next(struct reader *r, struct decode_event **event)
{
	int ret = r->last ? lane_next(r->last, r) : 0;

	if (ret >= 0)
		ret = reader_begin(r);
	if (ret < 0)
		return ret;
	r->last = reader_earliest(r);
	if (!r->last)
		return 0;
	*event = &r->last->event;
	return 1;
}

size_t reader_first(const struct reader *r)
{
	size_t first = r->next;

	for (int i = 0; i < READER_LANES && r->lanes[i]; i++)
		if (r->lanes[i]->open && r->lanes[i]->block < first)
			first = r->lanes[i]->block;
	return first;
}

void reader_range(const struct reader *r, uint64_t *begin_ns, uint64_t *end_ns)
{
	*begin_ns = *end_ns = 0;
	for (size_t i = 0; i < r->nblocks; i++) {
		const struct recording_block *block = &r->blocks[i];

		if (block->begin_ns && (!*begin_ns || block->begin_ns < *begin_ns))
			*begin_ns = block->begin_ns;
		if (block->end_ns > *end_ns)
			*end_ns = block->end_ns;
	}
}
