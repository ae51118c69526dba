/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The text of --help. */
#ifndef CLI_OPTION_HELP_H
#define CLI_OPTION_HELP_H

#include "cli/command.h"
#include "cli/output.h"

/* Add the text of @command's --help. */
void help_print(const struct command *command, struct output *out);

#endif
