/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses where a breakpoint may be placed. A breakpoint inside an
 * instruction corrupts the traced program; one on an instruction that the
 * kernel must single-step out of line costs thirty times as much as one on an
 * instruction that it emulates: on x86-64 nops, push, calls and jumps; on riscv64
 * calls, jumps and auipc, but neither a nop nor what most functions begin with.
 *
 * Source: the kernel's arch-specific kernel/uprobes.c (emulated instructions);
 * LSB, "Exception Frames" (.eh_frame_hdr); usdt/arch_*.c (instructions).
 *
 * All functions are pure. Addresses are link-time virtual addresses.
 */
#ifndef USDT_SITE_H
#define USDT_SITE_H

#include "usdt/elf_symbol.h"
#include "usdt/note.h"

#define SITE_REG	5	/* bytes of a register's name: "rbx", "x19", "arg1" */
#define SITE_OPERAND	24	/* bytes of an operand: "24(%rsp)" */

/*
 * Return whether the instruction at file offset @offset is one of the nops
 * that sys/sdt.h emits at a site on the file's architecture.
 */
bool site_is_nop(const struct elf *elf, uint64_t offset);

/*
 * Return whether the instruction at file offset @offset is one that Linux refuses to probe, of
 * which it says nothing if no process maps the file.
 */
bool site_is_refused(const struct elf *elf, uint64_t offset);

/*
 * Return whether the instruction at file offset @offset is a nop that Linux may replace by a call
 * when a probe on it is hit, see loader/hazard.h.
 */
bool site_is_call_nop(const struct elf *elf, uint64_t offset);

/*
 * Return why no breakpoint may be placed at @site or its semaphore may not be
 * incremented, as a static string that completes "cannot be traced: ", or NULL
 * if it is safe. A site inside an instruction is detected if .eh_frame_hdr
 * describes the function; otherwise the nop is trusted.
 */
const char *site_refusal(const struct elf *elf, const struct usdt_site *site);

/*
 * Look up the bounds of the function that contains @vaddr in .eh_frame_hdr.
 * Return false, with *@start and *@end undefined, if it is not described
 * there, or if the architecture's instructions all have one length, so that
 * the bounds are not needed.
 */
bool site_body(const struct elf *elf, uint64_t vaddr, uint64_t *start, uint64_t *end);

/*
 * Return the address to probe for the function that begins at @vaddr: behind
 * its landing pad (endbr64), which the kernel cannot emulate and which leaves
 * the argument registers unchanged.
 */
uint64_t site_function(const struct elf *elf, uint64_t vaddr);

/*
 * Find the instructions in @function that call function @callee, also in the
 * parts of it that the compiler has put elsewhere, because they are seldom
 * executed (NAME.cold): those that it jumps to, and that .symtab names. There, the
 * argument registers hold the callee's arguments, and the kernel emulates the
 * instruction. Write their addresses to @vaddrs, room for @max. Return their
 * number; 0 if its body has none, or there are more than @max. A false match is not
 * realistic: it would have to contain the callee's 32-bit displacement.
 */
size_t site_calls(const struct elf *elf, const struct elf_symbol *function, const char *callee,
		  uint64_t *vaddrs, size_t max);

/*
 * Read the name of the register that points to an object, if the instruction
 * before the call at @vaddr loads the object's member at byte @offset as the
 * call's first argument. Return 0, or -EINVAL if it does something else.
 */
int site_owner(const struct elf *elf, uint64_t vaddr, int64_t offset, char reg[SITE_REG]);

/*
 * Write the operand that holds the return address of the function that begins
 * at @start, at @vaddr in its prologue: "24(%rsp)", "%x30". Return 0, or
 * -EINVAL if it is not known there.
 */
int site_caller(const struct elf *elf, uint64_t start, uint64_t vaddr,
		char operand[SITE_OPERAND]);

#endif
