/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Resource limits of this process; setrlimit(2). */
#ifndef HOST_LIMITS_H
#define HOST_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Raise RLIMIT_MEMLOCK and RLIMIT_NOFILE as far as permitted. Before Linux 5.11 (97306be45fbe)
 * BPF maps and programs are charged against the former; each traced file needs several descriptors.
 * Best effort: a failure surfaces later as EPERM, ENOMEM or EMFILE.
 */
void limits_raise(void);

/*
 * Return the smallest memory limit of the control groups of this process in bytes; with @left, what
 * is left of it, as pages of files make room. UINT64_MAX: there is none, or it cannot be read.
 */
uint64_t limits_memory(bool left);

#endif
