/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * C expressions over a probe's arguments, compiled to BPF instructions:
 *
 *	arg1 > 10 && arg2 == "text"		arg1 .. arg12, retval, pid, tid, uid
 *	comm == "postgres"			the name of the thread
 *	!(arg1 & 0x10) || arg3 != 'x'		numbers, characters, strings
 *	STRCMP("text", arg2)			the same as arg2 == "text", as in bcc
 *	(int)retval < 0				the low 32 bits, signed; also u8 .. s64
 *	|| && | ^ & == != < <= > >= << >> + - * / % and the unary - ! ~
 *
 * All arithmetic has 64 bits. Comparisons, / and % are signed if either operand
 * is (a signed argument or a negative number), >> if the left one is. A string
 * that cannot be read is not equal to any text. An expression whose evaluation
 * requires a variable that could not be read, or divides by 0, is unknown. All
 * functions are pure.
 */
#ifndef USDT_EXPRESSION_H
#define USDT_EXPRESSION_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPRESSION_NODES	64
#define EXPRESSION_TEXT		64	/* bytes of a string, its NUL included */
#define EXPRESSION_TEXTS	256	/* bytes of all strings of an expression */
#define EXPRESSION_DEPTH	12	/* nesting of parentheses and operators */
#define EXPRESSION_INSNS_MAX	512	/* of the longest generated function */

/* The variables, by their index in an array of 64-bit numbers. The last element is for errors. */
enum expression_variable {
	EXPRESSION_ARG1 = 0,	/* to arg12 */
	EXPRESSION_RETVAL = 12,
	EXPRESSION_PID,
	EXPRESSION_TID,
	EXPRESSION_UID,
	EXPRESSION_COMM,		/* two elements: the bytes of a text, zeros behind it */
	EXPRESSION_VARIABLES,
	EXPRESSION_UNREAD = EXPRESSION_COMM + 2,	/* bit n: variable n could not be read */
	EXPRESSION_WORDS,
};

#define EXPRESSION_COMM_SIZE	16

/* The variables of a probe site. */
struct expression_site {
	uint32_t signed_mask;	/* bit n: variable n is signed */
	uint32_t fails_mask;	/* bit n: EXPRESSION_UNREAD has a bit for variable n */
};

enum expression_reason {
	EXPRESSION_OK,
	EXPRESSION_NO_VALUE,		/* a value is missing */
	EXPRESSION_NO_OPERATOR,		/* not an operator, or a missing parenthesis or comma */
	EXPRESSION_UNKNOWN_NAME,
	EXPRESSION_BAD_NUMBER,
	EXPRESSION_BAD_STRING,		/* not terminated, or with an unknown escape */
	EXPRESSION_LONG_STRING,
	EXPRESSION_LONG_COMM,		/* longer than any comm */
	EXPRESSION_STRING_OPERATOR,	/* a string where only a number is allowed */
	EXPRESSION_TOO_LONG,
};

enum expression_kind {
	EXPRESSION_NUMBER, EXPRESSION_VARIABLE, EXPRESSION_STRING, EXPRESSION_CAST,
	EXPRESSION_UNARY, EXPRESSION_BINARY,
};

enum expression_op {
	OP_OR, OP_AND, OP_BIT_OR, OP_BIT_XOR, OP_BIT_AND, OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE,
	OP_LEFT, OP_RIGHT, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD,
	OP_NOT, OP_NEGATE, OP_INVERT,	/* unary, of ->left */
};

struct expression_node {
	uint8_t kind, op;		/* enum expression_kind, expression_op */
	uint8_t left, right;		/* indices of other nodes */
	uint8_t bits;			/* of a cast */
	bool is_signed;			/* of a cast or number */
	int64_t value;			/* number, index of the variable, or offset in ->texts */
	uint32_t len;			/* of a string */
};

struct expression {
	struct expression_node nodes[EXPRESSION_NODES];
	uint8_t count, root;
	uint32_t uses;			/* bit n: variable n is used */
	char texts[EXPRESSION_TEXTS];
	size_t texts_len;
};

/*
 * Parse the expression that @text begins with. Return EXPRESSION_OK, with the
 * offset of the first byte behind it (a ',' or ')', for instance) in *@end; or
 * the error, with its offset in *@end. @e is then undefined.
 */
enum expression_reason expression_parse(struct expression *e, const char *text, size_t *end);

/*
 * Generate the function "uint64_t f(uint64_t *variables)" to @insns, room for @max. If the value is
 * unknown it returns 0, and sets the bits @unknown, positive, of EXPRESSION_UNREAD. Return the
 * number of instructions, or -ENOSPC. A plain variable that does not fail takes one instruction and
 * the exit. The function uses at most 168 bytes of stack.
 */
int expression_emit(const struct expression *e, const struct expression_site *site,
		    int32_t unknown, struct bpf_insn *insns, size_t max);

/* Return whether the value of @e is signed. */
bool expression_is_signed(const struct expression *e, const struct expression_site *site);

/* Make @e the plain variable @variable. */
void expression_set_plain(struct expression *e, enum expression_variable variable);

/* Make @e the number @value. */
void expression_set_number(struct expression *e, uint32_t value);

/* Return the variable that @e consists of, or -1 if it is not a plain variable. */
int expression_plain(const struct expression *e);

#endif
