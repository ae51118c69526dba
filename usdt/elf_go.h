/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that Go's linker wrote. The runtime moves the stack of a goroutine that grows and reads the
 * return addresses on it: one that a return probe has replaced ends the program.
 *
 * Source of the names: Go's cmd/link/internal/ld, elf.go and data.go.
 */
#ifndef USDT_ELF_GO_H
#define USDT_ELF_GO_H

#include "usdt/elf.h"

/* Return whether @elf has a section of Go's linker, or in a segment the note with its build ID. */
bool elf_go_built(const struct elf *elf);

#endif
