/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream of records that programs send: a ring buffer, or one perf buffer per CPU if the kernel
 * has no ring buffer.
 *
 * Programs send without a wake-up; the consumer sleeps for a fixed time and drains. If there were
 * no records for a while, it requests a wake-up in struct control and blocks until the next
 * record. Thus an idle tool costs nothing, and a busy one is woken at most once an interval.
 *
 * The order is kept between records of one thread, and between a record and one that it caused. The
 * ring buffer guarantees no other order; perf buffers are merged by CLOCK_MONOTONIC within a drain.
 */
#ifndef LOADER_STREAM_H
#define LOADER_STREAM_H

#include "loader/perfbuf.h"
#include "loader/ringbuf.h"

/* One of the two is open. All zero is not open. */
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
