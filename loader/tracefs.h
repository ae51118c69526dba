/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records of the scheduler's tracepoints, as tracefs describes them.
 *
 * Source of the format: Documentation/trace/events.rst of the kernel.
 */
#ifndef LOADER_TRACEFS_H
#define LOADER_TRACEFS_H

#include <stdint.h>

/*
 * Find @field, of four or eight bytes, in the record of the scheduler's @event ("sched_wakeup").
 * Store its offset in bytes, at least 8. Return the event's number, which is not 0, or -errno.
 */
int tracefs_field(const char *event, const char *field, uint64_t *offset);

/* The same for @format, the text of a format file. Return -ENOENT or -EINVAL on failure. */
int tracefs_format(const char *format, const char *field, uint64_t *offset);

#endif
