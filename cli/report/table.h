/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of a report. report.js sorts and filters them by their data-* attributes. */
#ifndef CLI_REPORT_TABLE_H
#define CLI_REPORT_TABLE_H

#include "cli/output.h"
#include "cli/report/state.h"

/* Append a table with its heading row. */
void report_table_servers(const struct report *report, struct output *out);
void report_table_losses(const struct report *report, struct output *out);
void report_table_intervals(const struct report *report, struct output *out);
void report_table_groups(const struct report *report, struct output *out);
void report_table_statements(const struct report *report, struct output *out);
void report_table_waits(const struct report *report, struct output *out);

/* Append @text, and "..." if it is cut; "unknown" if it is not known. */
void report_text(struct output *out, const struct report_text *text);

#endif
