/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef USDT_DISASM_H
#define USDT_DISASM_H

#include <linux/bpf.h>
#include <stddef.h>

/*
 * One line of text for @insn in the kernel's own notation ("r0 = *(u64 *)(r1 +104)",
 * "if r0 == 0x0 goto pc+2", "call probe_read_user#112", "r1 = map[fd:4]"). @next is the
 * second half of a 64-bit immediate and may be NULL. At most @size bytes with the NUL.
 * How many instructions the line stands for: 2 for a 64-bit immediate, else 1.
 */
int disasm_insn(const struct bpf_insn *insn, const struct bpf_insn *next, char *buf, size_t size);

#endif
