/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The start of each command: its streams and its command line. */
#ifndef CLI_START_H
#define CLI_START_H

#include "cli/option/option.h"

#define START_GO	-1	/* no exit status: go on */

/*
 * Open @out and @err on the standard streams, parse the command line, and answer --help and
 * --version. The options borrow @argv. Return START_GO, or the exit status after all was printed.
 */
int start_command(const struct command *command, int argc, char *argv[], struct options *options,
		  struct output *out, struct output *err);

#endif
