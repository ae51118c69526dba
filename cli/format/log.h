/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Statements in the formats of servers' logs, for the programs that analyze those.
 *
 * A server writes a statement as it is, so that its text can imitate entries of other sessions.
 * Here each line of a text begins with a tab, and is escaped as for a terminal; names contain
 * letters, digits, "_", "-", "." and escaped bytes.
 */
#ifndef CLI_FORMAT_LOG_H
#define CLI_FORMAT_LOG_H

#include "cli/output.h"
#include "db/event.h"

struct format_log {
	const char *name;		/* for --format; NULL: the end of the table */
	/* Append the entry of a statement that has ended. */
	void (*statement)(struct output *out, const struct statement *st);
};

extern const struct format_log format_logs[];

#endif
