/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's clocks in ns. */
#ifndef HOST_CLOCK_H
#define HOST_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * How much CLOCK_MONOTONIC is ahead here of that of BPF programs, ns: in a time namespace it is, or
 * behind if negative. 0 where that cannot be told.
 */
int64_t clock_ahead(void);

/* That of BPF programs, now; @ahead as above. */
static inline uint64_t clock_kernel_ns(int64_t ahead)
{
	return clock_ns(CLOCK_MONOTONIC) - (uint64_t)ahead;
}

#endif
