/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page of a report: its head and its sections. */
#ifndef CLI_REPORT_PAGE_H
#define CLI_REPORT_PAGE_H

#include "cli/output.h"
#include "cli/report/state.h"

/*
 * The sources of the page's style and script, and the content of its Content-Security-Policy, with
 * their hashes; the Makefile generates them from report.css and report.js.
 */
extern const char *const report_css, *const report_js, *const report_policy;

/* Append the page. */
void report_page(const struct report *report, struct output *out);

#endif
