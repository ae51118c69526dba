/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's lockdown mode; kernel_lockdown(7). */
#ifndef HOST_LOCKDOWN_H
#define HOST_LOCKDOWN_H

#include <stddef.h>

/*
 * Read the lockdown mode ("none", "integrity", "confidentiality") into the @size bytes of @mode,
 * from a private mount if securityfs is not mounted. Return 0, or -errno with an empty @mode.
 */
int lockdown_read(char *mode, size_t size);

#endif
