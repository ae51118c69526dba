/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rules between options. */
#ifndef CLI_OPTION_CHECK_H
#define CLI_OPTION_CHECK_H

#include "cli/option/option.h"

/*
 * Parse the command line of @command into @opts, as option_read(), set the defaults, and check the
 * rules between options. Return 0, or -EINVAL after a message on @err.
 */
int option_parse(const struct command *command, int argc, char *const argv[],
		 struct options *opts, struct output *err);

#endif
