/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What was seen, and what was lost of it. */
#ifndef DB_LOSS_H
#define DB_LOSS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/owners.h"

struct target;

/* Counts since the start of statements and losses. JSON has the same names. */
struct summary {
	uint64_t statements, printed;
	uint64_t ring_full, table_full, start_without_end, end_without_start, who_unknown;
	uint64_t text_unreadable, text_truncated;
	uint64_t value_unreadable, undecided;	/* of the command trace */
	/* For the overhead limit: left out of those printed; time without probes. */
	uint64_t text_dropped, why_dropped, untraced_ns;
	uint64_t boundary;	/* statements that ran when tracing began or ended: not a loss */
	const char *printed_noun;	/* unit of ->printed, "waits"; NULL: as ->statements */
	struct owners_report users;	/* losses by the user of the traced process */
	struct owners_report servers;	/* by this and by its file; not of the command trace */
	struct target *targets;	/* for target_by_id(), borrowed; NULL: ->servers is empty */
	size_t ntargets;
};

#endif
