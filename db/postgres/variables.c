// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/variables.h"

#include <elf.h>
#include <stdlib.h>

#define DATA_MAX	(16u << 20)	/* bytes that are searched; 300 KB are usual */
#define BSS_MAX		(1u << 20)	/* 200 KB are usual */
#define POINTERS_MAX	16384

void variables_find(const struct elf *elf, struct variables *variables)
{
	struct elf_loads loads;

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

uint64_t variables_search(const struct variables *variables, const struct process_memory *memory,
			  bool (*matches)(const struct process_memory *memory, uint64_t value,
					  const void *arg), const void *arg)
{
	size_t size = variables->bss_bytes & ~7ull;
	uint64_t *words = size ? malloc(size) : NULL, found = 0;
	ssize_t n = words ? process_memory_read(memory, variables->bss + memory->slide, words,
						size) : 0;

	for (ssize_t i = 0, pointers = 0; i < n / 8 && !found && pointers < POINTERS_MAX; i++) {
		/* No address has these bits. */
		if (words[i] < 4096 || words[i] & 7 || words[i] >> 56)
			continue;
		pointers++;
		if (matches(memory, words[i], arg))
			found = variables->bss + (uint64_t)i * 8;
	}
	free(words);
	return found;
}
