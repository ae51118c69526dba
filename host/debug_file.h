/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Separate debug files, in which the symbols of a stripped program or library are. */
#ifndef HOST_DEBUG_FILE_H
#define HOST_DEBUG_FILE_H

#include "host/file.h"
#include "usdt/elf.h"

/*
 * Open the debug file of @elf, the contents of @file: by its build ID below /usr/lib/debug, or by
 * the name in its section .gnu_debuglink beside it, below .debug there, or below /usr/lib/debug;
 * first in the mount namespace of the process that maps the file, if any. Only a file of the same
 * build ID counts that belongs to root or to the owner of @file, and that no other user may write.
 * Return a descriptor, owned by the caller, or -ENOENT.
 */
int debug_file_open(const struct file *file, const struct elf *elf);

#endif
