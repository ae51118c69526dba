/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lengths of x86-64 instructions.
 *
 * Source of the format: Intel 64 and IA-32 Architectures Software Developer's
 * Manual, volume 2, chapter 2 (instruction format) and appendix A (opcode maps).
 */
#ifndef USDT_X86_LENGTH_H
#define USDT_X86_LENGTH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Decode the length of the instruction at @code, of which @size bytes are
 * readable. Return it in bytes, 1 to 15, or 0 if the instruction is truncated,
 * undefined in 64-bit mode, or has a length that depends on the CPU vendor.
 */
unsigned int x86_length_decode(const unsigned char *code, size_t size);

/*
 * Return whether Linux refuses to probe the instruction at @code: it has a segment or lock prefix,
 * or no program of a user may run it. Source: is_prefix_bad() and good_insns_64 of uprobes.c.
 */
bool x86_is_refused(const unsigned char *code, size_t size);

/*
 * Return whether the instruction at @code is one of the nops of five bytes that
 * Linux knows. Source of the forms: insn_is_nop() of its insn-eval.c.
 */
bool x86_is_nop5(const unsigned char *code, size_t size);

#endif
