// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/riscv_compressed.h"

#include <stdbool.h>

#define ZERO	0
#define RA	1
#define SP	2

/* Major opcodes, and those of loads and stores with the width in funct3. */
enum {
	LOAD = 0x03, LOAD_FP = 0x07, OP_IMM = 0x13, OP_IMM_32 = 0x1b, STORE = 0x23, STORE_FP = 0x27,
	OP = 0x33, LUI = 0x37, OP_32 = 0x3b, BRANCH = 0x63, JALR = 0x67, JAL = 0x6f, SYSTEM = 0x73,
};

#define FUNCT3(n)	((uint32_t)(n) << 12)
#define EBREAK		(1u << 20 | SYSTEM)
#define SHIFT_RIGHT	FUNCT3(5)
#define ARITHMETIC	(1u << 30)
#define WORD		2u	/* funct3 of 4 and 8 bytes */
#define DOUBLE		3u

/* @count bits of the instruction from bit @from on are those of the immediate from @to on. */
struct field {
	uint8_t from, count, to;
};

/* The immediates, by instruction. */
static const struct field lw_bits[] = { { 6, 1, 2 }, { 10, 3, 3 }, { 5, 1, 6 }, { 0, 0, 0 } };
static const struct field ld_bits[] = { { 10, 3, 3 }, { 5, 2, 6 }, { 0, 0, 0 } };
static const struct field lwsp_bits[] = {
	{ 4, 3, 2 }, { 12, 1, 5 }, { 2, 2, 6 }, { 0, 0, 0 },
};
static const struct field ldsp_bits[] = {
	{ 5, 2, 3 }, { 12, 1, 5 }, { 2, 3, 6 }, { 0, 0, 0 },
};
static const struct field swsp_bits[] = { { 9, 4, 2 }, { 7, 2, 6 }, { 0, 0, 0 } };
static const struct field sdsp_bits[] = { { 10, 3, 3 }, { 7, 3, 6 }, { 0, 0, 0 } };
static const struct field addi4spn_bits[] = {
	{ 6, 1, 2 }, { 5, 1, 3 }, { 11, 2, 4 }, { 7, 4, 6 }, { 0, 0, 0 },
};
static const struct field addi_bits[] = { { 2, 5, 0 }, { 12, 1, 5 }, { 0, 0, 0 } };
static const struct field addi16sp_bits[] = {
	{ 6, 1, 4 }, { 2, 1, 5 }, { 5, 1, 6 }, { 3, 2, 7 }, { 12, 1, 9 }, { 0, 0, 0 },
};
static const struct field j_bits[] = {
	{ 3, 3, 1 }, { 11, 1, 4 }, { 2, 1, 5 }, { 7, 1, 6 }, { 6, 1, 7 }, { 9, 2, 8 },
	{ 8, 1, 10 }, { 12, 1, 11 }, { 0, 0, 0 },
};
static const struct field beqz_bits[] = {
	{ 3, 2, 1 }, { 10, 2, 3 }, { 2, 1, 5 }, { 5, 2, 6 }, { 12, 1, 8 }, { 0, 0, 0 },
};

/* Return the immediate of @half. */
static uint32_t immediate(uint32_t half, const struct field *fields)
{
	uint32_t value = 0;

	for (; fields->count; fields++)
		value |= (half >> fields->from & ((1u << fields->count) - 1)) << fields->to;
	return value;
}

/* Return the immediate of @half, whose highest bit, number @sign, is the sign. */
static uint32_t signed_immediate(uint32_t half, const struct field *fields, unsigned int sign)
{
	uint32_t value = immediate(half, fields);

	return (value ^ 1u << sign) - (1u << sign);
}

/* Format I. @opcode includes funct3. */
static uint32_t put_i(uint32_t opcode, uint32_t rd, uint32_t rs1, uint32_t number)
{
	return opcode | rd << 7 | rs1 << 15 | number << 20;
}

/* Format R. */
static uint32_t put_r(uint32_t opcode, uint32_t rd, uint32_t rs1, uint32_t rs2)
{
	return opcode | rd << 7 | rs1 << 15 | rs2 << 20;
}

/* Format S. */
static uint32_t put_s(uint32_t opcode, uint32_t rs2, uint32_t rs1, uint32_t number)
{
	return opcode | (number & 31) << 7 | rs1 << 15 | rs2 << 20 | number >> 5 << 25;
}

/* Format J. */
static uint32_t put_jump(uint32_t rd, uint32_t distance)
{
	return JAL | rd << 7 | (distance & 0xff000) | (distance >> 11 & 1) << 20 |
	       (distance & 0x7fe) << 20 | (distance >> 20 & 1) << 31;
}

/* Format B, against zero. */
static uint32_t put_branch(uint32_t funct3, uint32_t rs1, uint32_t distance)
{
	return BRANCH | FUNCT3(funct3) | rs1 << 15 | (distance >> 11 & 1) << 7 |
	       (distance & 0x1e) << 7 | (distance & 0x7e0) << 20 | (distance >> 12 & 1) << 31;
}

/* Loads and stores of the eight registers that three bits name, and c.addi4spn. */
static uint32_t expand_0(uint32_t half)
{
	uint32_t reg = 8 + (half >> 2 & 7), base = 8 + (half >> 7 & 7), number;

	switch (half >> 13) {
	case 0:
		number = immediate(half, addi4spn_bits);
		return number ? put_i(OP_IMM, reg, SP, number) : 0;
	case 1:
		return put_i(LOAD_FP | FUNCT3(DOUBLE), reg, base, immediate(half, ld_bits));
	case 2:
		return put_i(LOAD | FUNCT3(WORD), reg, base, immediate(half, lw_bits));
	case 3:
		return put_i(LOAD | FUNCT3(DOUBLE), reg, base, immediate(half, ld_bits));
	case 5:
		return put_s(STORE_FP | FUNCT3(DOUBLE), reg, base, immediate(half, ld_bits));
	case 6:
		return put_s(STORE | FUNCT3(WORD), reg, base, immediate(half, lw_bits));
	case 7:
		return put_s(STORE | FUNCT3(DOUBLE), reg, base, immediate(half, ld_bits));
	}
	return 0;
}

/* Shifts, c.andi, and operations between two of the eight registers. */
static uint32_t expand_arithmetic(uint32_t half)
{
	static const uint32_t operations[8] = {
		/* sub, xor, or, and; subw, addw */
		OP | ARITHMETIC, OP | FUNCT3(4), OP | FUNCT3(6), OP | FUNCT3(7),
		OP_32 | ARITHMETIC, OP_32, 0, 0,
	};
	uint32_t reg = 8 + (half >> 7 & 7), other = 8 + (half >> 2 & 7), op;
	uint32_t number = immediate(half, addi_bits);

	switch (half >> 10 & 3) {
	case 0:
		return put_i(OP_IMM | SHIFT_RIGHT, reg, reg, number);
	case 1:
		return put_i(OP_IMM | SHIFT_RIGHT, reg, reg, number) | ARITHMETIC;
	case 2:
		return put_i(OP_IMM | FUNCT3(7), reg, reg, signed_immediate(half, addi_bits, 5));
	}
	op = operations[(half >> 12 & 1) << 2 | (half >> 5 & 3)];
	return op ? put_r(op, reg, reg, other) : 0;
}

/* c.addi16sp and c.lui */
static uint32_t expand_lui(uint32_t half, uint32_t reg)
{
	uint32_t number = signed_immediate(half, addi_bits, 5);

	if (!number)
		return 0;
	return reg == SP ? put_i(OP_IMM, SP, SP, signed_immediate(half, addi16sp_bits, 9)) :
			   LUI | reg << 7 | number << 12;
}

static uint32_t expand_1(uint32_t half)
{
	uint32_t reg = half >> 7 & 31, number = signed_immediate(half, addi_bits, 5);

	switch (half >> 13) {
	case 0:
		return put_i(OP_IMM, reg, reg, number);
	case 1:
		return reg ? put_i(OP_IMM_32, reg, reg, number) : 0;
	case 2:
		return put_i(OP_IMM, reg, ZERO, number);
	case 3:
		return expand_lui(half, reg);
	case 4:
		return expand_arithmetic(half);
	case 5:
		return put_jump(ZERO, signed_immediate(half, j_bits, 11));
	}
	return put_branch(half >> 13 & 1, 8 + (half >> 7 & 7),
			  signed_immediate(half, beqz_bits, 8));
}

/* c.jr, c.mv, c.ebreak, c.jalr and c.add */
static uint32_t expand_jump(uint32_t half)
{
	uint32_t reg = half >> 7 & 31, other = half >> 2 & 31;
	bool high = half >> 12 & 1;

	if (other)
		return put_r(OP, reg, high ? reg : ZERO, other);
	if (!reg)
		return high ? EBREAK : 0;
	return put_i(JALR, high ? RA : ZERO, reg, 0);
}

static uint32_t expand_2(uint32_t half)
{
	uint32_t reg = half >> 7 & 31, source = half >> 2 & 31;

	switch (half >> 13) {
	case 0:
		return put_i(OP_IMM | FUNCT3(1), reg, reg, immediate(half, addi_bits));
	case 1:
		return put_i(LOAD_FP | FUNCT3(DOUBLE), reg, SP, immediate(half, ldsp_bits));
	case 2:
		return reg ? put_i(LOAD | FUNCT3(WORD), reg, SP, immediate(half, lwsp_bits)) : 0;
	case 3:
		return reg ? put_i(LOAD | FUNCT3(DOUBLE), reg, SP, immediate(half, ldsp_bits)) : 0;
	case 4:
		return expand_jump(half);
	case 5:
		return put_s(STORE_FP | FUNCT3(DOUBLE), source, SP, immediate(half, sdsp_bits));
	case 6:
		return put_s(STORE | FUNCT3(WORD), source, SP, immediate(half, swsp_bits));
	}
	return put_s(STORE | FUNCT3(DOUBLE), source, SP, immediate(half, sdsp_bits));
}

uint32_t riscv_expand(uint16_t half)
{
	switch (half & 3) {
	case 0:
		return expand_0(half);
	case 1:
		return expand_1(half);
	case 2:
		return expand_2(half);
	}
	return 0;
}
