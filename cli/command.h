/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The commands, one file each. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/* Exit statuses, the same for all. */
#define EXIT_OK		0
#define EXIT_FAILED	1	/* it could not do its work, or lost something under --strict */
#define EXIT_USAGE	2

/* Prints statements slower than a threshold. The exit status. */
int cmd_slow(int argc, char *argv[]);

#endif
