/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The names of the system calls of this architecture. */
#ifndef HOST_SYSCALL_H
#define HOST_SYSCALL_H

#include <stdbool.h>
#include <stdint.h>

#define SYSCALL_NAME	32	/* bytes of a name, with its NUL */
#define SYSCALL_MAX	512	/* numbers are lower */

/* Write the name of system call @number to @name. Return false if it has none. */
bool syscall_name(uint32_t number, char name[SYSCALL_NAME]);

/* Find the system call with @name. Return false if there is none; *@number is then undefined. */
bool syscall_number(const char *name, uint32_t *number);

#endif
