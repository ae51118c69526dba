/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CPU architecture that this program is built for. No other file tests the compiler's
 * architecture macros. Properties of an architecture's ELF files, on any host: usdt/arch.h.
 */
#ifndef HOST_ARCH_H
#define HOST_ARCH_H

#include <elf.h>
#include <linux/audit.h>

/*
 * HOST_ELF_MACHINE: e_machine of native programs.
 * HOST_ELF_COMPAT: e_machine of 32-bit programs in which the kernel supports uprobes, with the
 * native struct pt_regs; EM_NONE: it supports none.
 * HOST_AUDIT_ARCH: ->arch of struct seccomp_data; linux/audit.h.
 * HOST_MULTIARCH: Debian's multiarch library directory.
 * HOST_LOADERS: file names of the dynamic loaders of glibc and musl.
 * HOST_CACHE_FLAGS: flags of native libraries in ld.so.cache; glibc's sysdeps/generic/ldconfig.h.
 * HOST_SYSCALL_REGISTER: the member of struct pt_regs that contains the system call number.
 * HOST_ARGUMENT_OFFSET: offset of a system call's first argument in struct pt_regs.
 * HOST_CAUSE_OFFSET: offset of the exception's number in struct pt_regs, if HOST_SYSCALL_REGISTER
 * is valid only for that of a system call; 0: outside of system calls that register is -1.
 * HOST_OLD_SYSCALLS: 1 if open(2), poll(2) and the like exist beside openat(2) and ppoll(2).
 * HOST_UPROBE_CALLS: 1 if the kernel may have a traced program make system calls, uprobe(2) and
 * uretprobe(2), in place of breakpoints; loader/hazard.c.
 * HOST_STACK_REGISTER: the operand that is the stack pointer.
 * HOST_RETURN_ADDRESS: the operand that is the return address at a function's start.
 * HOST_RETURN_BYTES: by which it is higher after a return than at the function's start.
 * HOST_KEPT(ROW): ROW(n, specification) for n from 0 to 9: registers that a call keeps, or NULL.
 * HOST_JIT_HELPERS: 1 if the kernel's JIT compiler implements some BPF helpers.
 * HOST_OPERAND64, HOST_OPERAND32, HOST_OPERAND_MEMORY: operand NAME of an asm statement that is in
 * a register, as a USDT note has it: 8 bytes, 4 bytes, the memory that it points to.
 */
#if defined(__x86_64__)
#define HOST_ELF_MACHINE	EM_X86_64
#define HOST_ELF_COMPAT		EM_386
#define HOST_AUDIT_ARCH		AUDIT_ARCH_X86_64
#define HOST_MULTIARCH		"x86_64-linux-gnu"
#define HOST_LOADERS		"ld-linux-x86-64.so.2", "ld-musl-x86_64.so.1"
#define HOST_CACHE_FLAGS	0x0303
#define HOST_SYSCALL_REGISTER	"orig_ax"
#define HOST_ARGUMENT_OFFSET	112
#define HOST_CAUSE_OFFSET	0
#define HOST_OLD_SYSCALLS	1
#define HOST_UPROBE_CALLS	1
#define HOST_STACK_REGISTER	"%rsp"
#define HOST_RETURN_ADDRESS	"0(%rsp)"
#define HOST_RETURN_BYTES	8
#define HOST_KEPT(ROW) \
	ROW(0, "8@%rbx") ROW(1, "8@%rbp") ROW(2, "8@%r12") ROW(3, "8@%r13") ROW(4, "8@%r14") \
	ROW(5, "8@%r15") ROW(6, NULL) ROW(7, NULL) ROW(8, NULL) ROW(9, NULL)
#define HOST_JIT_HELPERS	0
#define HOST_OPERAND64(name)	"%[" name "]"
#define HOST_OPERAND32(name)	"%k[" name "]"
#define HOST_OPERAND_MEMORY(name)	"(%[" name "])"
#elif defined(__aarch64__)
#define HOST_ELF_MACHINE	EM_AARCH64
#define HOST_ELF_COMPAT		EM_NONE
#define HOST_AUDIT_ARCH		AUDIT_ARCH_AARCH64
#define HOST_MULTIARCH		"aarch64-linux-gnu"
#define HOST_LOADERS		"ld-linux-aarch64.so.1", "ld-musl-aarch64.so.1"
#define HOST_CACHE_FLAGS	0x0a03
#define HOST_SYSCALL_REGISTER	"syscallno"
#define HOST_ARGUMENT_OFFSET	0
#define HOST_CAUSE_OFFSET	0
#define HOST_OLD_SYSCALLS	0
#define HOST_UPROBE_CALLS	0
#define HOST_STACK_REGISTER	"%sp"
#define HOST_RETURN_ADDRESS	"%x30"
#define HOST_RETURN_BYTES	0
#define HOST_KEPT(ROW) \
	ROW(0, "8@%x19") ROW(1, "8@%x20") ROW(2, "8@%x21") ROW(3, "8@%x22") ROW(4, "8@%x23") \
	ROW(5, "8@%x24") ROW(6, "8@%x25") ROW(7, "8@%x26") ROW(8, "8@%x27") ROW(9, "8@%x28")
#define HOST_JIT_HELPERS	1
#define HOST_OPERAND64(name)	"%x[" name "]"
#define HOST_OPERAND32(name)	"%w[" name "]"
#define HOST_OPERAND_MEMORY(name)	"[%x[" name "]]"
#elif defined(__riscv) && __riscv_xlen == 64
#define HOST_ELF_MACHINE	EM_RISCV
#define HOST_ELF_COMPAT		EM_NONE
#define HOST_AUDIT_ARCH		AUDIT_ARCH_RISCV64
#define HOST_MULTIARCH		"riscv64-linux-gnu"
#define HOST_LOADERS		"ld-linux-riscv64-lp64d.so.1", "ld-musl-riscv64.so.1"
#define HOST_CACHE_FLAGS	0x1003
#define HOST_SYSCALL_REGISTER	"a7"
#define HOST_ARGUMENT_OFFSET	280
#define HOST_CAUSE_OFFSET	272
#define HOST_OLD_SYSCALLS	0
#define HOST_UPROBE_CALLS	0
#define HOST_STACK_REGISTER	"sp"
#define HOST_RETURN_ADDRESS	"ra"
#define HOST_RETURN_BYTES	0
#define HOST_KEPT(ROW) \
	ROW(0, "8@s1") ROW(1, "8@s2") ROW(2, "8@s3") ROW(3, "8@s4") ROW(4, "8@s5") \
	ROW(5, "8@s6") ROW(6, "8@s7") ROW(7, "8@s8") ROW(8, "8@s9") ROW(9, "8@s10")
#define HOST_JIT_HELPERS	1
#define HOST_OPERAND64(name)	"%[" name "]"
#define HOST_OPERAND32(name)	"%[" name "]"
#define HOST_OPERAND_MEMORY(name)	"0(%[" name "])"
#else
#error "this CPU architecture is not supported: add it here and to usdt/arch.h"
#endif

#endif
