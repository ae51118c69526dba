// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The instructions of x86-64: jumps, calls and prologues.
 *
 * Source of the encodings: Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2.
 */
#include "usdt/accessor_x86.h"
#include "usdt/arch.h"
#include "usdt/x86_length.h"

/* By code number. */
static const char x86_reg_names[16][ARCH_REG_NAME] = {
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
};

/* jcc, loop, jrcxz and jmp, with a displacement of one or four bytes */
static uint64_t x86_jump_target(struct cursor code, uint64_t vaddr, unsigned int len)
{
	unsigned int opcode = (unsigned int)cursor_uint(&code, 1);
	bool near = len == 2 && (opcode >> 4 == 7 || opcode >> 2 == 0xe0 >> 2 || opcode == 0xeb);

	if (near)
		return vaddr + len + (uint64_t)(int64_t)(int8_t)cursor_uint(&code, 1);
	if (opcode == 0x0f && len == 6)
		opcode = (unsigned int)cursor_uint(&code, 1) >> 4 == 8 ? 0xe9 : 0;
	if (opcode != 0xe9)
		return 0;
	return vaddr + len + (uint64_t)(int64_t)(int32_t)cursor_uint(&code, 4);
}

/* call */
static uint64_t x86_call_target(struct cursor code, uint64_t vaddr)
{
	int64_t distance;

	if (cursor_uint(&code, 1) != 0xe8)
		return 0;
	distance = (int32_t)cursor_uint(&code, 4);
	return code.bad ? 0 : vaddr + 5 + (uint64_t)distance;
}

/* mov offset(%reg),%rdi: REX.W, REX.B for %r8 to %r15, 8b. %rsp and %r12 need a SIB byte. */
static int x86_member_load(uint32_t word, int64_t offset)
{
	if ((word & 0xf8fffe) != 0x788b48 || (word >> 16 & 7) == 4 || offset >= 0x80 ||
	    word >> 24 != (uint64_t)offset)
		return -1;
	return (int)((word >> 16 & 7) | (word & 1) << 3);
}

static int x86_stack_growth(struct cursor code)
{
	uint32_t word = (uint32_t)cursor_uint(&code, 4);
	unsigned int op = word & 0xff;
	int32_t growth = (int32_t)(word >> 24);

	if (op == 0x41)			/* REX.B: %r8 to %r15 */
		op = word >> 8 & 0xff;
	if (op >= 0x50 && op < 0x58)	/* push */
		return 8;
	if ((word & 0xffffff) == 0xec8348)	/* sub $imm8,%rsp */
		return growth < 0x80 ? growth : -1;
	if ((word & 0xffffff) == 0xec8148) {	/* sub $imm32,%rsp */
		growth |= (int32_t)(cursor_uint(&code, 3) << 8);
		return code.bad || growth < 0 ? -1 : growth;
	}
	/* pop, leave, and $imm8,%rsp, and others that compute it */
	if ((op >= 0x58 && op < 0x60) || op == 0xc9 || (word & 0xffffff) == 0xe48348 ||
	    (word & 0xffffff) == 0xe48148 || word == 0x24648d48 || word == 0x24a48d48)
		return -1;
	return 0;
}

const struct arch_code arch_x86_64_code = {
	.insn_align = 1,
	.args = { 7, 6, 2, 1, 8, 9 },
	.returns = { 0, 2 },
	.zero_reg = ARCH_NO_REG,
	.preserved = 1u << 3 | 1u << 5 | 0xf000,	/* %rbx, %rbp, %r12 to %r15; not %rsp */
	.reg_names = x86_reg_names,
	.landing_pad = { 0xf3, 0x0f, 0x1e, 0xfa },	/* endbr64; not emulated by the kernel */
	.length = x86_length_decode, .refused = x86_is_refused,
	.call_nop = x86_is_nop5,
	.jump_target = x86_jump_target,
	.call_target = x86_call_target,
	.stack_growth = x86_stack_growth,
	.return_address = "(%rsp)",
	.member_load = x86_member_load,
	.decode = accessor_x86_decode,
	.global = accessor_x86_global,
	.element = accessor_x86_element,
};
