/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a breakpoint may go. One inside an instruction corrupts the program that is traced,
 * and one on an instruction that the kernel must step out of line costs thirty
 * times what one on its neighbour does.
 */
#ifndef USDT_SITE_H
#define USDT_SITE_H

#include "usdt/elf.h"

/*
 * Whether the instruction at file offset @offset is one of the nops that
 * sys/sdt.h puts at a site on the file's architecture, in an executable segment.
 */
bool site_is_nop(const struct elf *elf, uint64_t offset);

/*
 * The address to probe for the function that begins at @vaddr: behind a landing pad
 * (endbr64), which the kernel cannot emulate; the arguments are still where they were.
 */
uint64_t site_function(const struct elf *elf, uint64_t vaddr);

#endif
