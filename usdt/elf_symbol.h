/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Symbol tables of ELF files.
 *
 * Source of the format: System V ABI (gABI), chapter 4; the GNU extension
 * .gnu.hash. Results borrow as those of elf.h; only the index allocates.
 */
#ifndef USDT_ELF_SYMBOL_H
#define USDT_ELF_SYMBOL_H

#include "usdt/elf.h"

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
 * An index by name of tables without .gnu.hash, which .symtab never has: to
 * search for a name that is missing would read the whole table each time. All
 * zero at first; built when it is used; elf_index_free() ends it.
 */
struct elf_index {
	struct elf_index_table {
		uint32_t *first;	/* by hash: number of a symbol, from 1; 0: none */
		uint32_t *next;		/* by symbol: the next one of that hash */
		uint32_t mask;		/* the number of hashes minus one */
		bool tried;
	} dynsym, symtab;
};

/* Start with symbol table @type, SHT_SYMTAB or SHT_DYNSYM. Return 0 or -ENOENT. */
int elf_symbols(const struct elf *elf, uint32_t type, struct elf_symbol_iter *iter);

/* Read the next symbol; an unreadable name is "". Return false at the end. */
bool elf_symbol_next(struct elf_symbol_iter *iter, struct elf_symbol *symbol);

/*
 * Find the defined symbol called @name: in .dynsym through .gnu.hash if the
 * file has that, else by a linear search; then in .symtab. Return 0 or -ENOENT.
 */
int elf_symbol_find(const struct elf *elf, const char *name, struct elf_symbol *symbol);

/* Return the value of the symbol that elf_symbol_find() finds, or 0. */
uint64_t elf_symbol_value(const struct elf *elf, const char *name);

/* Return whether the name of a defined symbol of .dynsym or .symtab begins with @prefix. */
bool elf_symbol_has_prefix(const struct elf *elf, const char *prefix);

/*
 * Return whether .dynsym or .symtab defines any function. After strip(1), an executable does only
 * if it was linked with -rdynamic.
 */
bool elf_symbol_has_functions(const struct elf *elf);

/* As elf_symbol_find(), but in .dynsym only: fast also if there is no such symbol. */
int elf_symbol_find_dynamic(const struct elf *elf, const char *name, struct elf_symbol *symbol);

/*
 * Extend @symbol, a function of .dynsym, up to the next symbol there of its section: by what is
 * behind it of the same source file without being exported. Others remain as they are.
 */
void elf_symbol_extend(const struct elf *elf, struct elf_symbol *symbol);

/* Free what @index owns. It is empty afterwards. */
void elf_index_free(struct elf_index *index);

#endif
