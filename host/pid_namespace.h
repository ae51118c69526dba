/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PID namespaces, identified by device and inode of /proc/PID/ns/pid; pid_namespaces(7). */
#ifndef HOST_PID_NAMESPACE_H
#define HOST_PID_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Return whether process @pid is in a PID namespace other than @own_ino; always false if @own_ino
 * is 0, the initial one.
 */
bool pid_namespace_is_nested(uint32_t pid, uint64_t own_ino);

/*
 * Read the PID namespace of process @pid: *@dev in the kernel's encoding (20 bits for the minor
 * number), and *@ino. Return 0 or -errno.
 */
int pid_namespace_read(uint32_t pid, uint64_t *dev, uint64_t *ino);

/*
 * Read the PID namespace that the PIDs of /proc refer to; both results are 0 if it is the initial
 * one. Return 0, or -errno if it is unknown.
 */
int pid_namespace_own(uint64_t *dev, uint64_t *ino);

#endif
