// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The instructions of aarch64: those that accessors consist of, calls and prologues.
 *
 * Source of the encodings: Arm Architecture Reference Manual for A-profile,
 * chapters C4 and C6.
 */
#include <errno.h>

#include "usdt/accessor.h"
#include "usdt/accessor_op.h"
#include "usdt/arch.h"

#define ARM_ZERO	31	/* xzr, or sp as a base */

/* Rn as a base register; sp is not modelled. */
static unsigned int arm_base(uint32_t word)
{
	unsigned int base = word >> 5 & 31;

	return base == ARM_ZERO ? UOP_NO_REG : base;
}

/* Rd or Rt as a destination; writes to xzr are ignored. */
static unsigned int arm_target(uint32_t word)
{
	return (word & 31) == ARM_ZERO ? UOP_NO_REG : word & 31;
}

/* Loads and stores with a scaled, an unscaled or a register offset. */
static bool arm_memory(uint32_t word, struct uop_list *list)
{
	unsigned int size = 1u << (word >> 30), opc = word >> 22 & 3;
	enum uop_kind kind = opc ? UOP_LOAD : UOP_STORE;
	unsigned int reg = kind == UOP_LOAD ? arm_target(word) : word & 31;

	if ((word & 0x3b000000) == 0x39000000) {
		uop_add_memory(list, kind, reg, arm_base(word),
			       (int64_t)(word >> 10 & 0xfff) * size, size);
	} else if ((word & 0x3b200c00) == 0x38000000) {
		uop_add_memory(list, kind, reg, arm_base(word), uop_sign_extend(word >> 12, 9),
			       size);
	} else if ((word & 0x3be0fc00) == 0x38606800) {
		/* [base, index] */
		uop_add_sum(list, UOP_TEMP, arm_base(word), word >> 16 & 31);
		uop_add_memory(list, UOP_LOAD, reg, UOP_TEMP, 0, size);
	} else {
		return false;
	}
	return !(word & 1u << 26) && !(opc > 1 && size == 8);	/* neither SIMD nor prfm */
}

/* ldp and stp of 8-byte registers */
static bool arm_pair(uint32_t word, struct uop_list *list)
{
	unsigned int first = arm_target(word), second = word >> 10 & 31, base = arm_base(word);
	int64_t offset = 8 * uop_sign_extend(word >> 15, 7);

	if (second == ARM_ZERO)
		second = UOP_NO_REG;
	if (!(word & 1u << 22)) {
		uop_add_memory(list, UOP_STORE, word & 31, base, offset, 8);
		uop_add_memory(list, UOP_STORE, word >> 10 & 31, base, offset + 8, 8);
		return true;
	}
	/* @first may be the base */
	uop_add_memory(list, UOP_LOAD, UOP_TEMP, base, offset, 8);
	uop_add_memory(list, UOP_LOAD, second, base, offset + 8, 8);
	uop_add_move(list, first, UOP_TEMP, 8);
	return true;
}

/* ldp and stp with base sp: the stack is not modelled. */
static bool arm_stack(uint32_t word, struct uop_list *list)
{
	if (word & 1u << 22) {
		uop_add(list, UOP_FORGET, arm_target(word));
		uop_add(list, UOP_FORGET, arm_target(word >> 10));
	}
	return true;
}

/* add and sub of an immediate, modelled for 64 bits, and cmp */
static bool arm_immediate(uint32_t word, struct uop_list *list)
{
	int64_t number = (int64_t)(word >> 10 & 0xfff) << (word & 1u << 22 ? 12 : 0);
	bool wide = word >> 31, subtracts = word >> 30 & 1, sets_flags = word >> 29 & 1;

	if (word & 1u << 23)
		return false;
	if (sets_flags) {
		uop_add_number(list, UOP_COMPARE, arm_base(word), number, wide ? 8 : 4);
		return subtracts && (word & 31) == ARM_ZERO;
	}
	if (wide)
		uop_add_memory(list, UOP_ADD_NUMBER, arm_target(word), arm_base(word),
			       subtracts ? -number : number, 8);
	else
		uop_add(list, UOP_FORGET, arm_target(word));
	return true;
}

/* cbz and cbnz */
static bool arm_compare_branch(uint32_t word, int64_t at, struct uop_list *list)
{
	uop_add_number(list, UOP_COMPARE, word & 31, 0, word >> 31 ? 8 : 4);
	uop_add_jump(list, UOP_BRANCH, at + 4 * uop_sign_extend(word >> 5, 19), word >> 24 & 1);
	return true;
}

/* Branches, calls and returns of the instruction at offset @at. */
static bool arm_control(uint32_t word, int64_t at, struct uop_list *list)
{
	if ((word & 0x7e000000) == 0x34000000)
		return arm_compare_branch(word, at, list);
	if ((word & 0xff00001e) == 0x54000000)		/* b.eq, b.ne */
		uop_add_jump(list, UOP_BRANCH, at + 4 * uop_sign_extend(word >> 5, 19), word & 1);
	else if ((word & 0xff000010) == 0x54000000)	/* b.cond */
		uop_add_jump(list, UOP_FORK, at + 4 * uop_sign_extend(word >> 5, 19), false);
	else if ((word & 0x7e000000) == 0x36000000)	/* tbz, tbnz */
		uop_add_jump(list, UOP_FORK, at + 4 * uop_sign_extend(word >> 5, 14), false);
	else if ((word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000)
		uop_add(list, UOP_CALL, UOP_NO_REG);	/* bl, blr */
	else if ((word & 0xfc000000) == 0x14000000)	/* b */
		uop_add_jump(list, UOP_JUMP, at + 4 * uop_sign_extend(word, 26), false);
	else if (word == 0xd65f03c0 || word == 0xd65f0bff || word == 0xd65f0fff)
		uop_add(list, UOP_RETURN, UOP_NO_REG);	/* ret, retaa, retab */
	else if ((word & 0xfffffc1f) == 0xd61f0000)	/* br */
		uop_add(list, UOP_LEAVE, UOP_NO_REG);
	else
		return false;
	return true;
}

/* orr of an immediate, modelled for one bit: the pattern of one 1, rotated right by immr */
static bool arm_or(uint32_t word, struct uop_list *list)
{
	unsigned int bits = word & 1u << 22 ? 64 : 32, turn = word >> 16 & 63;
	unsigned int size = word >> 31 ? 8 : 4, reg = arm_target(word);

	if (reg == UOP_NO_REG || word >> 10 & 63 || bits != 8 * size) {
		uop_add(list, UOP_FORGET, reg);
		return true;
	}
	uop_add_move(list, reg, arm_base(word), size);
	uop_add_number(list, UOP_OR_NUMBER, reg, (int64_t)(1ull << (bits - turn) % bits), size);
	return true;
}

/* Operations between registers. */
static bool arm_register(uint32_t word, struct uop_list *list)
{
	if ((word & 0x7fe0ffe0) == 0x2a0003e0 && (word >> 16 & 31) != ARM_ZERO)
		uop_add_move(list, arm_target(word), word >> 16 & 31, word >> 31 ? 8 : 4);
	else if ((word & 0x7fffffe0) == 0x2a1f03e0)	/* mov of zr */
		uop_add_number(list, UOP_NUMBER, arm_target(word), 0, 8);
	else if ((word & 0x7fe00000) == 0x52800000)	/* movz */
		uop_add_number(list, UOP_NUMBER, arm_target(word), word >> 5 & 0xffff, 8);
	else if ((word & 0xffe0fc00) == 0x8b000000)	/* add */
		uop_add_sum(list, arm_target(word), arm_base(word), word >> 16 & 31);
	else if ((word & 0x7fffffe0) == 0x1a9f17e0)	/* cset eq */
		uop_add(list, UOP_SET_EQUAL, arm_target(word));
	else if ((word & 0x9f000000) == 0x90000000 || (word & 0x9f000000) == 0x10000000)
		uop_add_memory(list, UOP_ADD_NUMBER, arm_target(word), UOP_GLOBAL, 0, 8);
	else if ((word & 0x3fe00000) == 0x1a800000 || (word & 0x3e000000) == 0x0a000000)
		uop_add(list, UOP_FORGET, arm_target(word));	/* csel, …; and, eor, add, sub */
	else
		return false;
	return true;
}

static bool accessor_arm_decode(struct cursor *code, struct uop_list *list)
{
	int64_t at = (int64_t)code->pos;
	uint32_t word = (uint32_t)cursor_uint(code, 4);

	if ((word & 0xfffff01f) == 0xd503201f)
		return true;		/* a hint: nop, bti, paciasp, … */
	if (word == 0x910003fd)
		return true;		/* mov x29, sp */
	if ((word & 0xfe0003e0) == 0xa80003e0)
		return arm_stack(word, list);
	if ((word & 0xff800000) == 0xa9000000)
		return arm_pair(word, list);
	if ((word & 0x1f000000) == 0x11000000)
		return arm_immediate(word, list);
	if ((word & 0x3a000000) == 0x38000000)
		return arm_memory(word, list);
	if ((word & 0x7f800000) == 0x32000000)
		return arm_or(word, list);
	return arm_control(word, at, list) || arm_register(word, list);
}

/* Return the address that the adrp @word at @vaddr yields. */
static uint64_t arm_page(uint32_t word, uint64_t vaddr)
{
	int64_t pages = uop_sign_extend((word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3), 21);

	return (vaddr & ~(uint64_t)0xfff) + ((uint64_t)pages << 12);
}

/* adrp xN, page; ldr x0, [xN, #offset]; ret; optionally behind bti c */
static int accessor_arm_global(const unsigned char *code, size_t size, uint64_t vaddr,
			       uint64_t *variable)
{
	struct cursor c = cursor_over(code, size, false);
	uint32_t page = (uint32_t)cursor_uint(&c, 4), load, ret;

	if (page == 0xd503245f) {
		page = (uint32_t)cursor_uint(&c, 4);
		vaddr += 4;
	}
	load = (uint32_t)cursor_uint(&c, 4);
	ret = (uint32_t)cursor_uint(&c, 4);
	if ((page & 0x9f000000) != 0x90000000 || (load & 0xffc0001f) != 0xf9400000 ||
	    (load >> 5 & 31) != (page & 31) || ret != 0xd65f03c0)
		return -EINVAL;
	*variable = arm_page(page, vaddr) + (load >> 10 & 0xfff) * 8;
	return 0;
}

/* A register's content, as far as it is known. */
struct arm_content {
	enum { ARM_UNKNOWN, ARM_ADDRESS, ARM_ELEMENT } kind;
	uint64_t address;	/* ARM_ELEMENT: of element 0 */
};

/* Return what the instruction @word at @vaddr writes to its destination. */
static struct arm_content arm_result(uint32_t word, uint64_t vaddr, const struct arm_content *regs)
{
	struct arm_content from = regs[word >> 5 & 31], sum = regs[word >> 10 & 31];

	if ((word & 0x9f000000) == 0x90000000)	/* adrp */
		return (struct arm_content){ ARM_ADDRESS, arm_page(word, vaddr) };
	if ((word & 0xffc00000) == 0x91000000 && from.kind == ARM_ADDRESS) {	/* add */
		from.address += word >> 10 & 0xfff;
		return from;
	}
	/* madd, smaddl, umaddl */
	if (((word & 0xffe08000) == 0x9b000000 || (word & 0xff608000) == 0x9b200000) &&
	    sum.kind == ARM_ADDRESS) {
		sum.kind = ARM_ELEMENT;
		return sum;
	}
	return (struct arm_content){ ARM_UNKNOWN, 0 };
}

/* Registers are followed in the order of the code: a branch to an error message is skipped. */
static int accessor_arm_element(const unsigned char *code, size_t size, uint64_t vaddr,
				struct accessor_element *out)
{
	struct cursor c = cursor_over(code, size, false);
	struct arm_content regs[32] = { { ARM_UNKNOWN, 0 } };
	unsigned int indexes = 0, members = 0;

	while (cursor_left(&c) >= 4) {
		uint64_t at = vaddr + c.pos;
		uint32_t word = (uint32_t)cursor_uint(&c, 4);
		const struct arm_content *from = &regs[word >> 5 & 31];
		int64_t to = (int64_t)(from->address - vaddr + (word >> 10 & 0xfff) * 4);

		/* ldr wN, ldrsw xN */
		if (((word & 0xffc00000) == 0xb9400000 || (word & 0xffc00000) == 0xb9800000) &&
		    from->kind == ARM_ADDRESS) {
			out->index = to;
			indexes++;
		} else if ((word & 0xffc00000) == 0xb9400000 && from->kind == ARM_ELEMENT) {
			out->member = to;
			members++;
		}
		regs[word & 31] = arm_result(word, at, regs);
	}
	return indexes == 1 && members == 1 ? 0 : -EINVAL;
}

/* b, b.cond, cbz, cbnz, tbz and tbnz */
static uint64_t arm_jump_target(struct cursor code, uint64_t vaddr, unsigned int len)
{
	uint32_t word = (uint32_t)cursor_uint(&code, 4);
	int64_t distance = 0;

	(void)len;
	if (word >> 26 == 0x05)
		distance = (int32_t)(word << 6) >> 4;
	else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
		distance = (int32_t)(word << 8) >> 11 & ~3;
	else if ((word & 0x7e000000) == 0x36000000)
		distance = (int32_t)(word << 13) >> 16 & ~3;
	return distance ? vaddr + (uint64_t)distance : 0;
}

/* bl. Instructions have no other form of a direct call. */
static uint64_t arm_call_target(struct cursor code, uint64_t vaddr)
{
	uint32_t word = (uint32_t)cursor_uint(&code, 4);
	int64_t distance = (int32_t)(word << 6) >> 4;

	return word >> 26 == 0x25 ? vaddr + (uint64_t)distance : 0;
}

/* ldr x0, [xn, #offset] */
static int arm_member_load(uint32_t word, int64_t offset)
{
	uint32_t n = word >> 5 & 31;

	if ((word & 0xffc0001f) != 0xf9400000 || n == 31 ||
	    8 * (word >> 10 & 0xfff) != (uint64_t)offset)
		return -1;
	return (int)n;
}

/* The return address is in a register, which a call overwrites: bl, blr. */
static int arm_stack_growth(struct cursor code)
{
	uint32_t word = (uint32_t)cursor_uint(&code, 4);

	return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000 ? -1 : 0;
}

const struct arch_code arch_aarch64_code = {
	.insn_align = 4,
	.args = { 0, 1, 2, 3, 4, 5 },
	.returns = { 0, 1 },
	.zero_reg = 31,			/* xzr */
	.preserved = 0x3ff80000,	/* x19 to x29 */
	.jump_target = arm_jump_target,
	.call_target = arm_call_target,
	.stack_growth = arm_stack_growth,
	.return_address = "%x30",
	.member_load = arm_member_load,
	.decode = accessor_arm_decode,
	.global = accessor_arm_global,
	.element = accessor_arm_element,
};
