/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a struct's member is, read off the instructions of an exported function
 * that does nothing but hand it out. So a member's place is known in builds
 * that no debug information describes.
 *
 * Every path through the body is followed with what each register holds. An
 * instruction that is not understood means -EINVAL: no offset is better than a wrong one.
 *
 * Functions that do more than that can still tell a member: one that they set to their
 * argument, or compare with a constant. Then both sides of each conditional jump are followed,
 * whatever it depends on; what was found before an instruction that is not understood, or a
 * jump out of the function, stands, and the path ends there. A call keeps what the ABI says it
 * keeps. All that the paths find must be one and the same member, and there must be something.
 * Nothing is found where an argument or a pointer has been in memory meanwhile; too many jumps
 * or instructions on a path, and a body that breaks off, are -EINVAL.
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
 * The member (an ACCESSOR_VALUE) of 8 bytes that function @symbol sets to its second
 * argument, or, on a path that sets none, adds that to. Errors as above.
 */
int accessor_read_setter(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * The member behind a pointer that function @symbol compares with a constant (an
 * ACCESSOR_EQUALS), whatever follows from it. Errors as above.
 */
int accessor_read_compared(const struct elf *elf, const char *symbol, struct accessor *out);

/*
 * The link-time address of the variable of 8 bytes that function @symbol returns and does nothing
 * else. Errors as above.
 */
int accessor_read_global(const struct elf *elf, const char *symbol, uint64_t *vaddr);

/*
 * The offset in an instruction of function @symbol that is known by its bytes: @pattern is in
 * hexadecimal, with "@@@@@@@@" for the four bytes of the offset, blanks do not count. It
 * must stand once, and not twice, among the first ACCESSOR_MATCH bytes. 0, -ENOENT or -EINVAL.
 */
#define ACCESSOR_MATCH	256

int accessor_match(const struct elf *elf, const char *symbol, const char *pattern,
		   int64_t *offset);

/* As the first three, for the @size bytes of a body at @code, of EM_X86_64 or EM_AARCH64. */
int accessor_body(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_setter(uint16_t machine, const void *code, size_t size, struct accessor *out);
int accessor_body_compared(uint16_t machine, const void *code, size_t size, struct accessor *out);

#endif
