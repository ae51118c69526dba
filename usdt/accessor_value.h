/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Symbolic values: the contents of a register, in terms of the function's
 * arguments. Internal to usdt/accessor.c.
 */
#ifndef USDT_ACCESSOR_VALUE_H
#define USDT_ACCESSOR_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#define LOADS_MAX	2

enum value_kind {
	VALUE_UNKNOWN,		/* all members are 0 */
	VALUE_NUMBER,		/* ->number */
	VALUE_MEMBER,		/* argument + offset[0], then ->loads times: load, + offset[n] */
	VALUE_SUM,		/* the second argument + the object's member at offset[0] */
	VALUE_EQUALS,		/* flags: the VALUE_MEMBER == ->number */
	VALUE_OR,		/* the VALUE_MEMBER | ->number */
};

struct value {
	enum value_kind kind;
	uint8_t argument;	/* 0: the object, 1: the second argument, 2: the third */
	uint8_t loads;
	uint8_t size;		/* significant bytes */
	int64_t offset[LOADS_MAX + 1];
	int64_t number;
};

/* Return whether @value is argument @n, unchanged. */
bool value_is_argument(const struct value *value, unsigned int n);

/* Return whether the low @size bytes of @value are those of argument @n. */
bool value_is_low_argument(const struct value *value, unsigned int n, unsigned int size);

/* Return whether @value is the contents of a member of the object itself. */
bool value_is_member(const struct value *value);

/* Return whether @a and @b are the same VALUE_MEMBER, VALUE_EQUALS or VALUE_OR. */
bool value_same(const struct value *a, const struct value *b);

/* Return @value + @number: known for pointers and numbers. */
struct value value_plus(struct value value, int64_t number);

/* Return the @size bytes of memory at pointer @value + @offset. */
struct value value_load(struct value value, int64_t offset, unsigned int size);

/* Return @a + @b: known for a number and a pointer, or a member and the second argument. */
struct value value_sum(struct value a, struct value b);

/* Return @value | @number: known for the contents of a member of @size bytes; 0: any. */
struct value value_or(struct value value, int64_t number, unsigned int size);

/*
 * Return the low @size bytes (1, 2, 4) of @value; unknown if it has more significant ones, but for
 * the second argument, which may be smaller than its register.
 */
struct value value_narrow(struct value value, unsigned int size);

#endif
