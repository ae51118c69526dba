/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The consumer's side of the BPF ring buffer, read where it lies.
 *
 * Programs send without a wake-up, so the consumer naps and drains; only when
 * there has been nothing for a while does it say so in struct control and
 * block: then the next record wakes it. An idle tool costs nothing, a
 * busy one is woken at most once a nap.
 */
#ifndef LOADER_STREAM_H
#define LOADER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;

struct stream {
	int ring;			/* the map's descriptor, borrowed */
	uint64_t size;			/* bytes of data, a power of two */
	unsigned char *consumer;	/* the page with our position */
	const unsigned char *producer;	/* the page with the kernel's, then the data */
	struct control *control;
	unsigned char *spill;		/* a record that goes round the end is put together here */
	size_t spill_size;
};

/* Gets one record: @size bytes at @data, 8-byte aligned. Non-zero stops the drain. */
typedef int stream_handler(void *arg, const void *data, size_t size);

/*
 * Maps ring buffer map @ring of @size bytes and @control's page (an array map with BPF_F_MMAPABLE).
 * Records may be @record_max bytes at most. 0 or -errno.
 */
int stream_open(struct stream *stream, int ring, uint64_t size, int control, size_t record_max);

/* Unmaps; the descriptors stay. A stream that is all zero is fine. */
void stream_close(struct stream *stream);

/*
 * Hands every record that is there to @handler. The bytes found waiting, or
 * what a handler returned if it was not 0; a record that it refused counts as read.
 */
int64_t stream_drain(struct stream *stream, stream_handler *handler, void *arg);

/*
 * Asks to be woken at the next record. True: poll(2) on ->ring may block;
 * false: there are records.
 */
bool stream_sleep(struct stream *stream);

#endif
