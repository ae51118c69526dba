/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PID namespaces, as /proc/PID/ns/pid identifies them. */
#ifndef HOST_PID_NAMESPACE_H
#define HOST_PID_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether process @pid is in another PID namespace than @own_ino; 0 is the one that sees all. */
bool pid_namespace_is_nested(uint32_t pid, uint64_t own_ino);

/* The kernel's dev_t and the inode of the process's PID namespace. 0 or -errno. */
int pid_namespace_read(uint32_t pid, uint64_t *dev, uint64_t *ino);

/*
 * The PID namespace that /proc counts in, as above; both 0 where that is the initial one. 0, or
 * -errno where it cannot be told.
 */
int pid_namespace_own(uint64_t *dev, uint64_t *ino);

#endif
