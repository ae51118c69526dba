// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/stream.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/event.h"

/*
 * The data are mapped once, not twice in a row as the kernel would allow: its pages count
 * as ours as often as they are mapped, and putting a record together once a
 * lap costs less.
 */
int stream_open(struct stream *stream, int ring, uint64_t size, int control, size_t record_max)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p;
	int err;

	*stream = (struct stream){ .ring = ring, .size = size, .spill_size = record_max };
	stream->spill = malloc(record_max);
	if (!stream->spill)
		return -ENOMEM;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
	if (p == MAP_FAILED)
		goto fail;
	stream->consumer = p;
	p = mmap(NULL, page + size, PROT_READ, MAP_SHARED, ring, (off_t)page);
	if (p == MAP_FAILED)
		goto fail;
	stream->producer = p;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, control, 0);
	if (p == MAP_FAILED)
		goto fail;
	stream->control = p;
	return 0;
fail:
	err = -errno;
	stream_close(stream);
	return err;
}

void stream_close(struct stream *stream)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (stream->control)
		munmap(stream->control, page);
	if (stream->producer)
		munmap((void *)(uintptr_t)stream->producer, page + stream->size);
	if (stream->consumer)
		munmap(stream->consumer, page);
	free(stream->spill);
	*stream = (struct stream){ .ring = -1 };
}

static uint64_t stream_position(const unsigned char *page)
{
	return __atomic_load_n((const uint64_t *)(const void *)page, __ATOMIC_ACQUIRE);
}

static const unsigned char *stream_data(const struct stream *stream, uint64_t position)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return stream->producer + page + (position & (stream->size - 1));
}

/* @size bytes at @position, in one piece. NULL: more than any record has. */
static const void *stream_record(struct stream *stream, uint64_t position, size_t size)
{
	uint64_t to_end = stream->size - (position & (stream->size - 1));

	if (size > stream->spill_size)
		return NULL;
	if (size <= to_end)
		return stream_data(stream, position);
	memcpy(stream->spill, stream_data(stream, position), to_end);
	memcpy(stream->spill + to_end, stream_data(stream, position + to_end), size - to_end);
	return stream->spill;
}

int64_t stream_drain(struct stream *stream, stream_handler *handler, void *arg)
{
	uint64_t start = stream_position(stream->consumer), position = start;
	uint64_t end = stream_position(stream->producer);
	int stop = 0;

	while (!stop && position < end) {
		uint32_t head = __atomic_load_n(
			(const uint32_t *)(const void *)stream_data(stream, position),
			__ATOMIC_ACQUIRE);
		uint32_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		const void *record;

		if (head & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			record = stream_record(stream, position + BPF_RINGBUF_HDR_SZ, size);
			stop = record ? handler(arg, record, size) : 0;
		}
		position += (BPF_RINGBUF_HDR_SZ + (uint64_t)size + 7) & ~7ULL;
		__atomic_store_n((uint64_t *)(void *)stream->consumer, position, __ATOMIC_RELEASE);
	}
	return stop ? stop : (int64_t)(position - start);
}

bool stream_sleep(struct stream *stream)
{
	__atomic_store_n(&stream->control->asleep, 1, __ATOMIC_SEQ_CST);
	return stream_position(stream->consumer) == stream_position(stream->producer);
}
