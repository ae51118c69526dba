/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Disassembler for BPF instructions.
 *
 * Source of the format: linux/bpf.h and the kernel's
 * Documentation/bpf/standardization/instruction-set.rst; the notation is that
 * of the verifier's log.
 */
#ifndef USDT_DISASM_H
#define USDT_DISASM_H

#include <linux/bpf.h>
#include <stddef.h>

/*
 * Format @insn as one line: "r0 = *(u64 *)(r1 +104)", "if r0 == 0x0 goto pc+2",
 * "call probe_read_user#112", "r1 = map[fd:4]". @next is the instruction behind
 * it, NULL at the end. Write at most @size bytes to @buf, the NUL included.
 * Return the number of instructions that the line represents: 2 for a 64-bit
 * immediate, else 1. An unknown instruction is formatted as its fields.
 */
int disasm_insn(const struct bpf_insn *insn, const struct bpf_insn *next, char *buf, size_t size);

#endif
