/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef HOST_LOCKDOWN_H
#define HOST_LOCKDOWN_H

#include <stddef.h>

/*
 * Copies what the kernel is locked down to ("none", "integrity", "confidentiality") to @mode of @size
 * bytes. Where securityfs is not mounted, a private mount tells. 0, or -errno and "".
 */
int lockdown_read(char *mode, size_t size);

#endif
