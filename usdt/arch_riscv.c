/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * riscv64: registers and operands, calling convention.
 *
 * Source: RISC-V ELF psABI specification (registers and arguments); the kernel's
 * uapi/asm/ptrace.h.
 */
#include <elf.h>
#include <string.h>

#include "usdt/arch.h"
#include "usdt/arch_dform.h"

/* Floating point registers: fa0, ft11, fs0. */
static bool is_float(const char *name, size_t len)
{
	return (len == 3 || len == 4) && name[0] == 'f' && memchr("ats", name[1], 3) &&
	       scan_is_digit(name[2]);
}

static enum spec_reason riscv_reg(const struct arch *arch, const char *name, size_t len,
				  struct arch_reg *reg)
{
	enum spec_reason reason = arch_plain_reg(arch, name, len, reg);

	reg->zero = len == 4 && !memcmp(name, "zero", 4);
	if (reg->zero)
		return SPEC_OK;
	return reason != SPEC_OK && is_float(name, len) ? SPEC_NO_PT_REGS : reason;
}

static const struct arch_alias riscv_aliases[] = { { "fp", 8 }, { "", 0 } };

/* The slot of a register is its code number; pc has that of zero. */
const struct arch arch_riscv = {
	.machine = EM_RISCV, .name = "riscv", .can_emit = true, .prefix = "",
	.names = "pc ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 "
		 "s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6",
	.aliases = riscv_aliases, .args = { 10, 11, 12, 13, 14, 15 }, .ret = 10, .pc = 0,
	.nops = { { 2, { 0x01, 0x00 } }, { 4, { 0x13, 0x00, 0x00, 0x00 } } },
	.code = &arch_riscv_code, .reg = riscv_reg, .operand = arch_dform_operand,
};
