// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/variables.h"

#include <elf.h>
#include <stdlib.h>

#define DATA_MAX	(4u << 20)	/* bytes that are searched; 300 KB are usual */
#define BSS_MAX		(1u << 20)	/* 200 KB are usual */
#define POINTERS_MAX	4096	/* 500 are usual */

void variables_find(const struct elf *elf, struct variables *variables)
{
	struct elf_section constants;
	struct elf_loads loads;

	if (elf->type == ET_EXEC && !elf_section_find(elf, ".rodata", &constants)) {
		variables->constants = constants.addr;
		variables->constant_bytes = constants.size < DATA_MAX ? constants.size : DATA_MAX;
	}
	elf_loads(elf, &loads);
	for (uint32_t i = loads.count; i--;) {
		const struct elf_segment *segment = &loads.segment[i];
		uint64_t end = segment->vaddr + segment->filesz;

		if (!(segment->flags & PF_W))
			continue;
		/* Initialised variables are in the first writable segment. */
		variables->data = segment->vaddr;
		variables->data_bytes = segment->filesz < DATA_MAX ? segment->filesz : DATA_MAX;
		/* Other segments may have padding. */
		if (segment->memsz <= segment->filesz + variables->bss_bytes)
			continue;
		variables->bss = (end + 7) & ~7ull;
		variables->bss_bytes = segment->memsz - segment->filesz;
	}
	if (variables->bss_bytes > BSS_MAX)
		variables->bss_bytes = BSS_MAX;
}

/* Read the @size bytes as linked at @address in words. Return NULL: they cannot be read. */
static uint64_t *words_read(const struct process_memory *memory, uint64_t address, uint64_t size,
			    size_t *n)
{
	uint64_t *words = size >= 8 ? malloc(size) : NULL;
	ssize_t len = words ? process_memory_read(memory, address + memory->slide, words, size) : 0;

	*n = len > 0 ? (size_t)len / 8 : 0;
	return words;
}

uint64_t *variables_words(const struct variables *variables, const struct process_memory *memory,
			  bool constant, size_t *n, uint64_t *address)
{
	uint64_t begin = constant ? variables->constants : variables->data;
	uint64_t size = constant ? variables->constant_bytes : variables->data_bytes;
	uint64_t skipped = -begin & 7;

	*address = begin + skipped;
	return words_read(memory, *address, size > skipped ? size - skipped : 0, n);
}

uint64_t variables_search(const struct variables *variables, const struct process_memory *memory,
			  bool (*matches)(const struct process_memory *memory, uint64_t value,
					  void *arg), void *arg)
{
	uint64_t found = 0, *words;
	unsigned int pointers = 0;
	size_t n;

	words = words_read(memory, variables->bss, variables->bss_bytes, &n);
	for (size_t i = 0; i < n && !found && pointers < POINTERS_MAX; i++) {
		/* No address has these bits. */
		if (words[i] < 4096 || words[i] & 7 || words[i] >> 56)
			continue;
		pointers++;
		if (matches(memory, words[i], arg))
			found = variables->bss + i * 8;
	}
	free(words);
	return found;
}
