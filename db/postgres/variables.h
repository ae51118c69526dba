/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The variables of a server's program, of all backends alike. One without a symbol is found by what
 * it points to.
 */
#ifndef DB_POSTGRES_VARIABLES_H
#define DB_POSTGRES_VARIABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "host/process_memory.h"
#include "usdt/elf.h"

/* Addresses as linked, and sizes in bytes. */
struct variables {
	uint64_t data, data_bytes;	/* initialised ones */
	/* Constants: .rodata has arrays of pointers in a program that is not relocated; or 0. */
	uint64_t constants, constant_bytes;
	uint64_t bss, bss_bytes;	/* those that are zero at first */
};

void variables_find(const struct elf *elf, struct variables *variables);

/*
 * Read the words of the initialised variables or, if @constant, of the constants; *@n of them, the
 * first one at *@address as linked. Return NULL: there are none. The caller frees them.
 */
uint64_t *variables_words(const struct variables *variables, const struct process_memory *memory,
			  bool constant, size_t *n, uint64_t *address);

/*
 * Return the address as linked of the first variable in ->bss that is a pointer whose value
 * @matches accepts; 0: there is none. It is called for at most 4096 pointers, which are aligned.
 */
uint64_t variables_search(const struct variables *variables, const struct process_memory *memory,
			  bool (*matches)(const struct process_memory *memory, uint64_t value,
					  void *arg), void *arg);

#endif
