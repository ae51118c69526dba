/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arch_code->decode, ->global and ->element of x86-64, see arch.h. */
#ifndef USDT_ACCESSOR_X86_H
#define USDT_ACCESSOR_X86_H

#include "base/cursor.h"
#include "usdt/accessor.h"
#include "usdt/accessor_op.h"

bool accessor_x86_decode(struct cursor *code, struct uop_list *list);
int accessor_x86_global(const unsigned char *code, size_t size, uint64_t vaddr,
			uint64_t *variable);
int accessor_x86_element(const unsigned char *code, size_t size, uint64_t vaddr,
			 struct accessor_element *out);

#endif
