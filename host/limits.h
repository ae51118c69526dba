/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Resource limits of this process. */
#ifndef HOST_LIMITS_H
#define HOST_LIMITS_H

/*
 * Raises as far as we may RLIMIT_MEMLOCK, which before Linux 5.11 maps and programs count against
 * (97306be45fbe), and RLIMIT_NOFILE: each file takes some. Nobody is told of a failure; what
 * does not fit says so itself.
 */
void limits_raise(void);

#endif
