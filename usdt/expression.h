/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Expressions over a probe's arguments, as C has them, made into BPF instructions:
 *
 *	arg1 > 10 && arg2 == "text"		arg1 .. arg12, retval, pid, tid
 *	!(arg1 & 0x10) || arg3 != 'x'		numbers, characters, strings
 *	STRCMP("text", arg2)			the same as arg2 == "text"
 *	(int)retval < 0				the low 32 bits, signed; also u8 .. s64
 *	|| && | ^ & == != < <= > >= << >> + - * and the unary - ! ~
 *
 * All is computed in 64 bits. Comparisons and >> are signed where either side is: a
 * signed argument or a negative number. A string that cannot be read equals nothing.
 */
#ifndef USDT_EXPRESSION_H
#define USDT_EXPRESSION_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPRESSION_NODES	64
#define EXPRESSION_TEXT		64	/* of a string, its NUL included */
#define EXPRESSION_TEXTS	256	/* of all strings of an expression */
#define EXPRESSION_DEPTH	12	/* brackets and operators in each other */
#define EXPRESSION_INSNS_MAX	512	/* the longest function that expression_emit() makes */

/* What an expression is computed from, by its place in an array of 64-bit numbers. */
enum expression_variable {
	EXPRESSION_ARG1 = 0,	/* to arg12 */
	EXPRESSION_RETVAL = 12,
	EXPRESSION_PID,
	EXPRESSION_TID,
	EXPRESSION_VARIABLES,
};

enum expression_reason {
	EXPRESSION_OK,
	EXPRESSION_NO_VALUE,		/* a value is missing here */
	EXPRESSION_NO_OPERATOR,		/* ) is missing here, or there is something that is none */
	EXPRESSION_UNKNOWN_NAME,
	EXPRESSION_BAD_NUMBER,
	EXPRESSION_BAD_STRING,		/* its end is missing, or it has an unknown escape */
	EXPRESSION_LONG_STRING,
	EXPRESSION_STRING_OPERATOR,	/* a string where only a number can be */
	EXPRESSION_TOO_LONG,
};

enum expression_kind {
	EXPRESSION_NUMBER, EXPRESSION_VARIABLE, EXPRESSION_STRING, EXPRESSION_CAST,
	EXPRESSION_UNARY, EXPRESSION_BINARY,
};

enum expression_op {
	OP_OR, OP_AND, OP_BIT_OR, OP_BIT_XOR, OP_BIT_AND, OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE,
	OP_LEFT, OP_RIGHT, OP_ADD, OP_SUB, OP_MUL,
	OP_NOT, OP_NEGATE, OP_INVERT,	/* of one operand, ->left */
};

struct expression_node {
	uint8_t kind, op;		/* enum expression_kind, expression_op */
	uint8_t left, right;		/* other nodes */
	uint8_t bits;			/* of a cast */
	bool is_signed;			/* of a cast or number */
	int64_t value;			/* a number, a variable's place, a string's offset in ->texts */
	uint32_t len;			/* of a string */
};

struct expression {
	struct expression_node nodes[EXPRESSION_NODES];
	uint8_t count, root;
	uint32_t uses;			/* bit n: variable n is in it */
	char texts[EXPRESSION_TEXTS];
	size_t texts_len;
};

/*
 * Reads the expression that @text begins with; *@end is where it ends: before a ',' or ')', say.
 * Else the reason, and *@end is the place that is wrong.
 */
enum expression_reason expression_parse(struct expression *e, const char *text, size_t *end);

/*
 * Emits "uint64_t f(const uint64_t *variables)" to @insns, room for @max; bit n of @signs:
 * variable n is signed. The number of instructions, or -ENOSPC. A variable alone is one
 * instruction and the exit. At most 168 bytes of stack.
 */
int expression_emit(const struct expression *e, uint32_t signature_symbols, struct bpf_insn *insns,
		    size_t max);

/* Whether its value is a signed number, with variables as above. */
bool expression_is_signed(const struct expression *e, uint32_t signature_symbols);

/* Makes it variable @place and no more. */
void expression_set_plain(struct expression *e, enum expression_variable place);

/* The variable that it is and no more, or -1. */
int expression_plain(const struct expression *e);

#endif
