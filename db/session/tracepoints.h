/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs on the kernel's tracepoints: threads, executions, and the time breakdown. */
#ifndef DB_SESSION_TRACEPOINTS_H
#define DB_SESSION_TRACEPOINTS_H

#include "loader/runtime.h"

enum {
	TRACEPOINT_SWITCH = 4, TRACEPOINT_CALL = 8, TRACEPOINT_SENT, TRACEPOINT_RECEIVED,
	TRACEPOINTS,
};

/* Declare the constants that tracepoints_attach() sets. */
void tracepoints_constants(struct runtime *rt);

/*
 * Attach the programs until runtime_detach(): with @why those of the time breakdown, which
 * runtime_pause() detaches, and with @use those of resource usage. @events has the IDs of tracefs
 * events; 0: raw tracepoint. Return 0, or -errno with the cause in @error.
 */
int tracepoints_attach(struct runtime *rt, const int events[TRACEPOINTS], bool why, bool use,
		       struct error *error);

#endif
