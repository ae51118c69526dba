/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The candidates for completion.*: "dbslower --complete WORD...", not listed by --help. */
#ifndef CLI_OPTION_COMPLETE_H
#define CLI_OPTION_COMPLETE_H

#include <stdbool.h>

/* Return true if @argv asks for completion. */
bool complete_is_asked(int argc, char *const argv[]);

/*
 * Print candidates for the last of the words after --complete, of which the first is the program's
 * name, one or more a line and not filtered by what has been typed; a description follows a tab.
 * Instead of words there are ":files", ":pids" (of servers) and ":probes" (of the files in the
 * words); ":list" means that they are separated by commas. Return the exit status.
 */
int complete_run(int argc, char *const argv[]);

#endif
