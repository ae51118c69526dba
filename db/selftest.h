/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The proof that tracing works here, without a database: the tracer is put on probes of this
 * program itself, by each way that the kernel has, and what it tells is compared with what was
 * done.
 */
#ifndef DB_SELFTEST_H
#define DB_SELFTEST_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/error.h"

struct selftest_step {
	const char *method;		/* "uprobe_multi"; static */
	const char *what;		/* "argument reading"; static */
	bool ok;
	uint64_t ns;			/* how long it took */
	char found[160];		/* what was found, good or bad */
	const struct error *error;	/* the tracer's word on a failure, or NULL */
};

/* Does it, and calls @step after each step. Whether all were good. */
bool selftest_run(void (*step)(void *arg, const struct selftest_step *step), void *arg);

#endif
