/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The consumer's side of the BPF ring buffer, or where the kernel has none (before 5.8) of a perf
 * buffer a CPU, read where they lie.
 *
 * Programs send without a wake-up, so the consumer naps and drains; only when
 * there has been nothing for a while does it say so in struct control and
 * block: then the next record wakes it. An idle tool costs nothing, a
 * busy one is woken at most once a nap.
 *
 * Records of one thread come in the order in which they were sent, as do any two of which one was
 * sent because of the other; of others the ring keeps no order, and the perf buffers that of
 * CLOCK_MONOTONIC within one drain.
 */
#ifndef LOADER_STREAM_H
#define LOADER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;

/* A CPU's perf buffer. */
struct stream_cpu {
	int event, waker;		/* perf events; the second wakes at each of its records */
	unsigned char *page;		/* struct perf_event_mmap_page, then the data */
	uint64_t head, tail;		/* what is left of this drain, bytes since ever */
	uint64_t time_ns;		/* of the sample at ->tail */
};

struct stream {
	int fd;				/* what poll(2) waits on after stream_sleep() */
	int ring;			/* the map's descriptor, borrowed */
	uint64_t size;			/* bytes of data, a power of two; of one perf buffer */
	unsigned char *consumer;	/* the page with our position */
	const unsigned char *producer;	/* the page with the kernel's, then the data */
	struct control *control;
	unsigned char *spill;		/* a record that goes round the end is put together here */
	size_t spill_size;
	/* Perf buffers only: */
	int control_map;		/* borrowed */
	struct stream_cpu *cpus;
	uint32_t ncpus;
	uint64_t lost;			/* records that the kernel says it dropped, see below */
	int64_t ahead_ns;		/* CLOCK_MONOTONIC here, of that in the records */
};

/* Gets one record: @size bytes at @data, 8-byte aligned. Non-zero stops the drain. */
typedef int stream_handler(void *arg, const void *data, size_t size);

/*
 * Maps ring buffer map @ring of @size bytes and @control's page (an array map with BPF_F_MMAPABLE).
 * Records may be @record_max bytes at most. 0 or -errno.
 */
int stream_open(struct stream *stream, int ring, uint64_t size, int control, size_t record_max);

/* A record may have so many bytes in a perf buffer, whose sizes are of 16 bits. */
#define STREAM_PERF_RECORD_MAX	65000u

struct stream_perf {
	int ring, wakers;		/* perf event arrays with an entry for each CPU */
	int control;			/* array map of struct control; need not be mappable */
	uint64_t size;			/* bytes for each CPU: a power of two, of pages */
	size_t record_max;
	int64_t ahead_ns;		/* how much CLOCK_MONOTONIC is ahead here, in a time namespace */
};

/*
 * The same with perf buffers, one for each CPU that is online: what programs send on one that
 * comes later they find lost. Records are up to 7 bytes longer than they were sent. 0 or -errno.
 *
 * From 5.1 on (562019695119) a program is told of each record that does not fit, before it
 * never is; the kernel tells the consumer in either, but for those after which nothing fitted
 * any more. So the larger one of both numbers is the truth.
 */
int stream_open_perf(struct stream *stream, const struct stream_perf *perf);

/* Unmaps; the maps' descriptors stay. A stream that is all zero is fine. */
void stream_close(struct stream *stream);

/*
 * Hands every record that was there at the call to @handler. The bytes found waiting (in the
 * fullest of the perf buffers), or what a handler returned if it was not 0; a record that it
 * refused counts as read. 0: there was nothing.
 */
int64_t stream_drain(struct stream *stream, stream_handler *handler, void *arg);

/*
 * Asks to be woken at the next record. True: poll(2) on ->fd may block;
 * false: there are records.
 */
bool stream_sleep(struct stream *stream);

#endif
