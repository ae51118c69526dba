/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs a function that spec_emit() or expression_emit() made, and is as strict as the verifier:
 * registers that were not set, reads outside of ctx or the stack, jumps to
 * nowhere and codes that an emitter has no use for are errors.
 */
#ifndef TESTS_UNIT_INTERP_H
#define TESTS_UNIT_INTERP_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INTERP_STACK_TOP	0x100000ULL	/* what r10 holds; ctx is at another place */
#define INTERP_CTX		0x200000ULL

struct interp {
	const struct bpf_insn *insns;
	int n;
	const void *ctx;
	unsigned int ctx_size;
	int32_t read_helper;
	bool (*read)(uint64_t addr, unsigned int size, uint64_t *value);
	/* bpf_probe_read_user_str(), if it may be called. */
	long (*read_text)(char *to, unsigned int size, uint64_t addr);
	uint64_t regs[11];
	unsigned int valid;		/* bit mask of registers that were set */
	unsigned char stack[512];
	bool stack_set[512];
	const char *error;
};

static inline uint64_t interp_fail(struct interp *vm, const char *why)
{
	if (!vm->error)
		vm->error = why;
	return 0;
}

static inline uint64_t interp_get(struct interp *vm, unsigned int reg)
{
	if (reg > 10 || !(vm->valid & 1u << reg))
		return interp_fail(vm, "reads a register that was not set");
	return vm->regs[reg];
}

static inline void interp_set(struct interp *vm, unsigned int reg, uint64_t value)
{
	if (reg > 9) {
		interp_fail(vm, "writes to r10 or beyond");
		return;
	}
	vm->regs[reg] = value;
	vm->valid |= 1u << reg;
}

static inline uint64_t interp_load(struct interp *vm, uint64_t addr, unsigned int size)
{
	uint64_t value = 0;

	if (addr >= INTERP_CTX && addr + size <= INTERP_CTX + vm->ctx_size) {
		if (addr % size)
			return interp_fail(vm, "reads ctx misaligned");
		memcpy(&value, (const char *)vm->ctx + (addr - INTERP_CTX), size);
		return value;
	}
	if (addr < INTERP_STACK_TOP - 512 || addr + size > INTERP_STACK_TOP || addr % size)
		return interp_fail(vm, "reads neither ctx nor stack");
	addr -= INTERP_STACK_TOP - 512;
	for (unsigned int i = 0; i < size; i++)
		if (!vm->stack_set[addr + i])
			return interp_fail(vm, "reads stack that was not set");
	memcpy(&value, vm->stack + addr, size);
	return value;
}

/* The helper that reads a string: what lies behind its NUL is not set. */
static inline void interp_call_text(struct interp *vm)
{
	uint64_t to = interp_get(vm, 1), size = interp_get(vm, 2), from = interp_get(vm, 3);
	long n;

	if (to < INTERP_STACK_TOP - 512 || !size || size > 512 || to + size > INTERP_STACK_TOP) {
		interp_fail(vm, "reads to a place that is no stack");
		return;
	}
	to -= INTERP_STACK_TOP - 512;
	n = vm->read_text((char *)vm->stack + to, (unsigned int)size, from);
	memset(vm->stack_set + to, false, size);
	memset(vm->stack_set + to, true, n > 0 ? (size_t)n : 0);
	vm->valid &= ~0x3eu;
	interp_set(vm, 0, (uint64_t)n);
}

static inline void interp_call(struct interp *vm, const struct bpf_insn *insn)
{
	uint64_t to = interp_get(vm, 1), size = interp_get(vm, 2), from = interp_get(vm, 3);
	uint64_t value = 0;
	bool ok;

	if (vm->read_text && !insn->src_reg && insn->imm == BPF_FUNC_probe_read_user_str) {
		interp_call_text(vm);
		return;
	}
	if (insn->src_reg || insn->imm != vm->read_helper) {
		interp_fail(vm, "calls another helper");
		return;
	}
	if (to < INTERP_STACK_TOP - 512 || !size || size > 8 || to + size > INTERP_STACK_TOP) {
		interp_fail(vm, "reads to a place that is no stack");
		return;
	}
	to -= INTERP_STACK_TOP - 512;
	ok = vm->read(from, (unsigned int)size, &value);
	memcpy(vm->stack + to, ok ? &value : &(uint64_t){ 0 }, size);
	memset(vm->stack_set + to, true, size);
	vm->valid &= ~0x3eu;
	interp_set(vm, 0, ok ? 0 : (uint64_t)-14);
}

static inline void interp_alu(struct interp *vm, const struct bpf_insn *insn)
{
	bool wide = BPF_CLASS(insn->code) == BPF_ALU64;
	uint64_t src = BPF_SRC(insn->code) == BPF_X ? interp_get(vm, insn->src_reg) :
						      (uint64_t)(int64_t)insn->imm;
	uint64_t dst = BPF_OP(insn->code) == BPF_MOV ? 0 : interp_get(vm, insn->dst_reg);

	switch (BPF_OP(insn->code)) {
	case BPF_MOV:
		dst = src;
		break;
	case BPF_ADD:
		dst += src;
		break;
	case BPF_SUB:
		dst -= src;
		break;
	case BPF_MUL:
		dst *= src;
		break;
	case BPF_AND:
		dst &= src;
		break;
	case BPF_OR:
		dst |= src;
		break;
	case BPF_XOR:
		dst ^= src;
		break;
	case BPF_NEG:
		dst = -dst;
		break;
	case BPF_LSH:
		dst <<= src & 63;
		break;
	case BPF_RSH:
		dst >>= src & 63;
		break;
	case BPF_ARSH:
		dst = (uint64_t)((int64_t)dst >> (src & 63));
		break;
	default:
		interp_fail(vm, "an operation without use");
	}
	interp_set(vm, insn->dst_reg, wide ? dst : (uint32_t)dst);
}

static inline bool interp_compare(struct interp *vm, uint8_t op, uint64_t a, uint64_t b)
{
	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JNE:
		return a != b;
	case BPF_JLT:
		return a < b;
	case BPF_JLE:
		return a <= b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	case BPF_JSLT:
		return (int64_t)a < (int64_t)b;
	case BPF_JSLE:
		return (int64_t)a <= (int64_t)b;
	case BPF_JSGT:
		return (int64_t)a > (int64_t)b;
	case BPF_JSGE:
		return (int64_t)a >= (int64_t)b;
	}
	interp_fail(vm, "a jump without use");
	return false;
}

/* A jump, by itself or if two values compare so; the number of the next instruction. */
static inline int interp_jump(struct interp *vm, const struct bpf_insn *insn, int at)
{
	uint64_t with;

	if (insn->off < 0)
		interp_fail(vm, "jumps back");
	if (BPF_OP(insn->code) == BPF_JA)
		return at + 1 + insn->off;
	with = BPF_SRC(insn->code) == BPF_X ? interp_get(vm, insn->src_reg) :
					      (uint64_t)(int64_t)insn->imm;
	if (interp_compare(vm, BPF_OP(insn->code), interp_get(vm, insn->dst_reg), with))
		at += insn->off;
	return at + 1;
}

/* Keeps a register on the stack. */
static inline void interp_store(struct interp *vm, const struct bpf_insn *insn)
{
	uint64_t addr = interp_get(vm, insn->dst_reg) + (uint64_t)(int64_t)insn->off;
	uint64_t value = interp_get(vm, insn->src_reg);

	if (insn->code != (BPF_STX | BPF_MEM | BPF_DW) || addr < INTERP_STACK_TOP - 512 ||
	    addr + 8 > INTERP_STACK_TOP || addr % 8) {
		interp_fail(vm, "writes to a place that is no stack");
		return;
	}
	addr -= INTERP_STACK_TOP - 512;
	memcpy(vm->stack + addr, &value, 8);
	memset(vm->stack_set + addr, true, 8);
}

/* One instruction; the number of the next one. */
static inline int interp_step(struct interp *vm, int at)
{
	static const unsigned int sizes[] = { 4, 2, 1, 8 };
	const struct bpf_insn *insn = &vm->insns[at];

	switch (insn->code) {
	case BPF_LD | BPF_IMM | BPF_DW:
		if (at + 1 >= vm->n || insn[1].code || insn->src_reg)
			interp_fail(vm, "half of a 64-bit immediate");
		else
			interp_set(vm, insn->dst_reg,
				   (uint32_t)insn->imm | (uint64_t)(uint32_t)insn[1].imm << 32);
		return at + 2;
	case BPF_JMP | BPF_CALL:
		interp_call(vm, insn);
		return at + 1;
	}
	if (BPF_CLASS(insn->code) == BPF_JMP)
		return interp_jump(vm, insn, at);
	if (BPF_CLASS(insn->code) == BPF_STX) {
		interp_store(vm, insn);
		return at + 1;
	}
	if (BPF_CLASS(insn->code) == BPF_LDX && BPF_MODE(insn->code) == BPF_MEM) {
		uint64_t addr = interp_get(vm, insn->src_reg) + (uint64_t)(int64_t)insn->off;

		interp_set(vm, insn->dst_reg,
			   interp_load(vm, addr, sizes[BPF_SIZE(insn->code) >> 3]));
		return at + 1;
	}
	if (BPF_CLASS(insn->code) == BPF_ALU || BPF_CLASS(insn->code) == BPF_ALU64)
		interp_alu(vm, insn);
	else
		interp_fail(vm, "a code without use");
	return at + 1;
}

/* Runs @vm from its first instruction. What it returns, or 0 and vm->error. */
static inline uint64_t interp_run(struct interp *vm)
{
	int at = 0;

	vm->regs[1] = INTERP_CTX;
	vm->regs[10] = INTERP_STACK_TOP;
	vm->valid = 1u << 1 | 1u << 10;
	while (!vm->error) {
		if (at < 0 || at >= vm->n)
			return interp_fail(vm, "runs past its end");
		if (vm->insns[at].code == (BPF_JMP | BPF_EXIT))
			return interp_get(vm, 0);
		at = interp_step(vm, at);
	}
	return 0;
}

#endif
