/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The consumer side of a BPF ring buffer (457f44363a88, Linux 5.8), read in place.
 *
 * Source of the layout: Documentation/bpf/ringbuf.rst of the kernel.
 */
#ifndef LOADER_RINGBUF_H
#define LOADER_RINGBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;

/* All zero is not open. */
struct ringbuf {
	int map;			/* its descriptor; borrowed */
	uint64_t size;			/* bytes of data, a power of two */
	unsigned char *consumer;	/* the mapped page with our position */
	const unsigned char *producer;	/* the mapped page with the kernel's, then the data */
	struct control *control;	/* mapped */
	unsigned char *spill;		/* room for a record that wraps around; owned */
	size_t spill_size;
};

/*
 * Map ring buffer @map of @size bytes and the page of @control, an array map with BPF_F_MMAPABLE.
 * No record is longer than @record_max bytes. Return 0 or -errno; ringbuf_close() ends it.
 */
int ringbuf_open(struct ringbuf *ring, int map, uint64_t size, int control, size_t record_max);

/* Unmap everything and free the spill; the maps' descriptors stay open. */
void ringbuf_close(struct ringbuf *ring);

/*
 * Pass each record that was in the buffer at the call to @handler: @size bytes at @data, 8-byte
 * aligned. A handler's result other than 0 stops the drain; its record counts as read. Return that
 * result, or how many bytes were waiting.
 */
int64_t ringbuf_drain(struct ringbuf *ring,
		      int (*handler)(void *arg, const void *data, size_t size), void *arg);

/*
 * Request a wake-up at the next record. Return true if poll(2) on ->map may block, or false if
 * there are records.
 */
bool ringbuf_sleep(struct ringbuf *ring);

#endif
