/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ELF files of either class and byte order, in memory.
 *
 * Source of the format: System V ABI (gABI), chapters 4 and 5; elf(5); the GNU
 * extension .gnu.hash. Every result borrows from the bytes passed to elf_open(),
 * which must outlive it. Nothing here allocates, and no file, however malformed,
 * makes a function read outside those bytes, or do more than ->work permits.
 */
#ifndef USDT_ELF_H
#define USDT_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The work that may be done for a file, in bytes read or their equivalent. When nothing is left,
 * every function behaves as if the file ended, so that loops end soon.
 */
struct elf_work {
	uint64_t left;
	uint64_t pause_at;		/* call ->pause when ->left is no more than this */
	bool (*pause)(void *arg);	/* return true to read no more; NULL: none */
	void *arg;
	bool stopped;			/* by ->pause */
};

struct elf_index;

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
	struct elf_work *work;		/* borrowed; NULL: without a limit */
	struct elf_index *index;	/* borrowed, see elf_symbol.h; NULL: search linearly */
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

/*
 * Read the header of the ELF file in the @size bytes at @data, which are
 * borrowed. Missing sections, as in a stripped or truncated file, are not an
 * error. Return 0, or -ENOEXEC if it is not an ELF file or its header is
 * inconsistent.
 */
int elf_open(struct elf *elf, const void *data, size_t size);

/* Count @bytes of work. Return false if no more may be done. */
bool elf_spend(const struct elf *elf, uint64_t bytes);

/*
 * Read section @index. Return 0, -ENOENT (no such section) or -ENOEXEC (its
 * header is outside the file).
 */
int elf_section(const struct elf *elf, uint32_t index, struct elf_section *section);

/* Find the first section called @name. Return 0 or -ENOENT. */
int elf_section_find(const struct elf *elf, const char *name, struct elf_section *section);

/* Find the first section of @type; its name is not read. Return 0 or -ENOENT. */
int elf_section_find_type(const struct elf *elf, uint32_t type, struct elf_section *section);

/*
 * Return the bytes of @section, borrowed, and their number in *@size; or NULL
 * and 0 if it has none (SHT_NOBITS) or is not entirely inside the file.
 */
const unsigned char *elf_section_data(const struct elf *elf, const struct elf_section *section,
				      size_t *size);

/*
 * Find the first @size bytes like @bytes in .rodata, whose first 64 MiB are searched. Return them,
 * borrowed, with their number to the end of the section in *@left and their address in *@vaddr, or
 * NULL.
 */
const char *elf_constant(const struct elf *elf, const void *bytes, size_t size, size_t *left,
			 uint64_t *vaddr);

/* Return the string at @offset of string table @table, borrowed; "" if it is unreadable. */
const char *elf_string(const struct elf *elf, const struct elf_section *table, uint32_t offset);

/*
 * Return whether @wanted is true of the name of a library that the file is linked with (DT_NEEDED).
 */
bool elf_needs(const struct elf *elf, bool (*wanted)(const char *library));

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

#endif
