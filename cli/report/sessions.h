/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sessions that waited for each other, of the lock waits and statements that a report has kept. */
#ifndef CLI_REPORT_SESSIONS_H
#define CLI_REPORT_SESSIONS_H

#include "cli/output.h"
#include "cli/report/state.h"

/* Append the name of a session: "pid 12". */
void report_session(struct output *out, const struct report_session *session);

/* Append the sessions over the time of @around and a bit more, one line each. */
void report_timeline(const struct report *report, struct output *out,
		     const struct report_kept *around);

void report_timeline_legend(struct output *out);

/* Append the graph of lock waits: an arrow from each waiter to each holder. */
void report_graph(const struct report *report, struct output *out);

#endif
