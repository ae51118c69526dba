/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers of the generated functions: r1 is ctx until the address is
 * complete, r3 the address (the read helper's third argument), r4 and r5 are
 * scratch, r6 the address of the bits that report a failure. Memory is read to
 * r10 - 8.
 */
#include "usdt/emit.h"

#include <errno.h>

#include "usdt/arch.h"
#include "usdt/insn_buf.h"

#define SLOT	(-8)

static void put_constant(struct insn_buf *buf, uint8_t dst, uint64_t value)
{
	if ((int64_t)value == (int32_t)value)
		insn_put(buf, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, (int32_t)value);
	else if (value == (uint32_t)value)
		insn_put(buf, BPF_ALU | BPF_MOV | BPF_K, dst, 0, 0, (int32_t)value);
	else
		insn_put_wide(buf, dst, value);
}

static void put_add(struct insn_buf *buf, uint8_t dst, uint64_t value)
{
	if (!value)
		return;
	if ((int64_t)value == (int32_t)value) {
		insn_put(buf, BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, (int32_t)value);
		return;
	}
	put_constant(buf, BPF_REG_5, value);
	insn_put(buf, BPF_ALU64 | BPF_ADD | BPF_X, dst, BPF_REG_5, 0, 0);
}

/* dst = *(@bits wide *)(src + off) */
static void put_load(struct insn_buf *buf, unsigned int bits, uint8_t dst, uint8_t src, int16_t off)
{
	uint8_t width = bits == 8 ? BPF_B : bits == 16 ? BPF_H : bits == 32 ? BPF_W : BPF_DW;

	insn_put(buf, BPF_LDX | BPF_MEM | width, dst, src, off, 0);
}

static void put_sign_extend(struct insn_buf *buf, unsigned int bits)
{
	if (bits == 64)
		return;
	insn_put(buf, BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_0, 0, 0, 64 - bits);
	insn_put(buf, BPF_ALU64 | BPF_ARSH | BPF_K, BPF_REG_0, 0, 0, 64 - bits);
}

static bool extends_sign(const struct spec *spec)
{
	return spec->is_signed && !spec->is_float;
}

static int16_t reg_offset(int reg)
{
	return reg * 8;
}

/* Targets are little-endian: the low part of a register is at the address of the slot. */
static void emit_reg(struct insn_buf *buf, const struct spec *spec)
{
	unsigned int bits = spec->size * 8;

	if (bits > spec->reg_bits)
		bits = spec->reg_bits;
	put_load(buf, bits, BPF_REG_0, BPF_REG_1, reg_offset(spec->base) + spec->reg_shift / 8);
	if (extends_sign(spec))
		put_sign_extend(buf, bits);
}

static void emit_constant(struct insn_buf *buf, const struct spec *spec)
{
	unsigned int unused = 64 - spec->size * 8;
	uint64_t value = (uint64_t)spec->value << unused;

	value = extends_sign(spec) ? (uint64_t)((int64_t)value >> unused) : value >> unused;
	put_constant(buf, BPF_REG_0, value);
}

/* Add register @reg << @shift to the address; the @first one becomes the address. */
static void add_reg(struct insn_buf *buf, int reg, unsigned int shift, bool *first)
{
	uint8_t dst = *first ? BPF_REG_3 : BPF_REG_4;

	put_load(buf, 64, dst, BPF_REG_1, reg_offset(reg));
	if (shift)
		insn_put(buf, BPF_ALU64 | BPF_LSH | BPF_K, dst, 0, 0, shift);
	if (!*first)
		insn_put(buf, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_3, dst, 0, 0);
	*first = false;
}

/* Compute the address in r3: the spec, plus the constant @offset, plus register @pc if any. */
static void emit_address(struct insn_buf *buf, const struct spec *spec, uint64_t offset, int pc)
{
	unsigned int shift = spec->scale == 8 ? 3 : spec->scale / 2;
	bool first = true;

	if (spec->base != SPEC_NO_REG)
		add_reg(buf, spec->base, 0, &first);
	if (spec->index != SPEC_NO_REG)
		add_reg(buf, spec->index, shift, &first);
	if (pc != SPEC_NO_REG)
		add_reg(buf, pc, 0, &first);
	if (first)
		put_constant(buf, BPF_REG_3, offset);
	else
		put_add(buf, BPF_REG_3, offset);
	if (spec->reg_bits == 32)
		insn_put(buf, BPF_ALU | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_3, 0, 0);
}

/* Read @size bytes at r3 to the stack. Return the index of the jump on failure, to be patched. */
static size_t emit_read(struct insn_buf *buf, const struct emit_target *target, unsigned int size)
{
	insn_put(buf, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_10, 0, 0);
	insn_put(buf, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, SLOT);
	insn_put(buf, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, size);
	insn_put(buf, BPF_JMP | BPF_CALL, 0, 0, 0, target->read_helper);
	return insn_put(buf, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 0, 0);
}

bool spec_reads(const struct spec *spec)
{
	return spec->kind == SPEC_MEM && (spec->nderef || !spec->address);
}

/* Report the failure, if that was requested, and return 0. */
static void emit_failure(struct insn_buf *buf, int32_t unread)
{
	if (unread) {
		put_load(buf, 64, BPF_REG_1, BPF_REG_6, 0);
		insn_put(buf, BPF_ALU64 | BPF_OR | BPF_K, BPF_REG_1, 0, 0, unread);
		insn_put(buf, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_6, BPF_REG_1, 0, 0);
	}
	put_constant(buf, BPF_REG_0, 0);
}

static void emit_memory(struct insn_buf *buf, const struct spec *spec,
			const struct emit_target *target, uint64_t offset, int pc)
{
	size_t jumps[2 * SPEC_DEREF_MAX + 1];
	unsigned int n = 0, njumps = 0;

	if (target->unread && spec_reads(spec))
		insn_put(buf, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_2, 0, 0);
	emit_address(buf, spec, offset, pc);
	while (n < spec->nderef) {
		jumps[njumps++] = emit_read(buf, target, 8);
		put_load(buf, 64, BPF_REG_3, BPF_REG_10, SLOT);
		/* No member of NULL has an address; to find that by a read takes a microsecond. */
		if (spec->address)
			jumps[njumps++] = insn_put(buf, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_3, 0, 0,
						   0);
		put_add(buf, BPF_REG_3, (uint64_t)spec->deref[n++]);
	}
	if (spec->address) {
		insn_put(buf, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_0, BPF_REG_3, 0, 0);
	} else {
		jumps[njumps++] = emit_read(buf, target, spec->size);
		put_load(buf, spec->size * 8, BPF_REG_0, BPF_REG_10, SLOT);
		if (extends_sign(spec))
			put_sign_extend(buf, spec->size * 8);
	}
	/* Computing an address without reading memory cannot fail. */
	if (!njumps)
		return;
	insn_put(buf, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (unsigned int i = 0; i < njumps; i++)
		insn_land(buf, jumps[i]);
	emit_failure(buf, target->unread);
}

/* Resolve the symbol, if any, and emit the memory access. */
static enum spec_reason emit_resolved(struct insn_buf *buf, const struct spec *spec,
				      const struct emit_target *target, int pc)
{
	uint64_t offset = (uint64_t)spec->value;
	uint64_t vaddr;

	if (!spec->symbol) {
		emit_memory(buf, spec, target, offset, SPEC_NO_REG);
		return SPEC_OK;
	}
	if (!target->symbol ||
	    target->symbol(target->symbol_arg, spec->symbol, spec->symbol_len, &vaddr))
		return SPEC_NO_SYMBOL;
	emit_memory(buf, spec, target, offset + vaddr - target->site_vaddr, pc);
	return SPEC_OK;
}

static enum spec_reason emit_any(struct insn_buf *buf, const struct spec *spec,
				 const struct emit_target *target)
{
	const struct arch *arch = arch_of(target->machine);

	if (!arch || !arch->can_emit)
		return SPEC_NO_EMITTER;
	switch (spec->kind) {
	case SPEC_CONST:
		emit_constant(buf, spec);
		return SPEC_OK;
	case SPEC_REG:
		emit_reg(buf, spec);
		return SPEC_OK;
	case SPEC_MEM:
		return emit_resolved(buf, spec, target, arch->pc);
	case SPEC_UNAVAILABLE:
		break;
	}
	return spec->reason;
}

int spec_emit(const struct spec *spec, const struct emit_target *target, struct bpf_insn *insns,
	      size_t max, enum spec_reason *reason)
{
	struct insn_buf buf = { .insns = insns, .max = max };

	*reason = emit_any(&buf, spec, target);
	if (*reason != SPEC_OK)
		return -ENOTSUP;
	return insn_finish(&buf);
}
