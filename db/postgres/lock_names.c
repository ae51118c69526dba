// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/lock_names.h"

#include <stdlib.h>
#include <string.h>

#include "host/process.h"
#include "host/process_memory.h"
#include "usdt/elf_symbol.h"

#define RODATA_MAX	(64u << 20)	/* bytes that are searched; 2 MB are usual */

/* Find the names of LWLock tranches; storage/lmgr/lwlock.c of 10, 13 and 17. */
static void find_tranches(const struct elf *elf, struct postgres_locks *places)
{
	static const char texts[][2][16] = {
		{ "\0OidGen", "\0XidGen" }, { "\0XactBuffer", "\0CommitTsBuffer" },
	};
	struct elf_symbol names;
	struct elf_section section;
	const unsigned char *data = NULL, *at;
	bool first = !elf_symbol_find(elf, "IndividualLWLockNames", &names);
	size_t size = 0;

	places->text = 2;
	if (first || !elf_symbol_find(elf, "MainLWLockNames", &names)) {
		places->individual = names.value;
		places->text = places->nindividual = (unsigned int)(names.size / 8);
	}
	if (!elf_section_find(elf, ".rodata", &section))
		data = elf_section_data(elf, &section, &size);
	size = size < RODATA_MAX ? size : RODATA_MAX;
	for (int i = 0; i < 2; i++) {
		at = data && elf_spend(elf, size) ?
		     memmem(data, size, texts[first][i], strlen(texts[first][i] + 1) + 2) : NULL;
		places->texts[i] = at ? section.addr + (uint64_t)(at - data) + 1 : 0;
	}
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

/* Read @size bytes at @address. Return whether all could be read. */
static bool read_bytes(const struct process_memory *memory, uint64_t address, void *buf,
		       size_t size)
{
	return address && process_memory_read(memory, address, buf, size) == (ssize_t)size;
}

/*
 * Return the address of the array of tranche names, since 13, or 0. Pointers to two known names
 * that are adjacent in the array identify it.
 */
static uint64_t read_array(const struct postgres_locks *places, const struct process_memory *memory)
{
	uint64_t data = places->variables.data + memory->slide, found = 0;
	size_t size = places->variables.data_bytes;
	uint64_t texts[2] = { places->texts[0] + memory->slide, places->texts[1] + memory->slide };
	char *bytes = places->texts[0] ? malloc(size) : NULL, *at = NULL;

	if (bytes && read_bytes(memory, data, bytes, size))
		at = memmem(bytes, size, texts, sizeof(texts));
	if (at)
		found = data + (uint64_t)(at - bytes) - places->text * 8;
	free(bytes);
	return found;
}

static bool is_registered(const struct process_memory *memory, uint64_t value, const void *arg)
{
	uint64_t pointers[2];

	return read_bytes(memory, value, pointers, sizeof(pointers)) &&
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

/* Read the string at @address; "" if it is not NUL-terminated within @size bytes. */
static void read_name(const struct process_memory *memory, uint64_t address, char *name,
		      size_t size)
{
	if (!read_bytes(memory, address, name, size) || !memchr(name, '\0', size))
		*name = '\0';
}

static void read_kinds(struct postgres_locks *places, const struct process_memory *memory)
{
	uint64_t pointers[POSTGRES_LOCK_KINDS] = { 0 };

	if (places->nkinds)
		process_memory_variable(memory, places->kinds, pointers, places->nkinds * 8);
	for (unsigned int i = 0; i < places->nkinds; i++)
		read_name(memory, pointers[i], places->kind[i], sizeof(places->kind[i]));
}

/*
 * Read the names of the first @n tranches. @array has all, or those that ->individual lacks; 0:
 * unknown.
 */
static void read_tranches(struct postgres_locks *places, const struct process_memory *memory,
			  uint64_t array, unsigned int n)
{
	uint64_t pointers[POSTGRES_TRANCHES] = { 0 };

	read_bytes(memory, array, pointers, n * 8);
	if (places->nindividual < n)
		read_bytes(memory, places->individual + memory->slide, pointers,
			   places->nindividual * 8);
	for (unsigned int i = 0; i < n; i++)
		read_name(memory, pointers[i], places->tranche[i], POSTGRES_TRANCHE);
}

void lock_names_read(struct postgres_locks *places, uint32_t pid, const char *version)
{
	/* LWTRANCHE_FIRST_USER_DEFINED by release, since 10. */
	static const uint8_t counts[] = { 66, 72, 73, 73, 72, 75, 77, 92, 95, POSTGRES_TRANCHES };
	unsigned long release = strtoull(version, NULL, 10) - 10;
	struct process_memory memory;
	struct process process;

	if (process_read(pid, places->is_program, &process) ||
	    process_memory_open_program(&process, places->lowest, &memory))
		return;
	read_kinds(places, &memory);
	if (release < sizeof(counts))
		read_tranches(places, &memory, release < 3 ? read_registered(places, &memory) :
			      read_array(places, &memory), counts[release]);
	process_memory_close(&memory);
}
