/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * aarch64 and arm: registers and operands, calling convention.
 *
 * Source: Procedure Call Standard for the Arm 64-bit Architecture, section 6
 * (registers and arguments); the kernel's asm/ptrace.h.
 */
#include <elf.h>
#include <string.h>

#include "usdt/arch.h"

#define A64_SP	31
#define A64_PC	32

static const struct arch_alias a64_aliases[] = {
	{ "fp", 29 }, { "lr", 30 }, { "ip0", 16 }, { "ip1", 17 }, { "", 0 },
};

static const struct arch_alias arm_aliases[] = {
	{ "sl", 10 }, { "fp", 11 }, { "ip", 12 }, { "r13", 13 }, { "r14", 14 }, { "r15", 15 },
	{ "", 0 },
};

/* Floating point and vector registers: a letter, digits, and perhaps ".16b". */
static bool is_vector(const char *name, size_t len)
{
	return len >= 2 && memchr("vqdshbzp", name[0], 8) && name[1] >= '0' && name[1] <= '9';
}

static enum spec_reason arm_reg(const struct arch *arch, const char *name, size_t len,
				struct arch_reg *reg)
{
	enum spec_reason reason = arch_plain_reg(arch, name, len, reg);

	return reason != SPEC_OK && is_vector(name, len) ? SPEC_NO_PT_REGS : reason;
}

static enum spec_reason a64_reg(const struct arch *arch, const char *name, size_t len,
				struct arch_reg *reg)
{
	char x[4] = "x";

	if (len == 3 && !memcmp(name + 1, "zr", 2) && (name[0] == 'x' || name[0] == 'w')) {
		reg->zero = true;
		return SPEC_OK;
	}
	if (name[0] != 'w' || len < 2 || len > 3)
		return arm_reg(arch, name, len, reg);
	reg->bits = 32;
	if (len == 3 && !memcmp(name, "wsp", 3)) {
		reg->slot = A64_SP;
		return SPEC_OK;
	}
	memcpy(x + 1, name + 1, len - 1);
	return arch_plain_reg(arch, x, len, reg);
}

/*
 * Accept x31 or w31, which no assembler does: as an operand it is sp or the zero register. As a
 * base it is sp, as an index the zero register, as instructions encode them.
 */
static bool accept_31(const struct arch *arch, struct scan *s)
{
	struct scan at = *s;
	const char *name;

	if (arch->machine != EM_AARCH64 || scan_name(&at, &name) != 3 ||
	    (name[0] != 'x' && name[0] != 'w') || memcmp(name + 1, "31", 2))
		return false;
	*s = at;
	return true;
}

/* Classify a relocation such as #:lo12:sym, at its first colon. */
static enum spec_reason relocated(const struct scan *s)
{
	size_t len = s->end - s->p;

	return (len > 3 && !memcmp(s->p, ":tp", 3)) || (len > 4 && !memcmp(s->p, ":dtp", 4)) ?
		SPEC_TLS : SPEC_PARTIAL_SYMBOL;
}

/* Parse "lsl 3" or "lsl #3" behind an index. Extensions (sxtw) are not supported. */
static enum spec_reason parse_shift(struct scan *s, struct spec *spec)
{
	const char *name;
	int64_t shift;

	scan_blanks(s);
	if (scan_name(s, &name) != 3 || memcmp(name, "lsl", 3))
		return SPEC_BAD_OPERAND;
	scan_blanks(s);
	scan_char(s, '#');
	if (!scan_number(s, &shift) || shift < 0 || shift > 3)
		return SPEC_BAD_OPERAND;
	spec->scale = 1 << shift;
	return SPEC_OK;
}

/* Parse the rest of "[BASE,": a number, a part of an address, or an index. */
static enum spec_reason parse_offset(const struct arch *arch, struct scan *s, struct spec *spec)
{
	enum spec_reason reason;
	struct arch_reg reg;
	bool hash;

	scan_blanks(s);
	hash = scan_char(s, '#');
	if (scan_peek(s, ':'))
		return relocated(s);
	if (hash || scan_peek(s, '-') || (s->p < s->end && *s->p >= '0' && *s->p <= '9'))
		return scan_number(s, &spec->value) ? SPEC_OK : SPEC_BAD_OPERAND;
	if (!accept_31(arch, s)) {
		reason = arch_parse_reg(arch, s, spec, &reg);
		if (reason != SPEC_OK)
			return reason;
		if (reg.bits != spec->reg_bits)
			return SPEC_BAD_OPERAND;
		if (!reg.zero)
			spec->index = reg.slot;
	}
	return scan_char(s, ',') ? parse_shift(s, spec) : SPEC_OK;
}

/* Parse [BASE], [BASE, OFFSET] or [BASE, INDEX, lsl SHIFT], behind the bracket. */
static enum spec_reason parse_memory(const struct arch *arch, struct scan *s, struct spec *spec)
{
	enum spec_reason reason = SPEC_OK;
	struct arch_reg reg;

	spec->kind = SPEC_MEM;
	scan_blanks(s);
	if (accept_31(arch, s)) {
		spec->base = A64_SP;
	} else {
		reason = arch_parse_reg(arch, s, spec, &reg);
		if (reason != SPEC_OK)
			return reason;
		if (reg.zero || reg.bits != spec->reg_bits)
			return SPEC_BAD_REGISTER;
		spec->base = reg.slot;
	}
	scan_blanks(s);
	if (scan_char(s, ','))
		reason = parse_offset(arch, s, spec);
	if (reason != SPEC_OK)
		return reason;
	scan_blanks(s);
	return scan_char(s, ']') ? SPEC_OK : SPEC_BAD_OPERAND;
}

static enum spec_reason arm_operand(const struct arch *arch, struct scan *s, struct spec *spec)
{
	enum spec_reason reason;
	struct arch_reg reg;

	if (scan_char(s, '['))
		return parse_memory(arch, s, spec);
	if (scan_char(s, '#') || scan_peek(s, '-') ||
	    (s->p < s->end && *s->p >= '0' && *s->p <= '9')) {
		if (scan_peek(s, ':'))
			return relocated(s);
		spec->kind = SPEC_CONST;
		return scan_number(s, &spec->value) ? SPEC_OK : SPEC_BAD_OPERAND;
	}
	if (accept_31(arch, s))
		return s->p == s->end ? SPEC_AMBIGUOUS : SPEC_BAD_OPERAND;
	reason = arch_parse_reg(arch, s, spec, &reg);
	if (reason == SPEC_OK)
		arch_set_reg(spec, &reg);
	return reason;
}

const struct arch arch_aarch64 = {
	.machine = EM_AARCH64, .name = "aarch64", .can_emit = true,
	.prefix = "x", .numbered = 31, .names = "sp pc",
	.aliases = a64_aliases, .args = { 0, 1, 2, 3, 4, 5 }, .ret = 0, .pc = A64_PC,
	.nops = { { 4, { 0x1f, 0x20, 0x03, 0xd5 } } },
	.code = &arch_aarch64_code, .reg = a64_reg, .operand = arm_operand,
};

const struct arch arch_arm = {
	.machine = EM_ARM, .name = "arm", .prefix = "r", .numbered = 13, .names = "sp lr pc",
	.aliases = arm_aliases, .args = { 0, 1, 2, 3, -1, -1 }, .ret = 0, .pc = 15,
	.nops = { { 2, { 0x00, 0xbf } } },
	.reg = arm_reg, .operand = arm_operand,
};
