/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CPU architecture that this program is built for: the only place that asks the compiler for it.
 * What is true of an architecture's ELF files on any host is in usdt/arch.h.
 */
#ifndef HOST_ARCH_H
#define HOST_ARCH_H

#include <elf.h>
#include <linux/audit.h>

/*
 * HOST_ELF_MACHINE: e_machine of the programs that run here.
 * HOST_AUDIT_ARCH: struct seccomp_data's arch, linux/audit.h.
 * HOST_MULTIARCH: Debian's directory of libraries.
 * HOST_CACHE_FLAGS: glibc's flags of this architecture's libraries in ld.so.cache, dl-cache.h.
 * HOST_SYSCALL_REGISTER: the member of struct pt_regs with the number of the system call.
 * HOST_OLD_SYSCALLS: it has open(2), poll(2) and the like beside openat(2), ppoll(2).
 */
#if defined(__x86_64__)
#define HOST_ELF_MACHINE	EM_X86_64
#define HOST_AUDIT_ARCH		AUDIT_ARCH_X86_64
#define HOST_MULTIARCH		"x86_64-linux-gnu"
#define HOST_CACHE_FLAGS	0x0303
#define HOST_SYSCALL_REGISTER	"orig_ax"
#define HOST_OLD_SYSCALLS	1
#elif defined(__aarch64__)
#define HOST_ELF_MACHINE	EM_AARCH64
#define HOST_AUDIT_ARCH		AUDIT_ARCH_AARCH64
#define HOST_MULTIARCH		"aarch64-linux-gnu"
#define HOST_CACHE_FLAGS	0x0a03
#define HOST_SYSCALL_REGISTER	"syscallno"
#define HOST_OLD_SYSCALLS	0
#else
#error "this CPU architecture is not supported: add it here and to usdt/arch.h"
#endif

#endif
