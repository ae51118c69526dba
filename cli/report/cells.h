/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The numbers behind the page, for its script, which sums up those of the time that is selected.
 * Attributes have lists of cells, each of a column, with a comma after each. A cell has lists of
 * numbers with a semicolon between, a list numbers of base 36 with a blank after each.
 */
#ifndef CLI_REPORT_CELLS_H
#define CLI_REPORT_CELLS_H

#include "cli/output.h"
#include "cli/report/state.h"

/*
 * Return the index in ->sorted of the fingerprint @hash of @engine, a name of the report;
 * REPORT_GROUPS: it is not shown.
 */
size_t report_group(const struct report *report, const char *engine, uint64_t hash);

/*
 * Return how many bits of the number of a bucket, see struct top_histogram, the page leaves out so
 * that it has a bounded size.
 */
unsigned int report_cells_shift(const struct report *report);

/*
 * Append the attribute with the calls of a group, an index in ->sorted or REPORT_GROUPS. A cell is
 * column, calls, errors, rows, ns in all, longest, shortest; part and us of each part that is not
 * 0; bucket and calls of each that is not empty.
 */
void report_cells(const struct report *report, struct output *out, size_t group);

/*
 * Append the attribute of a column with its load, part and us of each part that is not 0; and its
 * lock waits: number, ns, deadlocks, failed ones.
 */
void report_column_cell(struct output *out, const struct report_column *column);

#endif
