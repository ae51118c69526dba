/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pages that a process executes. Uprobes are on those of a file: a program that has moved its
 * code to others, to have huge pages, does not hit them.
 */
#ifndef HOST_PROCESS_CODE_H
#define HOST_PROCESS_CODE_H

#include "host/process.h"

/*
 * Return how many of the @count offsets in @process->file, bytes, are not in an executable mapping
 * of that file, by ->exe or ->file, in the process. 0 if it maps no part of the file, which it may
 * load later, or too many. Or return -errno if its mappings cannot be read.
 */
ssize_t process_code_moved(const struct process *process, const uint64_t *offsets, size_t count);

/* Return for how many ns process @pid has existed, or -errno. execve(2) does not count. */
int64_t process_age_ns(uint32_t pid);

#endif
