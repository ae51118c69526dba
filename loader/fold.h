/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Simplify linked programs: the constants that the linker set decide branches, and what these
 * branches exclude is removed. The verifier does so as well (e2ae4ca266a1, 5.1), but only after it
 * has checked what is removed for loops and counted it.
 */
#ifndef LOADER_FOLD_H
#define LOADER_FOLD_H

#include <linux/bpf.h>
#include <stdint.h>

/*
 * Simplify the program of @count instructions at @insns, the functions that it calls included, in
 * place; @insns has room for @max. Return the number of instructions; or -ENOEXEC if the program is
 * malformed, -ENOSPC if it would exceed @max, -ENOMEM.
 */
int fold_program(struct bpf_insn *insns, uint32_t count, uint32_t max);

#endif
