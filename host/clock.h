/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's clocks, in nanoseconds. */
#ifndef HOST_CLOCK_H
#define HOST_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Return the time of @clock, a CLOCK_* of clock_gettime(2), in ns. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * The offset of the time namespace of process @pid, 0: this one: by how many ns its CLOCK_MONOTONIC
 * is ahead of the one that BPF programs read, negative if behind; time_namespaces(7). Return 0 if
 * it is unknown.
 */
int64_t clock_ahead(uint32_t pid);

/* Return the CLOCK_MONOTONIC that BPF programs read, in ns; @ahead is that of clock_ahead(). */
static inline uint64_t clock_kernel_ns(int64_t ahead)
{
	return clock_ns(CLOCK_MONOTONIC) - (uint64_t)ahead;
}

/* Return CLOCK_REALTIME - the CLOCK_MONOTONIC that BPF programs read, in ns; @ahead as above. */
uint64_t clock_wall_offset(int64_t ahead);

#endif
