// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The instructions of riscv64: those that accessors consist of, calls, jumps and prologues.
 * Compressed instructions are decoded as what they are short for.
 *
 * Source of the encodings: RISC-V Instruction Set Manual, volume I, RV64I.
 */
#include <errno.h>

#include "usdt/accessor.h"
#include "usdt/accessor_op.h"
#include "usdt/arch.h"
#include "usdt/riscv_compressed.h"

enum { RISCV_ZERO, RISCV_RA, RISCV_SP, RISCV_GP, RISCV_A0 = 10 };

/* Major opcodes. */
enum {
	RISCV_LOAD = 0x03, RISCV_IMMEDIATE = 0x13, RISCV_AUIPC = 0x17, RISCV_IMMEDIATE_32 = 0x1b,
	RISCV_STORE = 0x23, RISCV_REGISTER = 0x33, RISCV_LUI = 0x37, RISCV_REGISTER_32 = 0x3b,
	RISCV_BRANCH = 0x63, RISCV_JALR = 0x67, RISCV_JAL = 0x6f,
};

#define RISCV_RET	0x00008067	/* jalr zero, 0(ra) */
#define RISCV_LPAD	0x00000017	/* auipc zero, 0: Zicfilp's landing pad without a label */

static uint32_t riscv_opcode(uint32_t word)
{
	return word & 0x7f;
}

static unsigned int riscv_rd(uint32_t word)
{
	return word >> 7 & 31;
}

static unsigned int riscv_rs1(uint32_t word)
{
	return word >> 15 & 31;
}

static unsigned int riscv_rs2(uint32_t word)
{
	return word >> 20 & 31;
}

static unsigned int riscv_funct3(uint32_t word)
{
	return word >> 12 & 7;
}

/* The immediates of the formats I, S, U, J and B. */
static int64_t riscv_number(uint32_t word)
{
	return (int32_t)word >> 20;
}

static int64_t riscv_store_offset(uint32_t word)
{
	return uop_sign_extend(word >> 25 << 5 | riscv_rd(word), 12);
}

static int64_t riscv_upper(uint32_t word)
{
	return (int32_t)(word & 0xfffff000);
}

static int64_t riscv_jump_distance(uint32_t word)
{
	return uop_sign_extend((word >> 31 << 20) | (word & 0xff000) | (word >> 20 & 1) << 11 |
			       (word >> 20 & 0x7fe), 21);
}

static int64_t riscv_branch_distance(uint32_t word)
{
	return uop_sign_extend((word >> 31 << 12) | (word >> 7 & 1) << 11 |
			       (word >> 20 & 0x7e0) | (word >> 7 & 0x1e), 13);
}

/* Read the next instruction, expanded to 32 bits; 0 if it is truncated or not known. */
static uint32_t riscv_next(struct cursor *code)
{
	uint32_t half = (uint32_t)cursor_uint(code, 2);

	if ((half & 3) != 3)
		return code->bad ? 0 : riscv_expand((uint16_t)half);
	half |= (uint32_t)cursor_uint(code, 2) << 16;
	return code->bad || (half & 0x1f) == 0x1f ? 0 : half;
}

static unsigned int riscv_length(const unsigned char *code, size_t size)
{
	struct cursor c = cursor_over(code, size, false);
	uint32_t half = (uint32_t)cursor_uint(&c, 2);
	unsigned int length = (half & 3) != 3 ? 2 : 4;

	/* Zeros are an undefined instruction, five ones the start of a longer one. */
	return size < length || !half || (half & 0x1f) == 0x1f ? 0 : length;
}

/* A destination; writes to zero are ignored, sp is not modelled. */
static unsigned int riscv_target(uint32_t word)
{
	unsigned int reg = riscv_rd(word);

	return reg == RISCV_ZERO || reg == RISCV_SP ? UOP_NO_REG : reg;
}

/* A source. gp points to variables. */
static unsigned int riscv_source(uint32_t word)
{
	unsigned int reg = riscv_rs1(word);

	return reg == RISCV_SP ? UOP_NO_REG : reg == RISCV_GP ? UOP_GLOBAL : reg;
}

static bool riscv_load(uint32_t word, struct uop_list *list)
{
	unsigned int funct3 = riscv_funct3(word);

	uop_add_memory(list, UOP_LOAD, riscv_target(word), riscv_source(word), riscv_number(word),
		       1u << (funct3 & 3));
	return funct3 != 7;
}

/* The stack is not modelled. */
static bool riscv_store(uint32_t word, struct uop_list *list)
{
	unsigned int funct3 = riscv_funct3(word);

	if (riscv_rs1(word) != RISCV_SP)
		uop_add_memory(list, UOP_STORE, riscv_rs2(word), riscv_source(word),
			       riscv_store_offset(word), 1u << (funct3 & 3));
	return funct3 < 4;
}

/* sltiu @rd, @rs, 1: whether @rs is 0 */
static bool riscv_is_seqz(uint32_t word)
{
	return (word & 0xfff0707f) == (1u << 20 | 3u << 12 | RISCV_IMMEDIATE);
}

/*
 * addi, addiw or xori, and seqz of the result: together a comparison with a number. A jump between
 * the two leads to an uncommon value of the result; it is a comparison with 0 there.
 */
static bool riscv_compare(uint32_t word, struct cursor *code, struct uop_list *list)
{
	struct cursor at = *code;
	uint32_t next = riscv_next(&at);
	bool is_xor = riscv_funct3(word) == 4;

	if (!riscv_is_seqz(next) || riscv_rs1(next) != riscv_rd(word) || !riscv_rd(word) ||
	    !riscv_rs1(word))
		return false;
	uop_add_number(list, UOP_COMPARE, riscv_source(word),
		       is_xor ? riscv_number(word) : -riscv_number(word), 0);
	uop_add(list, UOP_FORGET, riscv_target(word));
	uop_add(list, UOP_SET_EQUAL, riscv_target(next));
	*code = at;
	return true;
}

/* addi and addiw: li, mv, nop, sext.w and additions */
static void riscv_add_number(uint32_t word, bool wide, struct uop_list *list)
{
	unsigned int target = riscv_target(word);

	if (riscv_rs1(word) == RISCV_ZERO)
		uop_add_number(list, UOP_NUMBER, target, riscv_number(word), 8);
	else if (wide || riscv_number(word))
		uop_add_memory(list, UOP_ADD_NUMBER, target, riscv_source(word),
			       riscv_number(word), 8);
	if (!wide)
		uop_add_move(list, target, riscv_number(word) ? target : riscv_source(word), 4);
}

static bool riscv_immediate(uint32_t word, struct cursor *code, struct uop_list *list)
{
	unsigned int funct3 = riscv_funct3(word);
	bool wide = riscv_opcode(word) == RISCV_IMMEDIATE;

	if ((!funct3 || (wide && funct3 == 4)) && riscv_compare(word, code, list))
		return true;
	if (riscv_is_seqz(word)) {
		uop_add_number(list, UOP_COMPARE, riscv_source(word), 0, 0);
		uop_add(list, UOP_SET_EQUAL, riscv_target(word));
	} else if (!funct3) {
		riscv_add_number(word, wide, list);
	} else if (wide && funct3 == 6 && riscv_target(word) != UOP_NO_REG) {	/* ori */
		uop_add_move(list, riscv_target(word), riscv_source(word), 8);
		uop_add_number(list, UOP_OR_NUMBER, riscv_target(word), riscv_number(word), 0);
	} else {
		uop_add(list, UOP_FORGET, riscv_target(word));
	}
	return true;
}

/* Operations between registers; add is modelled, of which mv is a form. */
static bool riscv_register(uint32_t word, struct uop_list *list)
{
	if ((word & 0xfe00707f) != RISCV_REGISTER)
		uop_add(list, UOP_FORGET, riscv_target(word));
	else if (riscv_rs1(word) == RISCV_ZERO)
		uop_add_move(list, riscv_target(word), riscv_rs2(word), 8);
	else
		uop_add_sum(list, riscv_target(word), riscv_source(word), riscv_rs2(word));
	return true;
}

/* The branch at offset @at: beq and bne are modelled. */
static bool riscv_branch(uint32_t word, int64_t at, struct uop_list *list)
{
	int64_t target = at + riscv_branch_distance(word);
	unsigned int funct3 = riscv_funct3(word);

	if (funct3 < 2) {
		uop_add_compare(list, riscv_rs1(word), riscv_rs2(word));
		uop_add_jump(list, UOP_BRANCH, target, funct3);
	} else {
		uop_add_jump(list, UOP_FORK, target, false);
	}
	return funct3 != 2 && funct3 != 3;
}

/* jal and jalr at offset @at. A link register other than ra is that of a helper of prologues. */
static bool riscv_jump(uint32_t word, int64_t at, struct uop_list *list)
{
	unsigned int link = riscv_rd(word);

	if (word == RISCV_RET)
		uop_add(list, UOP_RETURN, UOP_NO_REG);
	else if (link == RISCV_RA)
		uop_add(list, UOP_CALL, UOP_NO_REG);
	else if (riscv_opcode(word) == RISCV_JAL)
		uop_add_jump(list, UOP_JUMP, at + riscv_jump_distance(word), false);
	else
		uop_add(list, UOP_LEAVE, UOP_NO_REG);
	return link == RISCV_RA || link == RISCV_ZERO;
}

static bool riscv_decode(struct cursor *code, struct uop_list *list)
{
	int64_t at = (int64_t)code->pos;
	uint32_t word = riscv_next(code);

	switch (riscv_opcode(word)) {
	case RISCV_LOAD:
		return riscv_load(word, list);
	case RISCV_STORE:
		return riscv_store(word, list);
	case RISCV_IMMEDIATE:
	case RISCV_IMMEDIATE_32:
		return riscv_immediate(word, code, list);
	case RISCV_REGISTER:
	case RISCV_REGISTER_32:
		return riscv_register(word, list);
	case RISCV_LUI:
		uop_add_number(list, UOP_NUMBER, riscv_target(word), riscv_upper(word), 8);
		return true;
	case RISCV_AUIPC:
		uop_add_memory(list, UOP_ADD_NUMBER, riscv_target(word), UOP_GLOBAL, 0, 8);
		return true;
	case RISCV_BRANCH:
		return riscv_branch(word, at, list);
	case RISCV_JAL:
	case RISCV_JALR:
		return riscv_jump(word, at, list);
	}
	return false;
}

/* auipc rN, page; ld a0, offset(rN); ret; optionally behind lpad */
static int riscv_global(const unsigned char *code, size_t size, uint64_t vaddr, uint64_t *variable)
{
	struct cursor c = cursor_over(code, size, false);
	uint32_t page = riscv_next(&c), load;

	if (page == RISCV_LPAD) {
		vaddr += c.pos;
		page = riscv_next(&c);
	}
	load = riscv_next(&c);
	if (riscv_opcode(page) != RISCV_AUIPC || riscv_rs1(load) != riscv_rd(page) ||
	    (load & 0x7fff) != (3u << 12 | RISCV_A0 << 7 | RISCV_LOAD) ||
	    riscv_next(&c) != RISCV_RET)
		return -EINVAL;
	*variable = vaddr + (uint64_t)riscv_upper(page) + (uint64_t)riscv_number(load);
	return 0;
}

/* A register's content, as far as it is known. */
struct riscv_content {
	enum { RISCV_UNKNOWN, RISCV_ADDRESS, RISCV_ELEMENT } kind;
	uint64_t address;	/* RISCV_ELEMENT: of element 0 */
};

/* Return what the instruction @word at @vaddr writes to its destination. */
static struct riscv_content riscv_result(uint32_t word, uint64_t vaddr,
					 const struct riscv_content *regs)
{
	struct riscv_content a = regs[riscv_rs1(word)], b = regs[riscv_rs2(word)];

	if (riscv_opcode(word) == RISCV_AUIPC)
		return (struct riscv_content){ RISCV_ADDRESS,
					       vaddr + (uint64_t)riscv_upper(word) };
	if ((word & 0x707f) == RISCV_IMMEDIATE && a.kind != RISCV_UNKNOWN) {	/* addi */
		a.address += (uint64_t)riscv_number(word);
		return a;
	}
	if ((word & 0xfe00707f) == RISCV_REGISTER) {	/* add */
		if (a.kind == RISCV_ADDRESS && b.kind == RISCV_UNKNOWN)
			return (struct riscv_content){ RISCV_ELEMENT, a.address };
		if (b.kind == RISCV_ADDRESS && a.kind == RISCV_UNKNOWN)
			return (struct riscv_content){ RISCV_ELEMENT, b.address };
	}
	return (struct riscv_content){ RISCV_UNKNOWN, 0 };
}

/* Return whether @word writes rd, and that is not zero. */
static bool riscv_writes(uint32_t word)
{
	return riscv_rd(word) && riscv_opcode(word) != RISCV_STORE &&
	       riscv_opcode(word) != RISCV_BRANCH;
}

/* Registers are followed in the order of the code: a branch to an error message is skipped. */
static int riscv_element(const unsigned char *code, size_t size, uint64_t vaddr,
			 struct accessor_element *out)
{
	struct cursor c = cursor_over(code, size, false);
	struct riscv_content regs[32] = { { RISCV_UNKNOWN, 0 } };
	unsigned int indexes = 0, members = 0;

	while (cursor_left(&c) >= 2) {
		uint64_t at = vaddr + c.pos;
		uint32_t word = riscv_next(&c);
		const struct riscv_content *from = &regs[riscv_rs1(word)];
		int64_t to = (int64_t)(from->address - vaddr) + riscv_number(word);
		bool is_lw = (word & 0x707f) == (2u << 12 | RISCV_LOAD);

		if (is_lw && from->kind == RISCV_ADDRESS) {
			out->index = to;
			indexes++;
		} else if (is_lw && from->kind == RISCV_ELEMENT) {
			out->member = to;
			members++;
		}
		if (riscv_writes(word))
			regs[riscv_rd(word)] = riscv_result(word, at, regs);
	}
	return indexes == 1 && members == 1 ? 0 : -EINVAL;
}

static uint64_t riscv_jump_target(struct cursor code, uint64_t vaddr, unsigned int len)
{
	uint32_t word = riscv_next(&code);

	(void)len;
	if (riscv_opcode(word) == RISCV_BRANCH)
		return vaddr + (uint64_t)riscv_branch_distance(word);
	if (riscv_opcode(word) == RISCV_JAL && riscv_rd(word) == RISCV_ZERO)
		return vaddr + (uint64_t)riscv_jump_distance(word);
	return 0;
}

/* jal; or auipc and jalr, at the auipc: the kernel emulates it, and the arguments are complete. */
static uint64_t riscv_call_target(struct cursor code, uint64_t vaddr)
{
	uint32_t word = riscv_next(&code), next;

	if (riscv_rd(word) != RISCV_RA)
		return 0;
	if (riscv_opcode(word) == RISCV_JAL)
		return vaddr + (uint64_t)riscv_jump_distance(word);
	next = riscv_next(&code);
	if (riscv_opcode(word) != RISCV_AUIPC || riscv_opcode(next) != RISCV_JALR ||
	    riscv_rd(next) != RISCV_RA || riscv_rs1(next) != RISCV_RA)
		return 0;
	return vaddr + (uint64_t)riscv_upper(word) + (uint64_t)riscv_number(next);
}

/* ld a0, offset(rN), or its compressed form in the second half of @word */
static int riscv_member_load(uint32_t word, int64_t offset)
{
	uint32_t half = word >> 16;
	unsigned int n;

	if ((word & 3) != 3 && (half & 3) != 3)
		word = riscv_expand((uint16_t)half);
	else if ((half & 3) == 0 && (word & 0x707f) != (3u << 12 | RISCV_LOAD))
		word = riscv_expand((uint16_t)half);
	n = riscv_rs1(word);
	if ((word & 0x7fff) != (3u << 12 | RISCV_A0 << 7 | RISCV_LOAD) || n == RISCV_ZERO ||
	    n == RISCV_SP || riscv_number(word) != offset)
		return -1;
	return (int)n;
}

/* The return address is in ra, which a call overwrites. */
static int riscv_stack_growth(struct cursor code)
{
	uint32_t word = riscv_next(&code);

	return !word || (riscv_writes(word) && riscv_rd(word) == RISCV_RA) ? -1 : 0;
}

/* By code number. */
static const char riscv_reg_names[32][ARCH_REG_NAME] = {
	"x0", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
	"a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
	"t5", "t6",
};

const struct arch_code arch_riscv_code = {
	.insn_align = 2,
	.args = { 10, 11, 12, 13, 14, 15 },
	.returns = { 10, 11 },
	.zero_reg = RISCV_ZERO,
	.preserved = 0x0ffc0300,	/* s0 to s11 */
	.reg_names = riscv_reg_names,
	.landing_pad = { 0x17, 0x00, 0x00, 0x00 },	/* a jump to a breakpoint would fail */
	.length = riscv_length,
	.jump_target = riscv_jump_target,
	.call_target = riscv_call_target,
	.stack_growth = riscv_stack_growth,
	.return_address = "ra",
	.member_load = riscv_member_load,
	.decode = riscv_decode,
	.global = riscv_global,
	.element = riscv_element,
};
