/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads ELF files of either class and byte order from memory.
 *
 * Source of the format: System V ABI, chapters 4 and 5, and elf(5). Every
 * structure handed out borrows from the bytes given to elf_open(): they must
 * stay as they are while it is in use. Nothing here allocates.
 */
#ifndef USDT_ELF_H
#define USDT_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf {
	const unsigned char *data;
	size_t size;
	bool is64;
	bool big_endian;
	uint16_t type;			/* ET_EXEC, ET_DYN, ET_REL, … */
	uint16_t machine;		/* EM_X86_64, … */
	uint64_t phoff, shoff;
	uint32_t phnum, shnum, shstrndx;
	uint16_t phentsize, shentsize;
};

struct elf_section {
	const char *name;		/* "" where it cannot be read */
	uint32_t type, link, info;
	uint64_t flags, addr, offset, size, entsize;
};

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, vaddr, filesz, memsz;
};

/* The PT_LOAD segments, for many look-ups. Files have some four; beyond these they are left out. */
#define ELF_LOADS	64

struct elf_loads {
	struct elf_segment segment[ELF_LOADS];
	uint32_t count;
};

struct elf_symbol {
	const char *name;
	uint64_t value, size;
	uint16_t shndx;			/* SHN_UNDEF, SHN_ABS, a section's index */
	uint8_t type, bind;		/* STT_…, STB_… */
};

/* A place in a symbol table; made by elf_symbols(), moved by elf_symbol_next(). */
struct elf_symbol_iter {
	const struct elf *elf;
	struct elf_section table, strings;
	uint64_t next, count;
};

/*
 * Reads the header of the ELF file in @data. Sections that a stripped or cut
 * file lacks are no error here. 0, or -ENOEXEC: no ELF file, or one whose
 * header contradicts itself.
 */
int elf_open(struct elf *elf, const void *data, size_t size);

/* Section @index. 0, or -ENOENT (no such section), -ENOEXEC (its header lies outside the file). */
int elf_section(const struct elf *elf, uint32_t index, struct elf_section *section);

/* The first section called @name. 0 or -ENOENT. */
int elf_section_find(const struct elf *elf, const char *name, struct elf_section *section);

/*
 * The section's bytes and, in *@size, how many of them are in the file.
 * NULL where it has none (SHT_NOBITS) or where any lies outside the file.
 */
const unsigned char *elf_section_data(const struct elf *elf, const struct elf_section *section,
				      size_t *size);

/* Program header @index. 0, -ENOENT or -ENOEXEC as for sections. */
int elf_segment(const struct elf *elf, uint32_t index, struct elf_segment *segment);

/*
 * File offset of virtual address @vaddr, through the PT_LOAD segments.
 * 0, or -ENOENT: no segment has that address from the file (bss included).
 */
int elf_vaddr_to_offset(const struct elf *elf, uint64_t vaddr, uint64_t *offset);

/* Reads the PT_LOAD segments. */
void elf_loads(const struct elf *elf, struct elf_loads *loads);

/* As elf_vaddr_to_offset(), through @loads: quick for many addresses in a file of many segments. */
int elf_loads_offset(const struct elf *elf, const struct elf_loads *loads, uint64_t vaddr,
		     uint64_t *offset);

/* Whether @vaddr lies in a PT_LOAD segment whose flags include all of @flags (PF_X, PF_W, PF_R). */
bool elf_vaddr_has_flags(const struct elf *elf, uint64_t vaddr, uint32_t flags);

/* Starts on symbol table section @type, SHT_SYMTAB or SHT_DYNSYM. 0 or -ENOENT. */
int elf_symbols(const struct elf *elf, uint32_t type, struct elf_symbol_iter *iter);

/* The next symbol; false at the end. A symbol whose name cannot be read has the name "". */
bool elf_symbol_next(struct elf_symbol_iter *iter, struct elf_symbol *symbol);

/*
 * The defined symbol called @name: .dynsym through .gnu.hash where the file
 * has it, else by reading it through; then .symtab. 0 or -ENOENT. Bounded by
 * the file's size whatever the tables say.
 */
int elf_symbol_find(const struct elf *elf, const char *name, struct elf_symbol *symbol);

/* As above, in .dynsym alone: quick also for a file that has no such symbol. */
int elf_symbol_find_dynamic(const struct elf *elf, const char *name, struct elf_symbol *symbol);

#endif
