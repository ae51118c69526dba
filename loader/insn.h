/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BPF instructions: how they refer to each other, and which values of registers follow from those
 * before them. Everything else about a register is unknown.
 *
 * Source: Documentation/bpf/standardization/instruction-set.rst of the kernel.
 */
#ifndef LOADER_INSN_H
#define LOADER_INSN_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

/* The registers whose values are known. All zero is none. */
struct registers {
	uint16_t known;			/* bit mask */
	uint64_t value[MAX_BPF_REG];
};

/* Return whether @insn, a load of 64 bits, takes the place of two. */
bool insn_is_wide(const struct bpf_insn *insn);

/* Return whether @insn is a jump, conditional or not. */
bool insn_is_branch(const struct bpf_insn *insn);

/* Return whether @insn calls a function of the program. */
bool insn_calls_function(const struct bpf_insn *insn);

/*
 * Store in *@next the instruction that follows @insn, the one at index @pc: in memory if @i is 0,
 * as the target of a jump if it is 1. Return whether there is one; it can be outside the program.
 */
bool insn_next(const struct bpf_insn *insn, uint32_t pc, int i, uint32_t *next);

/* Return the registers that @insn reads, as a bit mask. */
uint16_t insn_uses(const struct bpf_insn *insn);

/* Return the registers that @insn sets independently of their values before, as a bit mask. */
uint16_t insn_sets(const struct bpf_insn *insn);

/* Return whether @insn sets a register and does nothing else. */
bool insn_is_pure(const struct bpf_insn *insn);

/* Store the value of @reg in *@value. Return whether it is known. */
bool registers_get(const struct registers *regs, uint8_t reg, uint64_t *value);

/* Apply @insn; a jump changes nothing. */
void registers_execute(struct registers *regs, const struct bpf_insn *insn);

/* Return whether the jump @insn is taken: 0 or 1; -1 if that is not known. */
int registers_decide(const struct registers *regs, const struct bpf_insn *insn);

/* Add what follows from the jump @insn being @taken, or not. */
void registers_assume(struct registers *regs, const struct bpf_insn *insn, bool taken);

/* Forget what is not known in @other, too. Return whether there was something. */
bool registers_join(struct registers *regs, const struct registers *other);

#endif
