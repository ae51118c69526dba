// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/stream.h"

#include <errno.h>

void stream_close(struct stream *stream)
{
	ringbuf_close(&stream->ring);
	perfbuf_close(&stream->perf);
}

int64_t stream_drain(struct stream *stream,
		     int (*handler)(void *arg, const void *data, size_t size), void *arg)
{
	return stream->perf.cpus ? perfbuf_drain(&stream->perf, handler, arg) :
				   ringbuf_drain(&stream->ring, handler, arg);
}

int stream_sleep(struct stream *stream)
{
	if (stream->perf.cpus)
		return perfbuf_sleep(&stream->perf) ? stream->perf.fd : -EAGAIN;
	return ringbuf_sleep(&stream->ring) ? stream->ring.map : -EAGAIN;
}
