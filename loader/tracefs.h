/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Uprobes as tracefs events, each created by writing a line of text: the fallback for kernels
 * without a uprobe PMU. Such events outlive the process: they are removed explicitly, and stale
 * ones of a killed process by the next start. The kernel does not remove an event that is in use.
 *
 * Source of the formats: Documentation/trace/uprobetracer.rst and events.rst of the kernel.
 */
#ifndef LOADER_TRACEFS_H
#define LOADER_TRACEFS_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/sys.h"

/* tracefs. All zero is not open. */
struct tracefs {
	bool open;
	int dir;			/* its root directory; owned */
	uint32_t created;		/* number of events so far */
	char group[40];			/* of the events: "dbslower_PID_…" */
};

/*
 * Open tracefs, or mount a private one, and remove stale events. Return 0; -EACCES or -EPERM if
 * only the permission is missing; or -errno. tracefs_close() ends it; all zero is not open.
 */
int tracefs_open(struct tracefs *tracefs);

/* Attach @prog to site @index of @sites. Return a perf event, or -errno with no event left. */
int tracefs_attach(struct tracefs *tracefs, int prog, const struct uprobe_sites *sites,
		   uint32_t index);

/*
 * Remove the events of this program that are not in use: those of this process, and of any process
 * if none of them is attaching.
 */
void tracefs_sweep(struct tracefs *tracefs);

/* Sweep and close. */
void tracefs_close(struct tracefs *tracefs);

/*
 * Find @field, of four or eight bytes, in the record of the scheduler's @event ("sched_wakeup").
 * Store its offset in bytes, at least 8. Return the event's number, which is not 0, or -errno.
 */
int tracefs_field(const char *event, const char *field, uint64_t *offset);

/* The same for @format, the text of a format file. Return -ENOENT or -EINVAL on failure. */
int tracefs_format(const char *format, const char *field, uint64_t *offset);

/*
 * Parse a line "p:GROUP/EVENT PATH:0x…" of uprobe_events. Write "GROUP/EVENT" to @event, of @size
 * bytes, and return true if the group is this program's.
 */
bool tracefs_parse(const char *line, char *event, size_t size);

#endif
