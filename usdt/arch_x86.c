/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64 and i386: registers and operands in AT&T syntax, calling convention.
 *
 * Source: System V psABI for AMD64, section 3.2 (registers and arguments); the
 * kernel's asm/ptrace.h; sys/sdt.h and the assembler (nops).
 */
#include <elf.h>
#include <string.h>

#include "usdt/arch.h"

/* Slots of the 64-bit struct pt_regs. */
enum {
	R15, R14, R13, R12, BP, BX, R11, R10, R9, R8, AX, CX, DX, SI, DI, ORIG_AX,
	IP, CS, FLAGS, SP, SS
};

#define NAMES "r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs flags sp ss"

static const int8_t numbered_slots[] = { R8, R9, R10, R11, R12, R13, R14, R15 };

static const struct {
	char name[2];
	int8_t slot;
} classic[] = {
	{ "ax", AX }, { "bx", BX }, { "cx", CX }, { "dx", DX }, { "si", SI },
	{ "di", DI }, { "bp", BP }, { "sp", SP }, { "ip", IP },
};

static bool starts_with(const char *name, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len >= n && !memcmp(name, with, n);
}

static int classic_slot(const char *name)
{
	for (size_t i = 0; i < sizeof(classic) / sizeof(*classic); i++)
		if (!memcmp(name, classic[i].name, 2))
			return classic[i].slot;
	return SPEC_NO_REG;
}

/* %r8 to %r15, %r8d, %r8w, %r8b */
static enum spec_reason numbered_reg(const char *name, size_t len, struct arch_reg *reg)
{
	size_t digits = 0;
	int number = 0;

	while (1 + digits < len && digits < 2 && name[1 + digits] >= '0' &&
	       name[1 + digits] <= '9')
		number = number * 10 + name[1 + digits++] - '0';
	if (number > 15 && number < 32)
		return SPEC_NO_PT_REGS;
	if (number < 8 || number > 15 || name[1] == '0' || len > 2 + digits)
		return SPEC_BAD_REGISTER;
	reg->slot = numbered_slots[number - 8];
	reg->bits = 64;
	if (len == 2 + digits) {
		static const char suffixes[] = "dwb";
		const char *suffix = memchr(suffixes, name[len - 1], 3);

		if (!suffix)
			return SPEC_BAD_REGISTER;
		reg->bits = 32 >> (suffix - suffixes);
	}
	return SPEC_OK;
}

/* %al, %ah, %sil. Write the name of the 16-bit register to @word. */
static bool byte_reg(const char *name, size_t len, char word[2], struct arch_reg *reg)
{
	if (len == 2 && name[0] >= 'a' && name[0] <= 'd' && (name[1] == 'l' || name[1] == 'h')) {
		word[0] = name[0];
		word[1] = 'x';
	} else if (len == 3 && name[2] == 'l' && (name[1] == 'i' || name[1] == 'p') &&
		   name[0] != 'i') {
		memcpy(word, name, 2);
	} else {
		return false;
	}
	reg->bits = 8;
	reg->shift = name[len - 1] == 'h' ? 8 : 0;
	return true;
}

/* %rax, %eax, %ax. Write the name of the 16-bit register to @word. */
static bool wide_reg(const char *name, size_t len, char word[2], struct arch_reg *reg)
{
	if (len == 3 && (name[0] == 'r' || name[0] == 'e')) {
		memcpy(word, name + 1, 2);
		reg->bits = name[0] == 'r' ? 64 : 32;
		return true;
	}
	if (len != 2)
		return false;
	memcpy(word, name, 2);
	reg->bits = 16;
	return word[0] != 'i';	/* %ip belongs to the grammar of engine descriptors */
}

/* Registers that are not in struct pt_regs. */
static bool is_unsaved(const char *name, size_t len)
{
	static const char *const starts[] = { "xmm", "ymm", "zmm", "tmm", "mm", "st", "cr", "dr" };

	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (starts_with(name, len, starts[i]))
			return true;
	if (len != 2)
		return false;
	return (name[1] == 's' && memchr("cdefgs", name[0], 6)) ||
	       (name[0] == 'k' && name[1] >= '0' && name[1] <= '7');
}

static enum spec_reason x86_reg(const struct arch *arch, const char *name, size_t len,
				struct arch_reg *reg)
{
	enum spec_reason reason = SPEC_OK;
	char word[2];

	if (len >= 2 && name[0] == 'r' && name[1] >= '0' && name[1] <= '9') {
		reason = numbered_reg(name, len, reg);
		if (arch->machine == EM_386)
			reason = SPEC_BAD_REGISTER;
	} else if (byte_reg(name, len, word, reg) || wide_reg(name, len, word, reg)) {
		reg->slot = classic_slot(word);
	}
	if (reason != SPEC_OK)
		return reason;
	if (reg->slot == SPEC_NO_REG)
		return is_unsaved(name, len) ? SPEC_NO_PT_REGS : SPEC_BAD_REGISTER;
	return arch->machine == EM_386 && reg->bits == 64 ? SPEC_BAD_REGISTER : SPEC_OK;
}

/* Parse a base or an index: 64 bits, or 32 (addresses then wrap at 4 GiB). */
static enum spec_reason address_reg(const struct arch *arch, struct scan *s, struct spec *spec,
				    uint8_t *bits, int16_t *number)
{
	enum spec_reason reason;
	struct arch_reg reg;

	if (!scan_char(s, '%'))
		return SPEC_BAD_OPERAND;
	reason = arch_parse_reg(arch, s, spec, &reg);
	if (reason != SPEC_OK)
		return reason;
	if (reg.bits < 32 || (*bits && reg.bits != *bits))
		return SPEC_BAD_REGISTER;
	*bits = reg.bits;
	*number = reg.slot;
	return SPEC_OK;
}

/* Parse the rest of "BASE,": INDEX or INDEX,SCALE. */
static enum spec_reason parse_index(const struct arch *arch, struct scan *s, struct spec *spec,
				    uint8_t *bits)
{
	enum spec_reason reason = address_reg(arch, s, spec, bits, &spec->index);
	int64_t scale;

	if (reason != SPEC_OK)
		return reason;
	if (!scan_char(s, ','))
		return SPEC_OK;
	if (!scan_number(s, &scale) || (scale != 1 && scale != 2 && scale != 4 && scale != 8))
		return SPEC_BAD_OPERAND;
	spec->scale = scale;
	return SPEC_OK;
}

/* symbol@tpoff, @ntpoff, @gottpoff, …: all thread-local relocations end in tpoff. */
static bool is_tls_symbol(const struct spec *spec)
{
	static const char ending[] = "tpoff";
	size_t n = sizeof(ending) - 1;

	if (spec->symbol_len <= n || !memchr(spec->symbol, '@', spec->symbol_len))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((spec->symbol[spec->symbol_len - n + i] | 0x20) != ending[i])
			return false;
	return true;
}

/* Parse D(BASE,INDEX,SCALE), of which every part is optional. */
static enum spec_reason parse_memory(const struct arch *arch, struct scan *s, struct spec *spec)
{
	enum spec_reason reason = arch_parse_displacement(s, spec);
	uint8_t bits = 0;

	spec->kind = SPEC_MEM;
	if (reason != SPEC_OK)
		return reason;
	if (spec->symbol && is_tls_symbol(spec))
		return SPEC_TLS;
	if (!scan_char(s, '('))
		return SPEC_OK;
	if (!scan_peek(s, ','))
		reason = address_reg(arch, s, spec, &bits, &spec->base);
	if (reason == SPEC_OK && scan_char(s, ','))
		reason = parse_index(arch, s, spec, &bits);
	if (reason != SPEC_OK)
		return reason;
	spec->reg_bits = bits;
	if (spec->base == IP && spec->symbol) {
		spec->pc_relative = true;
		spec->base = SPEC_NO_REG;
	}
	return scan_char(s, ')') ? SPEC_OK : SPEC_BAD_OPERAND;
}

static enum spec_reason x86_operand(const struct arch *arch, struct scan *s, struct spec *spec)
{
	size_t len = s->end - s->p;
	enum spec_reason reason;
	struct arch_reg reg;

	if (!len)
		return SPEC_BAD_OPERAND;
	if (scan_char(s, '$')) {
		spec->kind = SPEC_CONST;
		return scan_number(s, &spec->value) ? SPEC_OK : SPEC_BAD_OPERAND;
	}
	if (starts_with(s->p, len, "%fs:") || starts_with(s->p, len, "%gs:"))
		return SPEC_TLS;
	if (!scan_char(s, '%'))
		return parse_memory(arch, s, spec);
	reason = arch_parse_reg(arch, s, spec, &reg);
	if (reason == SPEC_OK)
		arch_set_reg(spec, &reg);
	return reason;
}

const struct arch arch_x86_64 = {
	.machine = EM_X86_64, .name = "x86-64", .can_emit = true, .prefix = "", .names = NAMES,
	.args = { DI, SI, DX, CX, R8, R9 }, .ret = AX, .pc = IP,
	.nops = {
		{ 1, { 0x90 } },
		{ 2, { 0x66, 0x90 } },
		{ 3, { 0x0f, 0x1f, 0x00 } },
		{ 4, { 0x0f, 0x1f, 0x40, 0x00 } },
		{ 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
		{ 6, { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
		{ 7, { 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 } },
		{ 8, { 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 } },
		{ 9, { 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 } },
		{ 10, { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 } },
	},
	.code = &arch_x86_64_code, .reg = x86_reg, .operand = x86_operand,
};

/*
 * Arguments are on the stack, or of static functions in registers that the compiler chooses. The
 * slots are those of a 64-bit kernel.
 */
const struct arch arch_i386 = {
	.machine = EM_386, .name = "i386", .can_emit = true, .prefix = "", .names = NAMES,
	.args = { -1, -1, -1, -1, -1, -1 }, .ret = AX, .pc = IP,
	.nops = { { 1, { 0x90 } } },
	.reg = x86_reg, .operand = x86_operand,
};
