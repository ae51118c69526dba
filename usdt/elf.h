/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ELF files of either class and byte order, in memory.
 *
 * Source of the format: System V ABI (gABI), chapters 4 and 5; elf(5); the GNU
 * extension .gnu.hash. Every result borrows from the bytes passed to elf_open(),
 * which must outlive it. Nothing here allocates, and no file, however malformed,
 * makes a function read outside those bytes or loop for long.
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
	const char *name;		/* "" if unreadable */
	uint32_t type, link, info;
	uint64_t flags, addr, offset, size, entsize;
};

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, vaddr, filesz, memsz;
};

/* The PT_LOAD segments, for many lookups. Files have about four; more than these are ignored. */
#define ELF_LOADS	64

struct elf_loads {
	struct elf_segment segment[ELF_LOADS];
	uint32_t count;
};

struct elf_symbol {
	const char *name;
	uint64_t value, size;
	uint16_t shndx;			/* SHN_UNDEF, SHN_ABS, or the index of a section */
	uint8_t type, bind;		/* STT_…, STB_… */
};

/* A position in a symbol table, for elf_symbols() and elf_symbol_next(). */
struct elf_symbol_iter {
	const struct elf *elf;
	struct elf_section table, strings;
	uint64_t next, count;
};

/*
 * Read the header of the ELF file in the @size bytes at @data, which are
 * borrowed. Missing sections, as in a stripped or truncated file, are not an
 * error. Return 0, or -ENOEXEC if it is not an ELF file or its header is
 * inconsistent.
 */
int elf_open(struct elf *elf, const void *data, size_t size);

/*
 * Read section @index. Return 0, -ENOENT (no such section) or -ENOEXEC (its
 * header is outside the file).
 */
int elf_section(const struct elf *elf, uint32_t index, struct elf_section *section);

/* Find the first section called @name. Return 0 or -ENOENT. */
int elf_section_find(const struct elf *elf, const char *name, struct elf_section *section);

/*
 * Return the bytes of @section, borrowed, and their number in *@size; or NULL
 * and 0 if it has none (SHT_NOBITS) or is not entirely inside the file.
 */
const unsigned char *elf_section_data(const struct elf *elf, const struct elf_section *section,
				      size_t *size);

/* Read program header @index. Return 0, -ENOENT or -ENOEXEC as elf_section() does. */
int elf_segment(const struct elf *elf, uint32_t index, struct elf_segment *segment);

/*
 * Convert virtual address @vaddr to a file offset in bytes, through the PT_LOAD
 * segments. Return 0, or -ENOENT if no segment loads that address from the file
 * (.bss, for instance).
 */
int elf_vaddr_to_offset(const struct elf *elf, uint64_t vaddr, uint64_t *offset);

/* Read the PT_LOAD segments. */
void elf_loads(const struct elf *elf, struct elf_loads *loads);

/* As elf_vaddr_to_offset(), but does not read the program headers again. */
int elf_loads_offset(const struct elf *elf, const struct elf_loads *loads, uint64_t vaddr,
		     uint64_t *offset);

/* Return whether @vaddr is in a PT_LOAD segment with all of @flags (PF_X, PF_W, PF_R). */
bool elf_vaddr_has_flags(const struct elf *elf, uint64_t vaddr, uint32_t flags);

/* Start with symbol table @type, SHT_SYMTAB or SHT_DYNSYM. Return 0 or -ENOENT. */
int elf_symbols(const struct elf *elf, uint32_t type, struct elf_symbol_iter *iter);

/* Read the next symbol; an unreadable name is "". Return false at the end. */
bool elf_symbol_next(struct elf_symbol_iter *iter, struct elf_symbol *symbol);

/*
 * Find the defined symbol called @name: in .dynsym through .gnu.hash if the
 * file has that, else by a linear search; then in .symtab. Return 0 or -ENOENT.
 */
int elf_symbol_find(const struct elf *elf, const char *name, struct elf_symbol *symbol);

/* As elf_symbol_find(), but in .dynsym only: fast also if there is no such symbol. */
int elf_symbol_find_dynamic(const struct elf *elf, const char *name, struct elf_symbol *symbol);

#endif
