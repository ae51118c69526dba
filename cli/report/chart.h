/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The charts over time of a report, and the small ones in its tables. */
#ifndef CLI_REPORT_CHART_H
#define CLI_REPORT_CHART_H

#include "cli/output.h"
#include "cli/report/state.h"

/* Append the heat map: statements by the time they ended and by duration. */
void report_heat(const struct report *report, struct output *out);

/* Append the load: statements that ran at a time, on average, by part. */
void report_load(const struct report *report, struct output *out);

/* Append a list of the parts that occur, with their colours; @total_ns is that of all. */
void report_legend(const struct report *report, struct output *out, uint64_t total_ns);

/* Append a bar of the parts in @ns. */
void report_bar(struct output *out, const __u64 ns[BREAKDOWN_PARTS]);

/* Append the calls and their mean duration over time, of a group as that of report_cells(). */
void report_sparkline(const struct report *report, struct output *out, size_t group);

/* Return the name of a part; static. */
const char *report_part_name(unsigned int part);

/* Append @ms since 1970 as a time of day, and with the date if @date, in UTC. */
void report_time(struct output *out, uint64_t wall_ns, bool date);

/* Append a duration with three digits. */
void report_duration(struct output *out, uint64_t ns);

#endif
