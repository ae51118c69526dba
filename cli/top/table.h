/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of top that is not interactive, as text or JSON. */
#ifndef CLI_TOP_TABLE_H
#define CLI_TOP_TABLE_H

#include "cli/format/server_set.h"
#include "cli/option/option.h"
#include "db/count/top.h"
#include "db/event.h"

/* ->out, ->options and ->servers are borrowed. */
struct top_table {
	struct output *out;
	const struct options *options;
	uint64_t limit;			/* groups to print; 0: as many as fit */
	bool delta;			/* counts of each interval, not since the start */
	const struct server_set *servers;
	unsigned int width, height;	/* of the terminal; 0: not a terminal */
	uint64_t interval;		/* number of this table */
	uint64_t folded;		/* fingerprints in "other" */
	/* Set by top_table_begin(): */
	uint64_t wall_ns;		/* CLOCK_REALTIME */
	unsigned int running;		/* statements printed by top_table_running() */
	uint32_t columns;		/* that fit, bits by index */
};

/* Return the number of groups to print as text. */
size_t top_table_lines(const struct top_table *table);

/* Start a table of the statements of the last @span_ns. */
void top_table_begin(struct top_table *table, uint64_t span_ns);

/* Print a group, with @text in place of its fingerprint. */
void top_table_group(struct top_table *table, const struct top_entry *entry, const char *text);

/* Print a running statement, if it has been running for a second. */
void top_table_running(struct top_table *table, const struct statement *statement);

#endif
