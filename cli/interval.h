/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands that print what they read once, or again at an interval. */
#ifndef CLI_INTERVAL_H
#define CLI_INTERVAL_H

#include "cli/option/option.h"

#define INTERVAL_GO	-1	/* no exit status: read again, if that is asked for */
#define INTERVAL_ENDED	-2	/* the same: the reader has closed the output */

/* Flush what was printed. Return one of these, or the exit status after a message on @err. */
int interval_flush(struct output *out, struct output *err);

/*
 * Call @once, and, with ->interval_ns of @options, again at that interval, as often and for as long
 * as they say, until it returns something else than INTERVAL_GO. Return the exit status.
 */
int interval_repeat(const struct options *options, int (*once)(void *arg), void *arg);

#endif
