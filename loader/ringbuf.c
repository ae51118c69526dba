// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/ringbuf.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/event.h"

/*
 * Map the data once, not twice in a row as the kernel would allow: its pages count as resident
 * memory of ours as often as they are mapped, and copying one record per lap costs less.
 */
int ringbuf_open(struct ringbuf *ring, int map, uint64_t size, int control, size_t record_max)
{
	size_t page = (size_t)getauxval(AT_PAGESZ);
	void *p;
	int err;

	*ring = (struct ringbuf){ .map = map, .size = size, .spill_size = record_max };
	ring->spill = malloc(record_max);
	if (!ring->spill)
		return -ENOMEM;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	if (p == MAP_FAILED)
		goto fail;
	ring->consumer = p;
	p = mmap(NULL, page + size, PROT_READ, MAP_SHARED, map, (off_t)page);
	if (p == MAP_FAILED)
		goto fail;
	ring->producer = p;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, control, 0);
	if (p == MAP_FAILED)
		goto fail;
	ring->control = p;
	return 0;
fail:
	err = -errno;
	ringbuf_close(ring);
	return err;
}

void ringbuf_close(struct ringbuf *ring)
{
	size_t page = (size_t)getauxval(AT_PAGESZ);

	if (ring->control)
		munmap(ring->control, page);
	if (ring->producer)
		munmap((void *)(uintptr_t)ring->producer, page + ring->size);
	if (ring->consumer)
		munmap(ring->consumer, page);
	free(ring->spill);
	*ring = (struct ringbuf){ .map = -1 };
}

static uint64_t ringbuf_position(const unsigned char *page)
{
	return __atomic_load_n((const uint64_t *)(const void *)page, __ATOMIC_ACQUIRE);
}

static const unsigned char *ringbuf_data(const struct ringbuf *ring, uint64_t position)
{
	size_t page = (size_t)getauxval(AT_PAGESZ);

	return ring->producer + page + (position & (ring->size - 1));
}

/* Return @size bytes at @position in one piece, or NULL if no record is that long. */
static const void *ringbuf_record(struct ringbuf *ring, uint64_t position, size_t size)
{
	uint64_t to_end = ring->size - (position & (ring->size - 1));

	if (size > ring->spill_size)
		return NULL;
	if (size <= to_end)
		return ringbuf_data(ring, position);
	memcpy(ring->spill, ringbuf_data(ring, position), to_end);
	memcpy(ring->spill + to_end, ringbuf_data(ring, position + to_end), size - to_end);
	return ring->spill;
}

int64_t ringbuf_drain(struct ringbuf *ring,
		      int (*handler)(void *arg, const void *data, size_t size), void *arg)
{
	uint64_t start = ringbuf_position(ring->consumer), position = start;
	uint64_t end = ringbuf_position(ring->producer);
	int stop = 0;

	while (!stop && position < end) {
		uint32_t head = __atomic_load_n(
			(const uint32_t *)(const void *)ringbuf_data(ring, position),
			__ATOMIC_ACQUIRE);
		uint32_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		const void *record;

		if (head & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			record = ringbuf_record(ring, position + BPF_RINGBUF_HDR_SZ, size);
			stop = record ? handler(arg, record, size) : 0;
		}
		position += (BPF_RINGBUF_HDR_SZ + (uint64_t)size + 7) & ~7ULL;
		__atomic_store_n((uint64_t *)(void *)ring->consumer, position, __ATOMIC_RELEASE);
	}
	return stop ? stop : (int64_t)(position - start);
}

bool ringbuf_sleep(struct ringbuf *ring)
{
	__atomic_store_n(&ring->control->asleep, 1, __ATOMIC_SEQ_CST);
	return ringbuf_position(ring->consumer) == ringbuf_position(ring->producer);
}
