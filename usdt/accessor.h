/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Offsets of struct members, read from the machine code of exported accessor
 * functions. They are thus known for builds without debug information.
 *
 * A function's body is executed symbolically, on every path. For a plain
 * accessor, an instruction that is not supported is an error: no offset is
 * better than a wrong one.
 *
 * Functions that do more can still reveal a member: one that they set to their
 * argument, compare with a constant, set bits of, copy, or pass on. For these, both sides of every
 * conditional jump are executed. A path ends at an unsupported instruction or
 * at a jump out of the function, and what it found so far is kept. A call
 * preserves the registers that the ABI says are callee-saved. All paths
 * together must find exactly one member. An argument or pointer that was
 * spilled to memory is not followed. Too many jumps or instructions on a path
 * and a truncated body are errors.
 *
 * All functions are pure and return 0 or -EINVAL (the body is not supported, or
 * the machine has no decoder, see arch.h); those that take a symbol also return
 * -ENOENT (the file has no such function). On errors the result is undefined.
 */
#ifndef USDT_ACCESSOR_H
#define USDT_ACCESSOR_H

#include "usdt/elf.h"

enum accessor_kind {
	ACCESSOR_ADDRESS,	/* &object->member */
	ACCESSOR_VALUE,		/* object->member */
	ACCESSOR_POINTER,	/* object->member->inner, or 0 or NULL if member is NULL */
	ACCESSOR_EQUALS,	/* object->member->inner == expected */
	ACCESSOR_FLAG,		/* object->member |= expected */
};

/* Offsets are in bytes, from 0 to 1 MiB. */
struct accessor {
	enum accessor_kind kind;
	int64_t offset;		/* of the member in the object, the function's first argument */
	int64_t inner;		/* ACCESSOR_POINTER, ACCESSOR_EQUALS: in the pointed-to struct */
	int64_t expected;	/* ACCESSOR_EQUALS, ACCESSOR_FLAG */
	int64_t second;		/* ACCESSOR_VALUE: offset of the member in the second return
				   register, -1: none. Meaningful only if the function returns
				   a pair. */
	unsigned int size;	/* bytes that are returned or compared: 1, 2, 4, 8 */
};

/*
 * Read the member that function @symbol returns, stores to where its second
 * argument points, or passes as second argument to the one function it calls.
 */
int accessor_read(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * Read the 8-byte member (an ACCESSOR_VALUE) that function @symbol sets to its
 * second argument or, on paths that set none, adds its second argument to; without
 * one, the 4-byte member that it sets to its second argument.
 */
int accessor_read_setter(const struct elf *elf, const char *symbol, struct accessor *out);

/* Read the 8-byte member (an ACCESSOR_VALUE) that @symbol sets to its third argument. */
int accessor_read_third(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * Read the member behind a pointer that function @symbol compares with a
 * constant (an ACCESSOR_EQUALS), whatever depends on the comparison.
 */
int accessor_read_compared(const struct elf *elf, const char *symbol, struct accessor *out);

/* Read the member (an ACCESSOR_FLAG) of which function @symbol sets constant bits. */
int accessor_read_flag(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * Read the member (an ACCESSOR_ADDRESS) whose address function @symbol passes
 * as first argument to the first function it calls, if it does not jump before.
 */
int accessor_read_passed(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * Read the 8-byte member (an ACCESSOR_VALUE) that @symbol passes as first argument to the functions
 * it calls. A path ends at its first call.
 */
int accessor_read_given(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * Read the 8-byte member (an ACCESSOR_VALUE) that function @symbol copies to offset @at of where
 * its third argument points.
 */
int accessor_read_copied(const struct elf *elf, const char *symbol, int64_t at,
			 struct accessor *out);

/*
 * Read the member (an ACCESSOR_POINTER whose ->offset is 0) that function @symbol returns of the
 * object that a variable points to, or 0 if that is NULL.
 */
int accessor_read_member(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * Read the link-time address of the 8-byte variable that function @symbol
 * returns; it must do nothing else.
 */
int accessor_read_global(const struct elf *elf, const char *symbol, uint64_t *vaddr);

/*
 * An element of an array of structs, selected by a 4-byte variable. Distances in bytes from the
 * function's first one.
 */
struct accessor_element {
	int64_t index;		/* to the variable */
	int64_t member;		/* to the member of element 0 */
};

/*
 * Read the 4-byte member of an array's element that function @symbol, which has no argument,
 * returns. Other code in it, as for an index out of bounds, does not matter.
 */
int accessor_read_element(const struct elf *elf, const char *symbol, struct accessor_element *out);

/*
 * Read the offset that byte_pattern_find() extracts with @pattern from the
 * first ACCESSOR_MATCH bytes of function @symbol.
 */
#define ACCESSOR_MATCH	256

int accessor_match(const struct elf *elf, const char *symbol, const char *pattern,
		   int64_t *offset);

/*
 * Variants of accessor_read(), accessor_read_member(), accessor_read_setter(),
 * accessor_read_third(), accessor_read_compared(), accessor_read_flag(),
 * accessor_read_passed() and accessor_read_given() for the @size bytes of a body at @code.
 */
int accessor_body(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_global(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_setter(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_third(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_compared(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_flag(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_passed(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_given(uint16_t machine, const void *code, size_t size, struct accessor *out);

/* accessor_read_copied() for the @size bytes of a body at @code. */
int accessor_body_copied(uint16_t machine, const void *code, size_t size, int64_t at,
			 struct accessor *out);

/* accessor_read_element() for the @size bytes of a body at @code, linked at @vaddr. */
int accessor_body_element(uint16_t machine, const void *code, size_t size, uint64_t vaddr,
			  struct accessor_element *out);

#endif
