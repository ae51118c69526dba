// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Source of the encodings: Intel 64 and IA-32 Software Developer's Manual,
 * volume 2, and Arm Architecture Reference Manual for A-profile, C4 and C6.
 */
#include "usdt/accessor.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "usdt/cursor.h"

#define BODY_MAX	256	/* the longest accessor seen has 60 bytes */
#define OFFSET_MAX	(1 << 20)
#define STEPS_MAX	64
#define TESTS_MAX	4
#define FORKS_MAX	8	/* on a path; 4 is the most seen */
#define LOADS_MAX	2
#define OPS_MAX		3
#define REGS		34
#define NO_REG		32	/* nothing is known of it: %rip, sp, xzr as a destination */
#define TEMP		33

/* What a register holds */

enum value_kind {
	VALUE_UNKNOWN,
	VALUE_NUMBER,		/* number */
	VALUE_MEMBER,		/* argument + offset[0]; loads times: what lies there, + offset */
	VALUE_SUM,		/* the second argument + the object's member at offset[0] */
	VALUE_EQUALS,		/* whether the VALUE_MEMBER is number */
};

struct value {
	enum value_kind kind;
	uint8_t argument, loads;
	uint8_t size;		/* bytes that count */
	int64_t offset[LOADS_MAX + 1];
	int64_t number;
};

/* An instruction, as steps that both architectures have */

enum op_kind {
	OP_LOAD,		/* reg = size bytes at base + number */
	OP_STORE,		/* the other way round */
	OP_ADD_NUMBER,		/* reg = base + number */
	OP_ADD,			/* reg = base + index */
	OP_MOVE,		/* reg = size bytes of base */
	OP_NUMBER,		/* reg = number */
	OP_FORGET,		/* reg = something */
	OP_COMPARE,		/* sets the flags by size bytes of reg against number */
	OP_SET_EQUAL,		/* reg = the flags say equal */
	OP_BRANCH,		/* to target if the flags say equal, or with number: not equal */
	OP_FORK,		/* to target or not, for a reason that is not known here */
	OP_JUMP,		/* to target; outside the body: a call without a return here */
	OP_LEAVE,		/* the same to an address in memory or in a register */
	OP_CALL,
	OP_RETURN,
	OP_CLOBBER_FLAGS,
};

struct op {
	enum op_kind kind;
	uint8_t reg, base, index, size;
	int64_t number;
	int64_t target;		/* from the body's start */
};

struct insn {
	struct op ops[OPS_MAX];
	unsigned int count;
};

static struct op *insn_add(struct insn *insn, enum op_kind kind, unsigned int reg)
{
	struct op *op = &insn->ops[insn->count++];

	*op = (struct op){ .kind = kind, .reg = (uint8_t)reg, .base = NO_REG, .index = NO_REG,
			   .size = 8 };
	return op;
}

static void insn_memory(struct insn *insn, enum op_kind kind, unsigned int reg, unsigned int base,
			int64_t offset, unsigned int size)
{
	struct op *op = insn_add(insn, kind, reg);

	op->base = (uint8_t)base;
	op->number = offset;
	op->size = (uint8_t)size;
}

static void insn_sum(struct insn *insn, unsigned int reg, unsigned int base, unsigned int index)
{
	struct op *op = insn_add(insn, OP_ADD, reg);

	op->base = (uint8_t)base;
	op->index = (uint8_t)index;
}

static void insn_move(struct insn *insn, unsigned int reg, unsigned int base, unsigned int size)
{
	struct op *op = insn_add(insn, OP_MOVE, reg);

	op->base = (uint8_t)base;
	op->size = (uint8_t)size;
}

static void insn_number(struct insn *insn, enum op_kind kind, unsigned int reg, int64_t number,
			unsigned int size)
{
	struct op *op = insn_add(insn, kind, reg);

	op->number = number;
	op->size = (uint8_t)size;
}

static void insn_target(struct insn *insn, enum op_kind kind, int64_t target, bool if_not)
{
	struct op *op = insn_add(insn, kind, NO_REG);

	op->target = target;
	op->number = if_not;
}

static int64_t sign_extend(uint64_t value, unsigned int bits)
{
	uint64_t sign = 1ull << (bits - 1);

	value &= sign * 2 - 1;
	return (int64_t)((value ^ sign) - sign);
}

/* x86-64 */

struct x86 {
	struct cursor *code;
	bool wide;		/* REX.W */
	unsigned int rex;
	bool is_reg;		/* r/m is register ->base, else memory at ->base + ->disp */
	unsigned int reg, base;
	int64_t disp;
};

#define X86_SP	4

static int64_t x86_signed(struct x86 *x, unsigned int bytes)
{
	return sign_extend(cursor_uint(x->code, bytes), 8 * bytes);
}

static void x86_modrm(struct x86 *x)
{
	unsigned int byte = (unsigned int)cursor_uint(x->code, 1), mod = byte >> 6, rm = byte & 7;

	x->reg = (byte >> 3 & 7) | (x->rex & 4) << 1;
	x->base = rm | (x->rex & 1) << 3;
	x->disp = 0;
	x->is_reg = mod == 3;
	if (x->is_reg)
		return;
	if (rm == 4) {
		unsigned int sib = (unsigned int)cursor_uint(x->code, 1);

		x->base = (sib & 7) | (x->rex & 1) << 3;
		/* An index: nothing is known of the address */
		if ((sib >> 3 & 7) != 4 || x->rex & 2 || (!mod && (sib & 7) == 5)) {
			x->base = NO_REG;
			if (!mod && (sib & 7) == 5)
				mod = 2;
		}
	} else if (!mod && rm == 5) {
		x->base = NO_REG;	/* %rip */
		mod = 2;
	}
	if (mod)
		x->disp = x86_signed(x, mod == 1 ? 1 : 4);
	if (x->base == X86_SP)
		x->base = NO_REG;
}

static unsigned int x86_size(const struct x86 *x)
{
	return x->wide ? 8 : 4;
}

/* Without REX, 4 to 7 are %ah to %bh. */
static bool x86_has_byte(const struct x86 *x)
{
	return x->base < 4 || x->rex;
}

/* reg = r/m, of which @size bytes count */
static bool x86_load(struct x86 *x, struct insn *insn, unsigned int size)
{
	x86_modrm(x);
	if (x->is_reg)
		insn_move(insn, x->reg, x->base, size);
	else
		insn_memory(insn, OP_LOAD, x->reg, x->base, x->disp, size);
	return size > 1 || !x->is_reg || x86_has_byte(x);
}

static bool x86_store(struct x86 *x, struct insn *insn)
{
	x86_modrm(x);
	if (x->is_reg)
		insn_move(insn, x->base, x->reg, x86_size(x));
	else
		insn_memory(insn, OP_STORE, x->reg, x->base, x->disp, x86_size(x));
	return true;
}

static bool x86_lea(struct x86 *x, struct insn *insn)
{
	x86_modrm(x);
	if (x->wide)
		insn_memory(insn, OP_ADD_NUMBER, x->reg, x->base, x->disp, 8);
	else
		insn_add(insn, OP_FORGET, x->reg);
	return !x->is_reg;
}

/* A result that is not told: it goes to the register or to memory. */
static void x86_forget(struct x86 *x, struct insn *insn, bool to_reg)
{
	if (x->is_reg || to_reg)
		insn_add(insn, OP_FORGET, to_reg ? x->reg : x->base);
	else
		insn_memory(insn, OP_STORE, NO_REG, x->base, x->disp, x86_size(x));
	insn_add(insn, OP_CLOBBER_FLAGS, NO_REG);
}

/* 01 to 29 to r/m, 03 to 2b to reg: add, which is told of 8 bytes, or, adc, sbb, and, sub */
static bool x86_arithmetic(struct x86 *x, struct insn *insn, unsigned int opcode)
{
	bool to_reg = opcode & 2;

	x86_modrm(x);
	if (opcode > 3 || !x->wide || x->is_reg) {
		x86_forget(x, insn, to_reg);
		return true;
	}
	insn_memory(insn, OP_LOAD, TEMP, x->base, x->disp, 8);
	insn_sum(insn, to_reg ? x->reg : TEMP, TEMP, x->reg);
	if (!to_reg)
		insn_memory(insn, OP_STORE, TEMP, x->base, x->disp, 8);
	else
		insn_add(insn, OP_CLOBBER_FLAGS, NO_REG);
	return true;
}

/* 80, 81 and 83, of r/m and an immediate: cmp, add and sub are told, the others forgotten */
static bool x86_immediate(struct x86 *x, struct insn *insn, unsigned int opcode)
{
	unsigned int size = opcode == 0x80 ? 1 : x86_size(x), what;
	int64_t number;

	x86_modrm(x);
	number = x86_signed(x, opcode == 0x81 ? 4 : 1);
	what = x->reg & 7;
	if (x->is_reg && size == 1)
		return false;
	if (what == 7) {
		if (!x->is_reg)
			insn_memory(insn, OP_LOAD, TEMP, x->base, x->disp, size);
		insn_number(insn, OP_COMPARE, x->is_reg ? x->base : TEMP, number, size);
		return true;
	}
	if (!x->is_reg || !x->wide || (what != 0 && what != 5)) {
		x86_forget(x, insn, false);
		return true;
	}
	insn_memory(insn, OP_ADD_NUMBER, x->base, x->base, what ? -number : number, 8);
	insn_add(insn, OP_CLOBBER_FLAGS, NO_REG);
	return true;
}

/* mov of an immediate: c6 one byte to memory, c7 */
static bool x86_set(struct x86 *x, struct insn *insn, bool byte)
{
	x86_modrm(x);
	x86_signed(x, byte ? 1 : 4);
	x86_forget(x, insn, false);
	return !(x->reg & 7) && !(byte && x->is_reg);
}

static bool x86_test(struct x86 *x, struct insn *insn)
{
	x86_modrm(x);
	if (!x->is_reg || x->base != x->reg)
		return false;
	insn_number(insn, OP_COMPARE, x->reg, 0, x86_size(x));
	return true;
}

static bool x86_xor(struct x86 *x, struct insn *insn)
{
	x86_modrm(x);
	if (!x->is_reg || x->base != x->reg)
		return false;
	insn_number(insn, OP_NUMBER, x->reg, 0, 8);
	insn_add(insn, OP_CLOBBER_FLAGS, NO_REG);
	return true;
}

static bool x86_branch(struct x86 *x, struct insn *insn, enum op_kind kind, unsigned int bytes,
		       bool if_not)
{
	int64_t distance = x86_signed(x, bytes);

	insn_target(insn, kind, (int64_t)x->code->pos + distance, if_not);
	return true;
}

/* jo to jg, of which je and jne are told apart */
static bool x86_condition(struct x86 *x, struct insn *insn, unsigned int opcode,
			  unsigned int bytes)
{
	return x86_branch(x, insn, (opcode & 0xe) == 4 ? OP_BRANCH : OP_FORK, bytes, opcode & 1);
}

/* Behind 0f */
static bool x86_two(struct x86 *x, struct insn *insn)
{
	unsigned int opcode = (unsigned int)cursor_uint(x->code, 1);

	if ((opcode & 0xf0) == 0x80)
		return x86_condition(x, insn, opcode, 4);
	switch (opcode) {
	case 0x94:
		x86_modrm(x);
		insn_add(insn, OP_SET_EQUAL, x->base);
		return x->is_reg && x86_has_byte(x);
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf:
		return x86_load(x, insn, opcode & 1 ? 2 : 1);
	}
	return false;
}

static bool x86_one(struct x86 *x, struct insn *insn, unsigned int opcode)
{
	unsigned int low = (opcode & 7) | (x->rex & 1) << 3;

	switch (opcode) {
	case 0x01:
	case 0x03:
	case 0x09:
	case 0x0b:
	case 0x11:
	case 0x13:
	case 0x19:
	case 0x1b:
	case 0x21:
	case 0x23:
	case 0x29:
	case 0x2b:
		return x86_arithmetic(x, insn, opcode);
	case 0x05:
		if (!x->wide)
			return false;
		insn_memory(insn, OP_ADD_NUMBER, 0, 0, x86_signed(x, 4), 8);
		insn_add(insn, OP_CLOBBER_FLAGS, NO_REG);
		return true;
	case 0x31:
	case 0x33:
		return x86_xor(x, insn);
	case 0x63:
		return x->wide && x86_load(x, insn, 4);
	case 0x80:
	case 0x81:
	case 0x83:
		return x86_immediate(x, insn, opcode);
	case 0x85:
		return x86_test(x, insn);
	case 0x89:
		return x86_store(x, insn);
	case 0x8b:
		return x86_load(x, insn, x86_size(x));
	case 0x8d:
		return x86_lea(x, insn);
	case 0x90:
		return !x->rex;
	case 0xc3:
		insn_add(insn, OP_RETURN, NO_REG);
		return true;
	case 0xc6:
	case 0xc7:
		return x86_set(x, insn, opcode == 0xc6);
	case 0xc9:
		insn_add(insn, OP_FORGET, 5);	/* leave */
		return true;
	case 0xe8:
		return x86_branch(x, insn, OP_CALL, 4, false);
	case 0xe9:
		return x86_branch(x, insn, OP_JUMP, 4, false);
	case 0xeb:
		return x86_branch(x, insn, OP_JUMP, 1, false);
	case 0xff:
		x86_modrm(x);
		insn_add(insn, (x->reg & 7) == 2 ? OP_CALL : OP_LEAVE, NO_REG);
		return (x->reg & 7) == 2 || (x->reg & 7) == 4;
	}
	if (opcode >= 0x70 && opcode <= 0x7f)
		return x86_condition(x, insn, opcode, 1);
	if (opcode >= 0x50 && opcode <= 0x57)
		return true;		/* push; what it stores is never looked at again */
	if (opcode >= 0x58 && opcode <= 0x5f) {
		insn_add(insn, OP_FORGET, low);
		return true;
	}
	if (opcode >= 0xb8 && opcode <= 0xbf && !x->wide) {
		insn_number(insn, OP_NUMBER, low, (int64_t)cursor_uint(x->code, 4), 8);
		return true;
	}
	return false;
}

/* endbr64, and nops with any number of prefixes */
static bool x86_padding(struct cursor *code)
{
	struct cursor at = *code;
	unsigned int byte = 0, prefixes = 0;

	if (cursor_uint(&at, 4) == 0xfa1e0ff3) {
		*code = at;
		return true;
	}
	for (at = *code; prefixes < 8; prefixes++) {
		byte = (unsigned int)cursor_uint(&at, 1);
		if (byte != 0x66 && byte != 0x2e)
			break;
	}
	if (byte == 0x0f && cursor_uint(&at, 1) == 0x1f)
		x86_modrm(&(struct x86){ .code = &at });
	else if (byte != 0x90 || !prefixes)
		return false;
	*code = at;
	return !at.bad;
}

static bool x86_decode(struct cursor *code, struct insn *insn)
{
	struct x86 x = { .code = code };
	unsigned int opcode;

	if (x86_padding(code))
		return true;
	opcode = (unsigned int)cursor_uint(code, 1);
	if (opcode == 0xf3)		/* rep ret */
		return cursor_uint(code, 1) == 0xc3 && insn_add(insn, OP_RETURN, NO_REG);
	if ((opcode & 0xf0) == 0x40) {
		x.rex = opcode;
		x.wide = opcode & 8;
		opcode = (unsigned int)cursor_uint(code, 1);
	}
	return opcode == 0x0f ? x86_two(&x, insn) : x86_one(&x, insn, opcode);
}

/* aarch64 */

#define ARM_ZERO	31	/* xzr, or sp where an address is meant */

static unsigned int arm_base(uint32_t word)
{
	unsigned int base = word >> 5 & 31;

	return base == ARM_ZERO ? NO_REG : base;
}

static unsigned int arm_target(uint32_t word)
{
	return (word & 31) == ARM_ZERO ? NO_REG : word & 31;
}

/* Loads and stores with an offset that is no number of bytes but of elements, and unscaled ones */
static bool arm_memory(uint32_t word, struct insn *insn)
{
	unsigned int size = 1u << (word >> 30), opc = word >> 22 & 3;
	enum op_kind kind = opc ? OP_LOAD : OP_STORE;
	unsigned int reg = kind == OP_LOAD ? arm_target(word) : word & 31;

	if ((word & 0x3b000000) == 0x39000000)
		insn_memory(insn, kind, reg, arm_base(word),
			    (int64_t)(word >> 10 & 0xfff) * size, size);
	else if ((word & 0x3b200c00) == 0x38000000)
		insn_memory(insn, kind, reg, arm_base(word), sign_extend(word >> 12, 9), size);
	else if ((word & 0x3be0fc00) == 0x38606800) {
		/* [base, index] */
		insn_sum(insn, TEMP, arm_base(word), word >> 16 & 31);
		insn_memory(insn, OP_LOAD, reg, TEMP, 0, size);
	} else
		return false;
	return !(word & 1u << 26) && !(opc > 1 && size == 8);	/* neither SIMD nor prfm */
}

static bool arm_pair(uint32_t word, struct insn *insn)
{
	unsigned int first = arm_target(word), second = word >> 10 & 31, base = arm_base(word);
	int64_t offset = 8 * sign_extend(word >> 15, 7);

	if (second == ARM_ZERO)
		second = NO_REG;
	if (!(word & 1u << 22)) {
		insn_memory(insn, OP_STORE, word & 31, base, offset, 8);
		insn_memory(insn, OP_STORE, word >> 10 & 31, base, offset + 8, 8);
		return true;
	}
	insn_memory(insn, OP_LOAD, TEMP, base, offset, 8);
	insn_memory(insn, OP_LOAD, second, base, offset + 8, 8);
	insn_move(insn, first, TEMP, 8);
	return true;
}

/* stp and ldp of the stack's: what is kept there is not followed. */
static bool arm_stack(uint32_t word, struct insn *insn)
{
	if (word & 1u << 22) {
		insn_add(insn, OP_FORGET, arm_target(word));
		insn_add(insn, OP_FORGET, arm_target(word >> 10));
	}
	return true;
}

/* add and sub of an immediate, told where it is 64 bit, and cmp */
static bool arm_immediate(uint32_t word, struct insn *insn)
{
	int64_t number = (int64_t)(word >> 10 & 0xfff) << (word & 1u << 22 ? 12 : 0);
	bool wide = word >> 31, subtracts = word >> 30 & 1, sets_flags = word >> 29 & 1;

	if (word & 1u << 23)
		return false;
	if (sets_flags) {
		insn_number(insn, OP_COMPARE, arm_base(word), number, wide ? 8 : 4);
		return subtracts && (word & 31) == ARM_ZERO;
	}
	if (wide)
		insn_memory(insn, OP_ADD_NUMBER, arm_target(word), arm_base(word),
			    subtracts ? -number : number, 8);
	else
		insn_add(insn, OP_FORGET, arm_target(word));
	return true;
}

static bool arm_compare_branch(uint32_t word, int64_t at, struct insn *insn)
{
	insn_number(insn, OP_COMPARE, word & 31, 0, word >> 31 ? 8 : 4);
	insn_target(insn, OP_BRANCH, at + 4 * sign_extend(word >> 5, 19), word >> 24 & 1);
	return true;
}

static bool arm_control(uint32_t word, int64_t at, struct insn *insn)
{
	if ((word & 0x7e000000) == 0x34000000)
		return arm_compare_branch(word, at, insn);
	if ((word & 0xff00001e) == 0x54000000)
		insn_target(insn, OP_BRANCH, at + 4 * sign_extend(word >> 5, 19), word & 1);
	else if ((word & 0xff000010) == 0x54000000)
		insn_target(insn, OP_FORK, at + 4 * sign_extend(word >> 5, 19), false);
	else if ((word & 0x7e000000) == 0x36000000)	/* tbz, tbnz */
		insn_target(insn, OP_FORK, at + 4 * sign_extend(word >> 5, 14), false);
	else if ((word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000)
		insn_add(insn, OP_CALL, NO_REG);
	else if ((word & 0xfc000000) == 0x14000000)
		insn_target(insn, OP_JUMP, at + 4 * sign_extend(word, 26), false);
	else if (word == 0xd65f03c0 || word == 0xd65f0bff || word == 0xd65f0fff)
		insn_add(insn, OP_RETURN, NO_REG);
	else if ((word & 0xfffffc1f) == 0xd61f0000)
		insn_add(insn, OP_LEAVE, NO_REG);
	else
		return false;
	return true;
}

static bool arm_register(uint32_t word, struct insn *insn)
{
	if ((word & 0x7fe0ffe0) == 0x2a0003e0 && (word >> 16 & 31) != ARM_ZERO)
		insn_move(insn, arm_target(word), word >> 16 & 31, word >> 31 ? 8 : 4);
	else if ((word & 0x7fffffe0) == 0x2a1f03e0)
		insn_number(insn, OP_NUMBER, arm_target(word), 0, 8);
	else if ((word & 0x7fe00000) == 0x52800000)
		insn_number(insn, OP_NUMBER, arm_target(word), word >> 5 & 0xffff, 8);
	else if ((word & 0xffe0fc00) == 0x8b000000)
		insn_sum(insn, arm_target(word), arm_base(word), word >> 16 & 31);
	else if ((word & 0x7fffffe0) == 0x1a9f17e0)
		insn_add(insn, OP_SET_EQUAL, arm_target(word));
	else if ((word & 0x9f000000) == 0x90000000 || (word & 0x9f000000) == 0x10000000)
		insn_add(insn, OP_FORGET, arm_target(word));
	else if ((word & 0x3fe00000) == 0x1a800000 || (word & 0x3e000000) == 0x0a000000)
		insn_add(insn, OP_FORGET, arm_target(word));	/* csel, …; and, eor, add, sub */
	else
		return false;
	return true;
}

static bool arm_decode(struct cursor *code, struct insn *insn)
{
	int64_t at = (int64_t)code->pos;
	uint32_t word = (uint32_t)cursor_uint(code, 4);

	if ((word & 0xfffff01f) == 0xd503201f)
		return true;		/* a hint: nop, bti, paciasp, … */
	if (word == 0x910003fd)
		return true;		/* a frame pointer */
	if ((word & 0xfe0003e0) == 0xa80003e0)
		return arm_stack(word, insn);
	if ((word & 0xff800000) == 0xa9000000)
		return arm_pair(word, insn);
	if ((word & 0x1f000000) == 0x11000000)
		return arm_immediate(word, insn);
	if ((word & 0x3a000000) == 0x38000000)
		return arm_memory(word, insn);
	return arm_control(word, at, insn) || arm_register(word, insn);
}

/* Following the body */

enum end_kind { END_RETURN, END_CALL };

enum purpose { FIND_RESULT, FIND_SET, FIND_COMPARED };

struct state {
	uint16_t machine;
	const unsigned char *code;
	size_t size, pos;
	unsigned int steps, tests;	/* taken so far */
	struct value regs[REGS];
	struct value flags;		/* VALUE_EQUALS, or unknown */
	bool is_null;			/* on the path that a NULL takes */
	bool null_is_zero;		/* all of those returned 0 */
	struct value given;		/* what was stored through the second argument */
	struct value set, added;	/* the object's members that the second argument went to */
	enum purpose purpose;
	struct value *agreed;		/* what all paths so far have set or compared */
	enum end_kind end;
};

static unsigned int state_argument(const struct state *state, unsigned int n)
{
	return state->machine == EM_X86_64 ? 7 - n : n;
}

static struct value state_get(const struct state *state, unsigned int reg)
{
	if (state->machine == EM_AARCH64 && reg == ARM_ZERO)
		return (struct value){ .kind = VALUE_NUMBER, .size = 8 };
	return state->regs[reg];
}

static void state_put(struct state *state, unsigned int reg, struct value value)
{
	if (reg != NO_REG)
		state->regs[reg] = value;
}

static bool value_is_pointer(const struct value *value)
{
	return value->kind == VALUE_MEMBER && value->size == 8;
}

/* Whether it is argument @n as the function got it. */
static bool value_is_argument(const struct value *value, unsigned int n)
{
	return value_is_pointer(value) && value->argument == n && !value->loads &&
	       !value->offset[0];
}

/* Whether it is a member of the object itself, as it lies there. */
static bool value_is_member(const struct value *value)
{
	return value->kind == VALUE_MEMBER && !value->argument && value->loads == 1 &&
	       !value->offset[1];
}

static bool value_same(const struct value *a, const struct value *b)
{
	if (a->kind != b->kind || (a->kind != VALUE_MEMBER && a->kind != VALUE_EQUALS) ||
	    a->size != b->size || a->argument != b->argument || a->loads != b->loads ||
	    a->number != b->number)
		return false;
	for (unsigned int i = 0; i <= a->loads; i++)
		if (a->offset[i] != b->offset[i])
			return false;
	return true;
}

static struct value value_plus(struct value value, int64_t number)
{
	if (value_is_pointer(&value))
		value.offset[value.loads] += number;
	else
		value = (struct value){ 0 };
	return value;
}

static struct value value_load(struct value value, int64_t offset, unsigned int size)
{
	value = value_plus(value, offset);
	if (value.kind != VALUE_MEMBER || value.loads == LOADS_MAX)
		return (struct value){ 0 };
	value.offset[++value.loads] = 0;
	value.size = (uint8_t)size;
	return value;
}

static struct value value_sum(struct value a, struct value b)
{
	if (b.kind == VALUE_NUMBER)
		return value_plus(a, b.number);
	if (a.kind == VALUE_NUMBER)
		return value_plus(b, a.number);
	if (value_is_argument(&a, 1) && value_is_member(&b) && b.size == 8)
		b.kind = VALUE_SUM;
	else if (value_is_argument(&b, 1) && value_is_member(&a) && a.size == 8) {
		b = a;
		b.kind = VALUE_SUM;
	} else
		return (struct value){ 0 };
	return b;
}

/* The low @size bytes. Those of a longer value are something else. */
static struct value value_narrow(struct value value, unsigned int size)
{
	if (value.kind == VALUE_NUMBER ? value.number >> (8 * size - 1) != 0
				       : value.kind != VALUE_EQUALS && value.size > size)
		return (struct value){ 0 };
	return value;
}

/* False: another path has found something else. */
static bool state_agree(const struct state *state, const struct value *value)
{
	if (!state->agreed->kind)
		*state->agreed = *value;
	return value_same(state->agreed, value);
}

/* Tests for NULL say nothing of what is behind the pointer. */
static bool state_compare(struct state *state, const struct op *op)
{
	struct value value = state_get(state, op->reg);

	state->flags = (struct value){ 0 };
	if (value.kind == VALUE_MEMBER && value.size == op->size) {
		state->flags = value;
		state->flags.kind = VALUE_EQUALS;
		state->flags.number = op->number;
	}
	return state->purpose != FIND_COMPARED || state->flags.kind != VALUE_EQUALS ||
	       state->flags.loads < LOADS_MAX || state_agree(state, &state->flags);
}

/* What the second argument points to is for a result. */
static bool state_give(struct state *state, const struct op *op)
{
	struct value what = state_get(state, op->reg);
	struct value where = value_plus(state_get(state, op->base), op->number);

	if (!value_is_argument(&where, 1) || what.kind != VALUE_MEMBER || op->size != 8 ||
	    state->is_null || state->given.kind)
		return false;
	state->given = what;
	return true;
}

/* The object's members are for setters. What else is stored does not matter to them. */
static bool state_set(struct state *state, const struct op *op)
{
	struct value what = state_get(state, op->reg);
	struct value where = value_plus(state_get(state, op->base), op->number);
	struct value *kept;

	state->flags = (struct value){ 0 };	/* an add to memory sets them */
	if (where.kind != VALUE_MEMBER || where.argument || where.loads || op->size != 8)
		return true;
	if (value_is_argument(&what, 1))
		kept = &state->set;
	else if (what.kind == VALUE_SUM && what.offset[0] == where.offset[0])
		kept = &state->added;
	else
		return true;
	where = value_load(where, 0, 8);
	if (kept->kind)
		return value_same(kept, &where);
	*kept = where;
	return true;
}

/* At the end of a setter's path. Those that set a member must agree on it. */
static bool state_end(const struct state *state)
{
	const struct value *member = state->set.kind ? &state->set : &state->added;

	return state->purpose != FIND_SET || !member->kind || state_agree(state, member);
}

/* A called function keeps only some registers. */
static bool state_call(struct state *state)
{
	static const uint32_t x86_kept = 1u << 3 | 1u << 5 | 0xf000, arm_kept = 0x3ff80000;
	uint32_t kept = state->machine == EM_X86_64 ? x86_kept : arm_kept;

	for (unsigned int i = 0; i < REGS; i++)
		if (i >= NO_REG || !(kept >> i & 1))
			state->regs[i] = (struct value){ 0 };
	state->flags = (struct value){ 0 };
	return state->purpose != FIND_RESULT;
}

static int state_run(struct state *state);

static bool state_goto(struct state *state, int64_t target)
{
	if (target < 0 || (uint64_t)target >= state->size)
		return false;
	state->pos = (size_t)target;
	return true;
}

/* The path that is taken when the value just compared with 0 is. */
static bool state_run_null(struct state *state, int64_t target)
{
	struct state null = *state;
	struct value tested = state->flags;
	const struct value *result = &null.regs[0];

	tested.kind = VALUE_MEMBER;
	for (unsigned int i = 0; i < REGS; i++)
		if (value_same(&null.regs[i], &tested))
			null.regs[i] = (struct value){ .kind = VALUE_NUMBER, .size = 8 };
	null.flags = (struct value){ 0 };
	null.is_null = true;
	if (!state_goto(&null, target) || state_run(&null) || null.end != END_RETURN)
		return false;
	state->steps = null.steps;
	state->null_is_zero &= null.null_is_zero && result->kind == VALUE_NUMBER &&
			       !result->number;
	return true;
}

/* Follows the path that branches off to the op's target, to its end. */
static bool state_fork(struct state *state, const struct op *op)
{
	struct state other = *state;

	if (state->purpose == FIND_RESULT || ++state->tests > FORKS_MAX)
		return false;
	other.tests = state->tests;
	return state_goto(&other, op->target) && !state_run(&other);
}

static bool state_branch(struct state *state, const struct op *op)
{
	int64_t next = (int64_t)state->pos;
	bool if_not = op->number;

	if (state->purpose != FIND_RESULT)
		return state_fork(state, op);

	if (state->flags.kind != VALUE_EQUALS || state->flags.size != 8 || state->flags.number ||
	    ++state->tests > TESTS_MAX)
		return false;
	return state_run_null(state, if_not ? next : op->target) &&
	       state_goto(state, if_not ? op->target : next);
}

static bool state_op(struct state *state, const struct op *op)
{
	struct value base = state_get(state, op->base);

	switch (op->kind) {
	case OP_LOAD:
		state_put(state, op->reg, value_load(base, op->number, op->size));
		return true;
	case OP_STORE:
		return state->purpose == FIND_RESULT ? state_give(state, op)
						     : state_set(state, op);
	case OP_ADD_NUMBER:
		state_put(state, op->reg, value_plus(base, op->number));
		return true;
	case OP_ADD:
		state_put(state, op->reg, value_sum(base, state_get(state, op->index)));
		return true;
	case OP_MOVE:
		state_put(state, op->reg, op->size < 8 ? value_narrow(base, op->size) : base);
		return true;
	case OP_NUMBER:
		state_put(state, op->reg,
			  (struct value){ .kind = VALUE_NUMBER, .size = 8, .number = op->number });
		return true;
	case OP_FORGET:
		state_put(state, op->reg, (struct value){ 0 });
		return true;
	case OP_COMPARE:
		return state_compare(state, op);
	case OP_SET_EQUAL:
		state_put(state, op->reg, state->flags);
		return true;
	case OP_BRANCH:
		return state_branch(state, op);
	case OP_FORK:
		return state_fork(state, op);
	case OP_CALL:
		return state_call(state);
	case OP_CLOBBER_FLAGS:
		state->flags = (struct value){ 0 };
		return true;
	case OP_JUMP:
	case OP_LEAVE:
	case OP_RETURN:
		break;
	}
	return false;
}

/* One instruction: 0, 1 at the body's end, or -EINVAL. */
static int state_step(struct state *state)
{
	struct cursor code = cursor_over(state->code, state->size, false);
	struct insn insn = { .count = 0 };
	const struct op *last;
	bool known;

	cursor_seek(&code, state->pos);
	known = state->machine == EM_X86_64 ? x86_decode(&code, &insn) : arm_decode(&code, &insn);
	if (code.bad)
		return -EINVAL;
	if (!known)
		return state->purpose == FIND_RESULT ? -EINVAL : 1;
	state->pos = code.pos;
	last = insn.count ? &insn.ops[insn.count - 1] : NULL;
	if (last && last->kind == OP_JUMP && state_goto(state, last->target))
		return 0;
	if (last && (last->kind == OP_JUMP || last->kind == OP_LEAVE || last->kind == OP_RETURN)) {
		state->end = last->kind == OP_RETURN ? END_RETURN : END_CALL;
		return 1;
	}
	for (unsigned int i = 0; i < insn.count; i++)
		if (!state_op(state, &insn.ops[i]))
			return -EINVAL;
	return 0;
}

static int state_run(struct state *state)
{
	int err = 0;

	while (!err && state->steps++ < STEPS_MAX)
		err = state_step(state);
	return err == 1 && state_end(state) ? 0 : -EINVAL;
}

/* @agreed: unknown as yet; NULL to find the result. */
static int state_follow(struct state *state, uint16_t machine, const void *code, size_t size,
			enum purpose purpose, struct value *agreed)
{
	if (machine != EM_X86_64 && machine != EM_AARCH64)
		return -EINVAL;
	*state = (struct state){ .machine = machine, .code = code, .size = size,
				 .null_is_zero = true, .purpose = purpose, .agreed = agreed };
	for (unsigned int i = 0; i < 2; i++)
		state->regs[state_argument(state, i)] =
			(struct value){ .kind = VALUE_MEMBER, .size = 8, .argument = (uint8_t)i };
	return state_run(state);
}

/* What was handed out, and in *@second the other half of a pair. Unknown where nothing was. */
static struct value state_result(const struct state *state, struct value *second)
{
	struct value nothing = { 0 }, result = state->regs[0];

	*second = nothing;
	if (state->given.kind)
		return state->end == END_RETURN && result.kind == VALUE_NUMBER ? state->given
									       : nothing;
	if (state->end == END_CALL) {
		result = state->regs[state_argument(state, 1)];
		return value_is_member(&result) ? result : nothing;
	}
	*second = state->regs[state->machine == EM_X86_64 ? 2 : 1];
	return state->null_is_zero ? result : nothing;
}

static bool offset_is_sane(int64_t offset)
{
	return offset >= 0 && offset < OFFSET_MAX;
}

/* Tells the value as an accessor, whose second is yet to be known. */
static int value_describe(const struct value *value, struct accessor *out)
{
	static const enum accessor_kind kinds[] = {
		ACCESSOR_ADDRESS, ACCESSOR_VALUE, ACCESSOR_POINTER
	};
	bool equals = value->kind == VALUE_EQUALS, inner = value->loads == LOADS_MAX;

	if (!(equals ? inner : value->kind == VALUE_MEMBER) || value->argument ||
	    (value->loads && value->offset[value->loads]) || !offset_is_sane(value->offset[0]) ||
	    (inner && !offset_is_sane(value->offset[1])))
		return -EINVAL;
	*out = (struct accessor){
		.kind = equals ? ACCESSOR_EQUALS : kinds[value->loads],
		.offset = value->offset[0],
		.inner = inner ? value->offset[1] : 0,
		.expected = equals ? value->number : 0,
		.second = -1,
		.size = value->size,
	};
	return 0;
}

int accessor_body(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	struct state state;
	struct value value, second;

	if (state_follow(&state, machine, code, size, FIND_RESULT, NULL))
		return -EINVAL;
	value = state_result(&state, &second);
	if (value_describe(&value, out))
		return -EINVAL;
	if (value_is_member(&value) && value_is_member(&second) && offset_is_sane(second.offset[0]))
		out->second = second.offset[0];
	return 0;
}

static int body_agreed(uint16_t machine, const void *code, size_t size, enum purpose purpose,
		       struct accessor *out)
{
	struct state state;
	struct value agreed = { 0 };

	if (state_follow(&state, machine, code, size, purpose, &agreed))
		return -EINVAL;
	return value_describe(&agreed, out);
}

int accessor_body_setter(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	return body_agreed(machine, code, size, FIND_SET, out);
}

int accessor_body_compared(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	return body_agreed(machine, code, size, FIND_COMPARED, out);
}

/* The bytes of function @symbol, @max at most, and what it is. NULL: there is none. */
static const unsigned char *function_find(const struct elf *elf, const char *symbol, size_t max,
					  struct elf_symbol *found, size_t *size)
{
	struct cursor file = cursor_over(elf->data, elf->size, elf->big_endian);
	uint64_t offset;

	if (elf_symbol_find(elf, symbol, found) || found->type != STT_FUNC ||
	    !elf_vaddr_has_flags(elf, found->value, PF_X) ||
	    elf_vaddr_to_offset(elf, found->value, &offset))
		return NULL;
	cursor_seek(&file, offset);
	*size = cursor_left(&file);
	if (*size > max)
		*size = max;
	if (found->size && *size > found->size)
		*size = (size_t)found->size;
	return cursor_bytes(&file, *size);
}

static const unsigned char *body_find(const struct elf *elf, const char *symbol, size_t max,
				      size_t *size)
{
	struct elf_symbol found;

	return function_find(elf, symbol, max, &found, size);
}

int accessor_read(const struct elf *elf, const char *symbol, struct accessor *out)
{
	size_t size;
	const unsigned char *code = body_find(elf, symbol, BODY_MAX, &size);

	return code ? accessor_body(elf->machine, code, size, out) : -ENOENT;
}

int accessor_read_setter(const struct elf *elf, const char *symbol, struct accessor *out)
{
	size_t size;
	const unsigned char *code = body_find(elf, symbol, BODY_MAX, &size);

	return code ? accessor_body_setter(elf->machine, code, size, out) : -ENOENT;
}

int accessor_read_compared(const struct elf *elf, const char *symbol, struct accessor *out)
{
	size_t size;
	const unsigned char *code = body_find(elf, symbol, BODY_MAX, &size);

	return code ? accessor_body_compared(elf->machine, code, size, out) : -ENOENT;
}

/* mov variable(%rip),%rax; ret, behind endbr64 or not. */
static int global_x86(const unsigned char *code, size_t size, uint64_t at, uint64_t *vaddr)
{
	static const unsigned char pad[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const unsigned char load[] = { 0x48, 0x8b, 0x05 };
	struct cursor c = cursor_over(code, size, false);
	const unsigned char *bytes;

	if (size >= sizeof(pad) && !memcmp(code, pad, sizeof(pad)))
		cursor_seek(&c, sizeof(pad));
	at += c.pos + sizeof(load) + 4;
	bytes = cursor_bytes(&c, sizeof(load));
	if (!bytes || memcmp(bytes, load, sizeof(load)))
		return -EINVAL;
	*vaddr = at + (uint64_t)(int64_t)(int32_t)cursor_uint(&c, 4);
	return cursor_uint(&c, 1) == 0xc3 ? 0 : -EINVAL;
}

/* adrp xN, page; ldr x0, [xN, #offset]; ret, behind bti c or not. */
static int global_arm(const unsigned char *code, size_t size, uint64_t at, uint64_t *vaddr)
{
	struct cursor c = cursor_over(code, size, false);
	uint32_t page = (uint32_t)cursor_uint(&c, 4), load, ret;
	int64_t pages;

	if (page == 0xd503245f) {
		page = (uint32_t)cursor_uint(&c, 4);
		at += 4;
	}
	load = (uint32_t)cursor_uint(&c, 4);
	ret = (uint32_t)cursor_uint(&c, 4);
	if ((page & 0x9f000000) != 0x90000000 || (load & 0xffc0001f) != 0xf9400000 ||
	    (load >> 5 & 31) != (page & 31) || ret != 0xd65f03c0)
		return -EINVAL;
	pages = (int64_t)(page >> 5 & 0x7ffff) << 2 | (page >> 29 & 3);
	if (pages & 1 << 20)
		pages -= 1 << 21;
	*vaddr = (at & ~(uint64_t)0xfff) + ((uint64_t)pages << 12) + (load >> 10 & 0xfff) * 8;
	return 0;
}

int accessor_read_global(const struct elf *elf, const char *symbol, uint64_t *vaddr)
{
	struct elf_symbol found;
	size_t size;
	const unsigned char *code = function_find(elf, symbol, BODY_MAX, &found, &size);

	if (!code)
		return -ENOENT;
	if (elf->machine == EM_X86_64)
		return global_x86(code, size, found.value, vaddr);
	return elf->machine == EM_AARCH64 ? global_arm(code, size, found.value, vaddr) : -EINVAL;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether @pattern begins at @code; the place of its offset goes to *@at. */
static bool pattern_matches(const char *pattern, const unsigned char *code, size_t size,
			    size_t *at)
{
	size_t n = 0;

	while (*pattern) {
		if (*pattern == ' ') {
			pattern++;
		} else if (!strncmp(pattern, "@@@@@@@@", 8)) {
			*at = n;
			n += 4;
			pattern += 8;
		} else {
			int high = hex_digit(pattern[0]);
			int low = high < 0 ? -1 : hex_digit(pattern[1]);

			if (low < 0 || n >= size || code[n] != (high << 4 | low))
				return false;
			n++;
			pattern += 2;
		}
	}
	return n <= size;
}

int accessor_match(const struct elf *elf, const char *symbol, const char *pattern,
		   int64_t *offset)
{
	size_t size, at = 0, found = 0;
	const unsigned char *code = body_find(elf, symbol, ACCESSOR_MATCH, &size);

	if (!code)
		return -ENOENT;
	for (size_t i = 0; i < size; i++) {
		struct cursor c = cursor_over(code + i, size - i, false);

		if (!pattern_matches(pattern, code + i, size - i, &at))
			continue;
		cursor_seek(&c, at);
		*offset = (int32_t)cursor_uint(&c, 4);
		found++;
	}
	return found == 1 ? 0 : -EINVAL;
}
