// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/insn.h"

#define SCRATCH		0x3f	/* R0 to R5, which calls change */
#define ARGUMENTS	0x3e	/* R1 to R5 */

bool insn_is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_DW | BPF_IMM);
}

bool insn_is_branch(const struct bpf_insn *insn)
{
	uint8_t class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);

	return (class == BPF_JMP || class == BPF_JMP32) && op != BPF_CALL && op != BPF_EXIT;
}

static bool insn_is_alu(const struct bpf_insn *insn)
{
	return BPF_CLASS(insn->code) == BPF_ALU || BPF_CLASS(insn->code) == BPF_ALU64;
}

bool insn_calls_function(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL;
}

bool insn_next(const struct bpf_insn *insn, uint32_t pc, int i, uint32_t *next)
{
	bool branch = insn_is_branch(insn), always = insn->code == (BPF_JMP | BPF_JA);

	*next = pc + 1 + (i ? (uint32_t)insn->off : insn_is_wide(insn));
	return i ? branch : !always && insn->code != (BPF_JMP | BPF_EXIT);
}

uint16_t insn_uses(const struct bpf_insn *insn)
{
	uint16_t dst = (uint16_t)(1u << insn->dst_reg), src = (uint16_t)(1u << insn->src_reg);
	bool reads_src = BPF_SRC(insn->code) == BPF_X;

	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		return (BPF_OP(insn->code) == BPF_MOV ? 0 : dst) | (reads_src ? src : 0);
	case BPF_LD: return insn_is_wide(insn) ? 0 : UINT16_MAX;
	case BPF_LDX: return src;
	case BPF_ST: return dst;
	case BPF_STX: return dst | src;
	}
	if (BPF_OP(insn->code) == BPF_CALL)
		return ARGUMENTS;
	if (BPF_OP(insn->code) == BPF_EXIT)
		return 1;
	return dst | (reads_src ? src : 0);
}

uint16_t insn_sets(const struct bpf_insn *insn)
{
	if (insn_is_alu(insn) || insn_is_wide(insn) || BPF_CLASS(insn->code) == BPF_LDX)
		return (uint16_t)(1u << insn->dst_reg);
	return insn->code == (BPF_JMP | BPF_CALL) ? SCRATCH : 0;
}

bool insn_is_pure(const struct bpf_insn *insn)
{
	return insn_is_alu(insn) || insn_is_wide(insn);
}

bool registers_get(const struct registers *regs, uint8_t reg, uint64_t *value)
{
	*value = regs->value[reg];
	return regs->known & 1u << reg;
}

static void registers_set(struct registers *regs, uint8_t reg, uint64_t value)
{
	regs->known |= (uint16_t)(1u << reg);
	regs->value[reg] = value;
}

static void registers_forget(struct registers *regs, unsigned int mask)
{
	regs->known &= (uint16_t)~mask;
}

/* Return whether the second operand of an instruction is known, and store it in *@value. */
static bool registers_operand(const struct registers *regs, const struct bpf_insn *insn,
			  uint64_t *value)
{
	if (BPF_SRC(insn->code) == BPF_X)
		return registers_get(regs, insn->src_reg, value);
	*value = (uint64_t)(int64_t)insn->imm;
	return true;
}

/* Calculate @a op @b into *@a. Return whether that is done here. */
static bool insn_calculate(const struct bpf_insn *insn, uint64_t *a, uint64_t b)
{
	bool wide = BPF_CLASS(insn->code) == BPF_ALU64;
	uint64_t bits = wide ? 63 : 31;

	switch (BPF_OP(insn->code)) {
	case BPF_MOV: *a = b; break;
	case BPF_ADD: *a += b; break;
	case BPF_SUB: *a -= b; break;
	case BPF_MUL: *a *= b; break;
	case BPF_OR: *a |= b; break;
	case BPF_AND: *a &= b; break;
	case BPF_XOR: *a ^= b; break;
	case BPF_LSH: *a <<= b & bits; break;
	case BPF_RSH: *a = (wide ? *a : (uint32_t)*a) >> (b & bits); break;
	case BPF_NEG: *a = -*a; break;
	default: return false;
	}
	if (!wide)
		*a = (uint32_t)*a;
	return true;
}

static void registers_alu(struct registers *regs, const struct bpf_insn *insn)
{
	uint64_t a, b;
	bool has_a = registers_get(regs, insn->dst_reg, &a);
	bool has_b = registers_operand(regs, insn, &b);
	uint8_t op = BPF_OP(insn->code);

	if (op == BPF_AND && ((has_a && !a) || (has_b && !b)))
		registers_set(regs, insn->dst_reg, 0);
	else if (!insn->off && has_b && (has_a || op == BPF_MOV) && insn_calculate(insn, &a, b))
		registers_set(regs, insn->dst_reg, a);
	else
		registers_forget(regs, 1u << insn->dst_reg);
}

/* Return whether @a op @b holds: 0 or 1; -1 if that is not decided here. */
static int insn_compare(uint8_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case BPF_JEQ: return a == b;
	case BPF_JNE: return a != b;
	case BPF_JGT: return a > b;
	case BPF_JGE: return a >= b;
	case BPF_JLT: return a < b;
	case BPF_JLE: return a <= b;
	case BPF_JSGT: return (int64_t)a > (int64_t)b;
	case BPF_JSGE: return (int64_t)a >= (int64_t)b;
	case BPF_JSLT: return (int64_t)a < (int64_t)b;
	case BPF_JSLE: return (int64_t)a <= (int64_t)b;
	case BPF_JSET: return !!(a & b);
	default: return -1;
	}
}

int registers_decide(const struct registers *regs, const struct bpf_insn *insn)
{
	uint64_t a, b;

	if (insn->code == (BPF_JMP | BPF_JA))
		return 1;
	if (BPF_CLASS(insn->code) != BPF_JMP || !registers_get(regs, insn->dst_reg, &a) ||
	    !registers_operand(regs, insn, &b))
		return -1;
	return insn_compare(BPF_OP(insn->code), a, b);
}

void registers_execute(struct registers *regs, const struct bpf_insn *insn)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		registers_alu(regs, insn);
		break;
	case BPF_LD:
		if (insn_is_wide(insn) && !insn->src_reg)
			registers_set(regs, insn->dst_reg,
				  (uint32_t)insn[0].imm | (uint64_t)(uint32_t)insn[1].imm << 32);
		else
			registers_forget(regs, SCRATCH | 1u << insn->dst_reg);
		break;
	case BPF_LDX:
		registers_forget(regs, 1u << insn->dst_reg);
		break;
	case BPF_STX:
		if (BPF_MODE(insn->code) == BPF_ATOMIC)
			registers_forget(regs, 1u | 1u << insn->src_reg);
		break;
	case BPF_JMP:
		if (BPF_OP(insn->code) == BPF_CALL)
			registers_forget(regs, SCRATCH);
		break;
	}
}

void registers_assume(struct registers *regs, const struct bpf_insn *insn, bool taken)
{
	uint64_t value;

	if (insn->code == (BPF_JMP | BPF_SRC(insn->code) | (taken ? BPF_JEQ : BPF_JNE)) &&
	    registers_operand(regs, insn, &value))
		registers_set(regs, insn->dst_reg, value);
}

bool registers_join(struct registers *regs, const struct registers *other)
{
	uint16_t known = regs->known & other->known;

	for (uint8_t i = 0; i < MAX_BPF_REG; i++)
		if (regs->value[i] != other->value[i])
			known &= (uint16_t)~(1u << i);
	if (known == regs->known)
		return false;
	regs->known = known;
	return true;
}
