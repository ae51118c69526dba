/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a struct's member is, read off the instructions of an exported function
 * that does nothing but hand it out. So a member's place is known in builds
 * that no debug information describes.
 *
 * Every path through the body is followed with what each register holds; an
 * instruction that is not understood ends it: no offset is better than a wrong one.
 */
#ifndef USDT_ACCESSOR_H
#define USDT_ACCESSOR_H

#include "usdt/elf.h"

enum accessor_kind {
	ACCESSOR_ADDRESS,	/* &object->member */
	ACCESSOR_VALUE,		/* object->member */
	ACCESSOR_POINTER,	/* object->member->inner; where that is NULL: 0 or NULL */
	ACCESSOR_EQUALS,	/* object->member->inner == expected */
};

struct accessor {
	enum accessor_kind kind;
	int64_t offset;		/* of the member in the object: the first argument's */
	int64_t inner;		/* ACCESSOR_POINTER, ACCESSOR_EQUALS: in what it points to */
	int64_t expected;	/* ACCESSOR_EQUALS */
	int64_t second;		/* ACCESSOR_VALUE: the member in the second register of a pair;
				   -1: none. Only a function that returns a pair means it. */
	unsigned int size;	/* of what is handed out or compared, in bytes: 1, 2, 4, 8 */
};

/*
 * What function @symbol hands out: it returns it, or stores it where its second argument
 * points to, or does nothing but pass it as second argument to another function.
 * 0, -ENOENT (no such function) or -EINVAL (a body that is not understood).
 */
int accessor_read(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * The member (an ACCESSOR_VALUE) that function @symbol sets to its second argument,
 * or else adds that to. What it then calls does not matter. Errors as above.
 */
int accessor_read_setter(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * The offset in an instruction of function @symbol that is known by its bytes: @pattern is in
 * hexadecimal, with "@@@@@@@@" for the four bytes of the offset, blanks do not count. It
 * must stand once, and not twice, among the first ACCESSOR_MATCH bytes. 0, -ENOENT or -EINVAL.
 */
#define ACCESSOR_MATCH	256

int accessor_match(const struct elf *elf, const char *symbol, const char *pattern,
		   int64_t *offset);

/* As the first two, for the @size bytes of a body at @code, of EM_X86_64 or EM_AARCH64. */
int accessor_body(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_setter(uint16_t machine, const void *code, size_t size, struct accessor *out);

#endif
