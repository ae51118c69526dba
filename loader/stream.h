/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records that programs send: from a ring buffer, or from one perf buffer per CPU where the
 * kernel has no ring buffer.
 *
 * Programs send without a wake-up, so the consumer sleeps for a fixed time and drains. Only after
 * there was nothing for a while does it say so in struct control and block: then the next record
 * wakes it. An idle tool costs nothing, a busy one is woken at most once an interval.
 *
 * Records of one thread arrive in the order in which they were sent, as do any two of which one was
 * sent because of the other. The ring keeps no order among others; the perf buffers keep that of
 * CLOCK_MONOTONIC within one drain.
 */
#ifndef LOADER_STREAM_H
#define LOADER_STREAM_H

#include "loader/perfbuf.h"
#include "loader/ringbuf.h"

/* One of both is open; all zero is not open. */
struct stream {
	struct ringbuf ring;
	struct perfbuf perf;
};

/* Close what is open. */
void stream_close(struct stream *stream);

/* Pass each waiting record to @handler; see ringbuf_drain() and perfbuf_drain(). */
int64_t stream_drain(struct stream *stream,
		     int (*handler)(void *arg, const void *data, size_t size), void *arg);

/*
 * Request a wake-up at the next record. Return the descriptor that becomes readable with it, or
 * -EAGAIN if there are records.
 */
int stream_sleep(struct stream *stream);

#endif
