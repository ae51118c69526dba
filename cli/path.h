/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The search for a program as a shell does it. */
#ifndef CLI_PATH_H
#define CLI_PATH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Write the path of the executable file @name in the first directory of @path that has one: a list
 * separated by ':', as in PATH. Return false if none has, if @name contains a '/', or if the path
 * needs more than @size bytes. An empty or relative directory is skipped.
 */
bool path_search(const char *path, const char *name, char *buf, size_t size);

#endif
