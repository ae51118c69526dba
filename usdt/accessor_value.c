// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/accessor_value.h"

static bool value_is_pointer(const struct value *value)
{
	return value->kind == VALUE_MEMBER && value->size == 8;
}

bool value_is_argument(const struct value *value, unsigned int n)
{
	return value_is_pointer(value) && value->argument == n && !value->loads &&
	       !value->offset[0];
}

bool value_is_low_argument(const struct value *value, unsigned int n, unsigned int size)
{
	return value->kind == VALUE_MEMBER && value->argument == n && !value->loads &&
	       !value->offset[0] && value->size >= size;
}

bool value_is_member(const struct value *value)
{
	return value->kind == VALUE_MEMBER && !value->argument && value->loads == 1 &&
	       !value->offset[1];
}

bool value_same(const struct value *a, const struct value *b)
{
	if (a->kind != b->kind ||
	    (a->kind != VALUE_MEMBER && a->kind != VALUE_EQUALS && a->kind != VALUE_OR) ||
	    a->size != b->size || a->argument != b->argument || a->loads != b->loads ||
	    a->number != b->number)
		return false;
	for (unsigned int i = 0; i <= a->loads; i++)
		if (a->offset[i] != b->offset[i])
			return false;
	return true;
}

struct value value_plus(struct value value, int64_t number)
{
	if (value_is_pointer(&value))
		value.offset[value.loads] += number;
	else if (value.kind == VALUE_NUMBER)
		value.number = (int64_t)((uint64_t)value.number + (uint64_t)number);
	else
		value = (struct value){ 0 };
	return value;
}

struct value value_load(struct value value, int64_t offset, unsigned int size)
{
	value = value_plus(value, offset);
	if (value.kind != VALUE_MEMBER || value.loads == LOADS_MAX)
		return (struct value){ 0 };
	value.offset[++value.loads] = 0;
	value.size = (uint8_t)size;
	return value;
}

struct value value_sum(struct value a, struct value b)
{
	if (b.kind == VALUE_NUMBER)
		return value_plus(a, b.number);
	if (a.kind == VALUE_NUMBER)
		return value_plus(b, a.number);
	if (value_is_argument(&a, 1) && value_is_member(&b) && b.size == 8) {
		b.kind = VALUE_SUM;
		return b;
	}
	if (value_is_argument(&b, 1) && value_is_member(&a) && a.size == 8) {
		a.kind = VALUE_SUM;
		return a;
	}
	return (struct value){ 0 };
}

struct value value_or(struct value value, int64_t number, unsigned int size)
{
	if (!value_is_member(&value) || (size && value.size != size))
		return (struct value){ 0 };
	value.kind = VALUE_OR;
	value.number = number;
	return value;
}

struct value value_narrow(struct value value, unsigned int size)
{
	if (value_is_argument(&value, 1))
		value.size = (uint8_t)size;
	if (value.kind == VALUE_NUMBER ? value.number >> (8 * size - 1) != 0
				       : value.kind != VALUE_EQUALS && value.size > size)
		return (struct value){ 0 };
	return value;
}
