/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a breakpoint may go. One inside an instruction corrupts the program that is traced,
 * and one on an instruction that the kernel must step out of line costs thirty
 * times what one on its neighbour does.
 */
#ifndef USDT_SITE_H
#define USDT_SITE_H

#include "usdt/note.h"

/*
 * Whether the instruction at file offset @offset is one of the nops that
 * sys/sdt.h puts at a site on the file's architecture, in an executable segment.
 */
bool site_is_nop(const struct elf *elf, uint64_t offset);

/*
 * Why no breakpoint may go on @site, or its semaphore not be counted in, in words that follow
 * "cannot be traced"; NULL: all is well. An instruction that the site would be inside of is found
 * where .eh_frame_hdr tells the function's beginning; where it does not, the nop is believed.
 */
const char *site_refusal(const struct elf *elf, const struct usdt_site *site);

/* Where the x86-64 function with @vaddr begins and ends, by .eh_frame_hdr. False: not told there. */
bool site_body(const struct elf *elf, uint64_t vaddr, uint64_t *start, uint64_t *end);

/*
 * The address to probe for the function that begins at @vaddr: behind a landing pad
 * (endbr64), which the kernel cannot emulate; the arguments are still where they were.
 */
uint64_t site_function(const struct elf *elf, uint64_t vaddr);

/*
 * The addresses of the instructions in @function that call function @callee. There, the arguments
 * are where it wants them, and the kernel emulates the instruction. Other bytes that name the
 * same 32 bits of distance are no chance. How many; 0 where there are none, or more than @max.
 */
size_t site_calls(const struct elf *elf, const struct elf_symbol *function, const char *callee,
		  uint64_t *vaddrs, size_t max);

#define SITE_REG	4	/* bytes of a register's name: "rbx", "x19" */

/*
 * The register that points to an object, where the instruction before the call at @vaddr loads
 * that's member at @offset for the call's first argument. 0 or -EINVAL: it does something else.
 */
int site_owner(const struct elf *elf, uint64_t vaddr, int64_t offset, char reg[SITE_REG]);

#endif
