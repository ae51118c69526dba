/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Uprobes as events that tracefs makes of a line of text: the way before there was a PMU for them.
 * Such events do not go with us: they are removed by hand, and those that a killed process of
 * this program left are removed by the next one. The kernel removes none that is in use.
 */
#ifndef LOADER_TRACEFS_H
#define LOADER_TRACEFS_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/sys.h"

struct tracefs {
	bool open;
	int dir;			/* its root */
	uint32_t made;			/* events so far */
	char group[40];			/* theirs: "dbslower_PID_…" */
};

/*
 * Opens tracefs, where it is not mounted a private one, and removes what was left. 0, or -errno:
 * -EACCES or -EPERM where only the right to it is missing.
 * tracefs_close() ends it; all zero is not open.
 */
int tracefs_open(struct tracefs *tracefs);

/* Attaches @prog to site @index of @sites: a perf event's descriptor, or -errno and no event. */
int tracefs_attach(struct tracefs *tracefs, int prog, const struct uprobe_sites *sites,
		   uint32_t index);

/* Removes the events of this program, of this process and others, that are not in use. */
void tracefs_sweep(struct tracefs *tracefs);

/* Sweeps and closes. */
void tracefs_close(struct tracefs *tracefs);

/*
 * Where the record of @event, "sched_wakeup" of the scheduler's, has @field of four or eight bytes:
 * its offset in bytes, from 8 on. The event's number, which is not 0, or -errno.
 */
int tracefs_field(const char *event, const char *field, uint64_t *offset);

/* The same of @format, the text in which the kernel describes that record. -ENOENT or -EINVAL. */
int tracefs_format(const char *format, const char *field, uint64_t *offset);

/*
 * Writes "GROUP/EVENT" of line "p:GROUP/EVENT PATH:0x…" of uprobe_events to @event where the
 * group is this program's. Whether it is.
 */
bool tracefs_parse(const char *line, char *event, size_t size);

#endif
