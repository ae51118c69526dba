// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/accessor_op.h"

static struct uop *uop_append(struct uop_list *list, enum uop_kind kind, unsigned int reg)
{
	struct uop *op = &list->ops[list->count++];

	*op = (struct uop){ .kind = kind, .reg = (uint8_t)reg, .base = UOP_NO_REG,
			    .index = UOP_NO_REG, .size = 8 };
	return op;
}

void uop_add(struct uop_list *list, enum uop_kind kind, unsigned int reg)
{
	uop_append(list, kind, reg);
}

void uop_add_memory(struct uop_list *list, enum uop_kind kind, unsigned int reg, unsigned int base,
		    int64_t offset, unsigned int size)
{
	struct uop *op = uop_append(list, kind, reg);

	op->base = (uint8_t)base;
	op->number = offset;
	op->size = (uint8_t)size;
}

void uop_add_sum(struct uop_list *list, unsigned int reg, unsigned int base, unsigned int index)
{
	struct uop *op = uop_append(list, UOP_ADD, reg);

	op->base = (uint8_t)base;
	op->index = (uint8_t)index;
}

void uop_add_move(struct uop_list *list, unsigned int reg, unsigned int base, unsigned int size)
{
	struct uop *op = uop_append(list, UOP_MOVE, reg);

	op->base = (uint8_t)base;
	op->size = (uint8_t)size;
}

void uop_add_number(struct uop_list *list, enum uop_kind kind, unsigned int reg, int64_t number,
		    unsigned int size)
{
	struct uop *op = uop_append(list, kind, reg);

	op->number = number;
	op->size = (uint8_t)size;
}

void uop_add_compare(struct uop_list *list, unsigned int reg, unsigned int index)
{
	struct uop *op = uop_append(list, UOP_COMPARE, reg);

	op->index = (uint8_t)index;
	op->size = 0;
}

void uop_add_jump(struct uop_list *list, enum uop_kind kind, int64_t target, bool if_not)
{
	struct uop *op = uop_append(list, kind, UOP_NO_REG);

	op->target = target;
	op->number = if_not;
}

int64_t uop_sign_extend(uint64_t value, unsigned int bits)
{
	uint64_t sign = 1ull << (bits - 1);

	value &= sign * 2 - 1;
	return (int64_t)((value ^ sign) - sign);
}
