/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Architectures that are supported for listing only. Their memory operands have
 * the form D(BASE), of LoongArch BASE,D; or BASE,INDEX.
 *
 * Source: System V psABI supplements of PowerPC64 (ELFv2), s390x, MIPS and
 * LoongArch (registers and arguments), and the syntax of the GNU assembler.
 */
#include <elf.h>
#include <string.h>

#include "usdt/arch.h"
#include "usdt/arch_dform.h"

#ifndef EM_LOONGARCH
#define EM_LOONGARCH 258
#endif

static enum spec_reason mips_reg(const struct arch *arch, const char *name, size_t len,
				 struct arch_reg *reg)
{
	if (len > 2 && !memcmp(name, "$f", 2) && name[2] >= '0' && name[2] <= '9')
		return SPEC_NO_PT_REGS;
	reg->zero = len == 2 && !memcmp(name, "$0", 2);
	return arch_plain_reg(arch, name, len, reg);
}

/* $fcc0, $f0, $fa0, $vr0 and $xr0 are condition flags, floating point and vector registers. */
static enum spec_reason loongarch_reg(const struct arch *arch, const char *name, size_t len,
				      struct arch_reg *reg)
{
	enum spec_reason reason = arch_plain_reg(arch, name, len, reg);

	reg->zero = reason == SPEC_OK && !reg->slot;
	return reason != SPEC_OK && len > 2 && name[0] == '$' && memchr("fvx", name[1], 3) ?
	       SPEC_NO_PT_REGS : reason;
}

/* s390: %f0 and %v0 are floating point and vector registers. */
static enum spec_reason s390_reg(const struct arch *arch, const char *name, size_t len,
				 struct arch_reg *reg)
{
	if (len > 1 && (name[0] == 'f' || name[0] == 'v') && name[1] >= '0' && name[1] <= '9')
		return SPEC_NO_PT_REGS;
	return arch_plain_reg(arch, name, len, reg);
}

/* ppc: the assembler accepts 9, r9 and %r9 for a general register. */
static enum spec_reason ppc_reg(const struct arch *arch, const char *name, size_t len,
				struct arch_reg *reg)
{
	char full[8] = "r";

	if (len > 2 || name[0] < '0' || name[0] > '9')
		return s390_reg(arch, name, len, reg);
	memcpy(full + 1, name, len);
	return arch_plain_reg(arch, full, len + 1, reg);
}

/* Parse BASE,INDEX, behind BASE. A register that reads as 0 there is no part of the address. */
static enum spec_reason parse_indexed(const struct arch *arch, struct scan *s, struct spec *spec,
				      bool no_base)
{
	struct spec index = { .reg_bits = spec->reg_bits, .base = SPEC_NO_REG };
	enum spec_reason reason = arch_dform_register(arch, s, &index);

	spec->kind = SPEC_MEM;
	spec->index = no_base ? SPEC_NO_REG : index.base;
	spec->base = no_base ? index.base : spec->base;
	return reason;
}

/* A load with an index has register 0 for the number 0: 0,9 is what register 9 points to. */
static enum spec_reason ppc_operand(const struct arch *arch, struct scan *s, struct spec *spec)
{
	struct scan at = *s;

	if (arch_dform_register(arch, &at, spec) != SPEC_OK || !scan_char(&at, ',')) {
		spec->base = SPEC_NO_REG;
		return arch_dform_operand(arch, s, spec);
	}
	*s = at;
	return parse_indexed(arch, s, spec, !spec->base);
}

/* Parse the rest of BASE,OFFSET: a number, a part of an address, or an index. */
static enum spec_reason loongarch_offset(const struct arch *arch, struct scan *s,
					 struct spec *spec)
{
	scan_blanks(s);
	if (scan_peek(s, '%'))
		return SPEC_PARTIAL_SYMBOL;
	if (scan_peek(s, '$'))
		return parse_indexed(arch, s, spec, spec->kind == SPEC_CONST);
	spec->kind = SPEC_MEM;
	return scan_number(s, &spec->value) ? SPEC_OK : SPEC_BAD_OPERAND;
}

/* A memory operand is BASE,OFFSET as in instructions; bcc expects it in brackets. */
static enum spec_reason loongarch_operand(const struct arch *arch, struct scan *s,
					  struct spec *spec)
{
	bool memory = scan_char(s, '[');
	enum spec_reason reason;

	if (!memory && arch_dform_immediate(arch, *s, spec)) {
		s->p = s->end;
		return SPEC_OK;
	}
	spec->value = 0;
	reason = arch_dform_register(arch, s, spec);
	if (reason == SPEC_OK && scan_char(s, ','))
		reason = loongarch_offset(arch, s, spec);
	if (reason != SPEC_OK || !memory)
		return reason;
	spec->kind = SPEC_MEM;
	return scan_char(s, ']') ? SPEC_OK : SPEC_BAD_OPERAND;
}

const struct arch arch_ppc64 = {
	.machine = EM_PPC64, .name = "ppc64", .sigil = '%', .constant = 'i',
	.prefix = "r", .numbered = 32, .names = "ip",
	.args = { 3, 4, 5, 6, 7, 8 }, .ret = 3, .pc = 32,
	.nops = { { 4, { 0x00, 0x00, 0x00, 0x60 } } },
	.reg = ppc_reg, .operand = ppc_operand,
};

const struct arch arch_s390 = {
	.machine = EM_S390, .name = "s390", .sigil = '%',
	.prefix = "r", .numbered = 16, .names = "ip",
	.args = { 2, 3, 4, 5, 6, -1 }, .ret = 2, .pc = 16,
	.nops = { { 4, { 0x47, 0x00, 0x00, 0x00 } } },
	.reg = s390_reg, .operand = arch_dform_operand,
};

static const struct arch_alias mips_aliases[] = {
	{ "$gp", 28 }, { "$sp", 29 }, { "$fp", 30 }, { "$ra", 31 }, { "", 0 },
};

const struct arch arch_mips = {
	.machine = EM_MIPS, .name = "mips", .prefix = "$", .numbered = 32, .names = "pc",
	.aliases = mips_aliases,
	.args = { 4, 5, 6, 7, -1, -1 }, .ret = 2, .pc = 32,
	.reg = mips_reg, .operand = arch_dform_operand,
};

static const struct arch_alias loongarch_aliases[] = {
	{ "$zero", 0 }, { "$ra", 1 }, { "$tp", 2 }, { "$sp", 3 }, { "$a0", 4 }, { "$a1", 5 },
	{ "$a2", 6 }, { "$a3", 7 }, { "$a4", 8 }, { "$a5", 9 }, { "$a6", 10 }, { "$a7", 11 },
	{ "$t0", 12 }, { "$t1", 13 }, { "$t2", 14 }, { "$t3", 15 }, { "$t4", 16 }, { "$t5", 17 },
	{ "$t6", 18 }, { "$t7", 19 }, { "$t8", 20 }, { "$fp", 22 }, { "$s9", 22 }, { "$s0", 23 },
	{ "$s1", 24 }, { "$s2", 25 }, { "$s3", 26 }, { "$s4", 27 }, { "$s5", 28 }, { "$s6", 29 },
	{ "$s7", 30 }, { "$s8", 31 }, { "", 0 },
};

const struct arch arch_loongarch = {
	.machine = EM_LOONGARCH, .name = "loongarch", .prefix = "$r", .numbered = 32,
	.names = "pc", .aliases = loongarch_aliases,
	.args = { 4, 5, 6, 7, 8, 9 }, .ret = 4, .pc = 32,
	.nops = { { 4, { 0x00, 0x00, 0x40, 0x03 } } },
	.reg = loongarch_reg, .operand = loongarch_operand,
};
