/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sessions at a moment that the reader of a report chooses, which report.js draws. */
#ifndef CLI_REPORT_MOMENT_H
#define CLI_REPORT_MOMENT_H

#include "cli/output.h"
#include "cli/report/state.h"

/* Append the controls, and all marks as numbers. The axis must be set. */
void report_moment(const struct report *report, struct output *out);

#endif
