/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Micro-operations: the effects of an instruction, in terms that all
 * architectures share. An architecture's decoder emits them, accessor.c executes them.
 * Internal to usdt/accessor*.c and usdt/arch*.c.
 *
 * Registers are code numbers as in arch.h, 0 to 31, and three that no
 * instruction encodes: UOP_NO_REG, UOP_TEMP and UOP_GLOBAL.
 */
#ifndef USDT_ACCESSOR_OP_H
#define USDT_ACCESSOR_OP_H

#include <stdbool.h>
#include <stdint.h>

#define UOP_NO_REG	32	/* reads as unknown, ignores writes: sp, xzr as destination */
#define UOP_TEMP	33	/* scratch within one instruction */
#define UOP_GLOBAL	34	/* base of variables; reads as unknown, except for FIND_GLOBAL */
#define UOP_REGS	35

#define UOPS_MAX	3	/* of one instruction */

enum uop_kind {
	UOP_LOAD,		/* reg = size bytes at base + number */
	UOP_STORE,		/* size bytes at base + number = reg */
	UOP_ADD_NUMBER,		/* reg = base + number */
	UOP_ADD,		/* reg = base + index */
	UOP_OR_NUMBER,		/* reg = low size bytes (0: all) of reg | number */
	UOP_MOVE,		/* reg = low size bytes of base */
	UOP_NUMBER,		/* reg = number */
	UOP_FORGET,		/* reg = unknown */
	UOP_COMPARE,		/* flags = low size bytes of reg (0: all) against number or index */
	UOP_SET_EQUAL,		/* reg = (flags == equal) */
	UOP_BRANCH,		/* go to target if flags are equal, or not equal if number is set */
	UOP_FORK,		/* go to target on a condition that is not modelled */
	UOP_JUMP,		/* go to target; outside the body: a tail call */
	UOP_LEAVE,		/* a tail call through memory or a register */
	UOP_CALL,
	UOP_RETURN,
	UOP_CLOBBER_FLAGS,
};

struct uop {
	enum uop_kind kind;
	uint8_t reg, base, index;
	uint8_t size;		/* bytes: 1, 2, 4, 8 */
	int64_t number;
	int64_t target;		/* byte offset from the start of the body */
};

/* The micro-operations of one instruction, executed in order. */
struct uop_list {
	struct uop ops[UOPS_MAX];
	unsigned int count;
};

/* Append @kind, which writes @reg or UOP_NO_REG, with a size of 8 bytes. */
void uop_add(struct uop_list *list, enum uop_kind kind, unsigned int reg);

/* Append UOP_LOAD, UOP_STORE or UOP_ADD_NUMBER of @size bytes at @base + @offset. */
void uop_add_memory(struct uop_list *list, enum uop_kind kind, unsigned int reg, unsigned int base,
		    int64_t offset, unsigned int size);

/* Append @reg = @base + @index, of 8 bytes. */
void uop_add_sum(struct uop_list *list, unsigned int reg, unsigned int base, unsigned int index);

/* Append @reg = low @size bytes of @base. */
void uop_add_move(struct uop_list *list, unsigned int reg, unsigned int base, unsigned int size);

/* Append UOP_NUMBER, UOP_OR_NUMBER or UOP_COMPARE of @reg and @number, of @size bytes; 0: all. */
void uop_add_number(struct uop_list *list, enum uop_kind kind, unsigned int reg, int64_t number,
		    unsigned int size);

/* Append UOP_COMPARE of all bytes of @reg and @index. */
void uop_add_compare(struct uop_list *list, unsigned int reg, unsigned int index);

/* Append a jump of @kind to byte @target of the body; @if_not: UOP_BRANCH if not equal. */
void uop_add_jump(struct uop_list *list, enum uop_kind kind, int64_t target, bool if_not);

/* Sign-extend the low @bits of @value, 1 to 64. */
int64_t uop_sign_extend(uint64_t value, unsigned int bits);

#endif
