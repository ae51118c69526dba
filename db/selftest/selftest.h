/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/selftest/: this program as a server of its own: two probes, traced by every method that the
 * kernel supports.
 * It needs no database.
 */

/*
 * Self-test: trace the probes of this program itself, without a database, by each method that the
 * kernel supports, and compare the reported statements with the executed ones.
 */
#ifndef DB_SELFTEST_SELFTEST_H
#define DB_SELFTEST_SELFTEST_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/error.h"

/* The result of a step. */
struct selftest_step {
	const char *method;		/* "uprobe_multi"; static */
	const char *what;		/* "argument reading"; static */
	bool ok;
	/* Not NULL: failed, but tracing on this host uses this method instead; static. */
	const char *instead;
	uint64_t ns;			/* duration */
	char found[160];		/* the result in words */
	const struct error *error;	/* the tracer's error, or NULL; borrowed for the call */
};

/*
 * Run all steps, and call @step after each. A fallback that this process may not use is not a
 * failure. Return whether all succeeded.
 */
bool selftest_run(void (*step)(void *arg, const struct selftest_step *step), void *arg);

#endif
