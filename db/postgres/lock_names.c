// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/lock_names.h"

#include <stdlib.h>
#include <string.h>

#include "host/process_memory.h"
#include "usdt/elf_symbol.h"

/* Find the names of LWLock tranches; storage/lmgr/lwlock.c of 10, 13 and 17. */
static void find_tranches(const struct elf *elf, struct postgres_locks *places)
{
	static const char texts[][2][16] = {
		{ "\0OidGen", "\0XidGen" }, { "\0XactBuffer", "\0CommitTsBuffer" },
	};
	struct elf_symbol names;
	bool first = !elf_symbol_find(elf, "IndividualLWLockNames", &names);
	uint64_t vaddr;
	size_t left;

	places->text = 2;
	if (first || !elf_symbol_find(elf, "MainLWLockNames", &names)) {
		places->individual = names.value;
		places->text = places->nindividual = (unsigned int)(names.size / 8);
	}
	for (int i = 0; i < 2; i++)
		places->texts[i] = elf_constant(elf, texts[first][i],
						strlen(texts[first][i] + 1) + 2, &left,
						&vaddr) ? vaddr + 1 : 0;
}

void lock_names_find(const struct elf *elf, struct postgres_locks *places)
{
	struct elf_symbol kinds;

	variables_find(elf, &places->variables);
	find_tranches(elf, places);
	if (elf_symbol_find(elf, "LockTagTypeNames", &kinds))
		return;
	places->kinds = kinds.value;
	places->nkinds = (unsigned int)(kinds.size / 8);
	if (places->nkinds > POSTGRES_LOCK_KINDS)
		places->nkinds = POSTGRES_LOCK_KINDS;
}

/* Return where the @n @words have the two of @texts, one after the other; or @n. */
static size_t words_find(const uint64_t *words, size_t n, const uint64_t texts[2])
{
	for (size_t i = 0; i + 1 < n; i++)
		if (words[i] == texts[0] && words[i + 1] == texts[1])
			return i;
	return n;
}

/*
 * Return the address of the array of tranche names, since 13, or 0. Pointers to two known names
 * that are adjacent in the array identify it.
 */
static uint64_t read_array(const struct postgres_locks *places, const struct process_memory *memory)
{
	uint64_t texts[2] = { places->texts[0] + memory->slide, places->texts[1] + memory->slide };
	uint64_t address, found = 0;

	for (int constant = 0; places->texts[0] && !found && constant < 2; constant++) {
		size_t n, at;
		uint64_t *words = variables_words(&places->variables, memory, constant, &n,
						  &address);

		at = words_find(words, n, texts);
		if (at < n)
			found = address + memory->slide + (at - places->text) * 8;
		free(words);
	}
	return found;
}

static bool is_registered(const struct process_memory *memory, uint64_t value, void *arg)
{
	uint64_t pointers[2];

	return process_memory_get(memory, value, pointers, sizeof(pointers)) &&
	       !memcmp(pointers, arg, sizeof(pointers));
}

/*
 * Return the address of the array of tranche names before 13, or 0. It begins with the pointers in
 * ->individual.
 */
static uint64_t read_registered(const struct postgres_locks *places,
				const struct process_memory *memory)
{
	uint64_t pointers[2], at, address;

	if (!places->individual ||
	    process_memory_variable(memory, places->individual, pointers, sizeof(pointers)))
		return 0;
	at = variables_search(&places->variables, memory, is_registered, pointers);
	return at && !process_memory_variable(memory, at, &address, sizeof(address)) ? address : 0;
}

static void read_kinds(struct postgres_locks *places, const struct process_memory *memory)
{
	uint64_t pointers[POSTGRES_LOCK_KINDS] = { 0 };

	if (places->nkinds)
		process_memory_variable(memory, places->kinds, pointers, places->nkinds * 8);
	for (unsigned int i = 0; i < places->nkinds; i++)
		process_memory_string(memory, pointers[i], places->kind[i],
				      sizeof(places->kind[i]));
}

/*
 * Read the names of the first @n tranches. @array has all, or those that ->individual lacks; 0:
 * unknown.
 */
static void read_tranches(struct postgres_locks *places, const struct process_memory *memory,
			  uint64_t array, unsigned int n)
{
	uint64_t pointers[POSTGRES_TRANCHES] = { 0 };

	process_memory_get(memory, array, pointers, n * 8);
	if (places->nindividual < n)
		process_memory_get(memory, places->individual + memory->slide, pointers,
			   places->nindividual * 8);
	for (unsigned int i = 0; i < n; i++)
		process_memory_string(memory, pointers[i], places->tranche[i], POSTGRES_TRANCHE);
}

void lock_names_read(struct postgres_locks *places, const struct process_memory *memory,
		     const char *version)
{
	/* LWTRANCHE_FIRST_USER_DEFINED by release, since 10. */
	static const uint8_t counts[] = { 66, 72, 73, 73, 72, 75, 77, 92, 95, POSTGRES_TRANCHES };
	unsigned long release = strtoull(version, NULL, 10) - 10;

	read_kinds(places, memory);
	if (release < sizeof(counts))
		read_tranches(places, memory, release < 3 ? read_registered(places, memory) :
			      read_array(places, memory), counts[release]);
}
