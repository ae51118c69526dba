/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The consumer side of perf buffers, one per CPU, read in place: the fallback for kernels without a
 * BPF ring buffer.
 *
 * Source of the layout: perf_event_open(2).
 *
 * bpf_perf_event_output() fails for each record that does not fit (562019695119, 5.1), which the
 * programs count. PERF_RECORD_LOST, of which the last ones may be missing, is ignored.
 */
#ifndef LOADER_PERFBUF_H
#define LOADER_PERFBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The limit for a record in bytes: a sample's size has 16 bits. */
#define PERFBUF_RECORD_MAX	65000u

/* The buffer of one CPU. */
struct perfbuf_cpu {
	int event, waker;		/* perf events; ->waker wakes at each of its records */
	unsigned char *page;		/* struct perf_event_mmap_page, then the data; mapped */
	uint64_t head, tail;		/* positions of this drain, bytes since the opening */
	uint64_t time_ns;		/* of the sample at ->tail */
};

/* All zero is not open. */
struct perfbuf {
	int fd;				/* epoll of all buffers, for poll(2); owned */
	int control_map;		/* borrowed */
	uint64_t size;			/* bytes of data of one buffer, a power of two */
	struct perfbuf_cpu *cpus;	/* owned */
	uint32_t ncpus;
	int64_t ahead_ns;		/* see clock_ahead() */
	unsigned char *spill;		/* copy of the current record; owned */
	size_t spill_size;
};

/* Parameters of opening. The maps are borrowed. */
struct perfbuf_config {
	int ring, wakers;		/* perf event arrays, an entry per CPU */
	int control;			/* array map of struct control; need not be mappable */
	uint64_t size;			/* bytes of each buffer, a power of two of pages */
	size_t record_max;		/* bytes of a record, at most PERFBUF_RECORD_MAX */
	int64_t ahead_ns;		/* see clock_ahead() */
};

/*
 * Open a buffer for each CPU that is online; records of a CPU that comes online later are lost.
 * Records arrive with up to 7 bytes of padding. Return 0 or -errno; perfbuf_close() ends it.
 */
int perfbuf_open(struct perfbuf *perf, const struct perfbuf_config *config);

/* Close the buffers; the maps' descriptors stay open. */
void perfbuf_close(struct perfbuf *perf);

/*
 * Pass each record that was sent before the call to @handler, in the order of time, as
 * ringbuf_drain(). Return its result if not 0, or else the bytes that waited in the fullest buffer.
 */
int64_t perfbuf_drain(struct perfbuf *perf,
		      int (*handler)(void *arg, const void *data, size_t size), void *arg);

/* Request a wake-up at the next record, as ringbuf_sleep(); poll(2) on ->fd. */
bool perfbuf_sleep(struct perfbuf *perf);

#endif
