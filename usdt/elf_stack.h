/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs whose runtime reads the return addresses on their stacks. One that a return probe has
 * replaced can end them.
 *
 * Source of the names: Go's cmd/link/internal/ld, elf.go and data.go; Itanium C++ ABI, Exception
 * Handling.
 */
#ifndef USDT_ELF_STACK_H
#define USDT_ELF_STACK_H

#include "usdt/elf.h"

/*
 * Return whether @elf is of Go's linker: it has a section of that, or in a segment the note with
 * its build ID. The runtime moves the stack of a goroutine that grows.
 */
bool elf_moves_stacks(const struct elf *elf);

/* Return whether @elf throws exceptions or panics, by the functions that it calls or defines. */
bool elf_throws(const struct elf *elf);

#endif
