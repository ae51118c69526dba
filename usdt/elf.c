/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "usdt/elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "usdt/cursor.h"

/*
 * Limits on the tables of a hostile, possibly sparse file. The largest
 * executables seen have 165,000 symbols and some dozens of sections.
 */
#define SYMBOLS_MAX	(1u << 20)
#define SECTIONS_MAX	(1u << 16)

/* execve(2) refuses more than 64 KiB of program headers. This bounds each address conversion. */
#define SEGMENTS_MAX	(65536 / sizeof(Elf32_Phdr))

/* The size of an address or an offset in bytes. */
static unsigned int word_size(const struct elf *elf)
{
	return elf->is64 ? 8 : 4;
}

static size_t shdr_size(const struct elf *elf)
{
	return elf->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

static size_t phdr_size(const struct elf *elf)
{
	return elf->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}

static size_t sym_size(const struct elf *elf)
{
	return elf->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

/* A cursor at entry @index of the table at file offset @table; bad if outside the file. */
static struct cursor entry_cursor(const struct elf *elf, uint64_t table, uint32_t index,
				  uint16_t entsize)
{
	struct cursor c = cursor_over(elf->data, elf->size, elf->big_endian);
	uint64_t delta = (uint64_t)index * entsize;

	cursor_seek(&c, delta > UINT64_MAX - table ? UINT64_MAX : table + delta);
	return c;
}

/* Read the header of section @index. *@name is the offset of its name in the string table. */
static int section_read(const struct elf *elf, uint32_t index, struct elf_section *section,
			uint32_t *name)
{
	struct cursor c = entry_cursor(elf, elf->shoff, index, elf->shentsize);
	unsigned int word = word_size(elf);

	*name = (uint32_t)cursor_uint(&c, 4);
	section->name = "";
	section->type = (uint32_t)cursor_uint(&c, 4);
	section->flags = cursor_uint(&c, word);
	section->addr = cursor_uint(&c, word);
	section->offset = cursor_uint(&c, word);
	section->size = cursor_uint(&c, word);
	section->link = (uint32_t)cursor_uint(&c, 4);
	section->info = (uint32_t)cursor_uint(&c, 4);
	cursor_uint(&c, word);		/* alignment */
	section->entsize = cursor_uint(&c, word);
	return c.bad ? -ENOEXEC : 0;
}

/* Read the counts that do not fit the ELF header's 16 bits from section 0. */
static int header_read_extended(struct elf *elf)
{
	struct elf_section first;
	uint32_t name;

	if (elf->shnum && elf->shstrndx != SHN_XINDEX && elf->phnum != PN_XNUM)
		return 0;
	if (!elf->shoff || elf->shentsize != shdr_size(elf) ||
	    section_read(elf, 0, &first, &name))
		return 0;
	if (!elf->shnum) {
		if (first.size > UINT32_MAX)
			return -ENOEXEC;
		elf->shnum = (uint32_t)first.size;
	}
	if (elf->shstrndx == SHN_XINDEX)
		elf->shstrndx = first.link;
	if (elf->phnum == PN_XNUM && first.info)
		elf->phnum = first.info;
	return 0;
}

static int header_check(struct elf *elf)
{
	if (header_read_extended(elf))
		return -ENOEXEC;
	if (!elf->shoff)
		elf->shnum = 0;
	if (!elf->phoff)
		elf->phnum = 0;
	if (elf->shnum > SECTIONS_MAX)
		return -ENOEXEC;
	if (elf->shstrndx >= elf->shnum)
		elf->shstrndx = SHN_UNDEF;
	/* Larger entries would have a table extend over pages of which little is read. */
	if (elf->shnum && elf->shentsize != shdr_size(elf))
		return -ENOEXEC;
	if (elf->phnum && elf->phentsize != phdr_size(elf))
		return -ENOEXEC;
	return 0;
}

int elf_open(struct elf *elf, const void *data, size_t size)
{
	const unsigned char *ident = data;
	struct cursor c;

	if (size < EI_NIDENT || memcmp(ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	if (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB)
		return -ENOEXEC;
	*elf = (struct elf){
		.data = data,
		.size = size,
		.is64 = ident[EI_CLASS] == ELFCLASS64,
		.big_endian = ident[EI_DATA] == ELFDATA2MSB,
	};
	c = cursor_over(data, size, elf->big_endian);
	cursor_seek(&c, EI_NIDENT);
	elf->type = (uint16_t)cursor_uint(&c, 2);
	elf->machine = (uint16_t)cursor_uint(&c, 2);
	cursor_uint(&c, 4);			/* version */
	cursor_uint(&c, word_size(elf));	/* entry point */
	elf->phoff = cursor_uint(&c, word_size(elf));
	elf->shoff = cursor_uint(&c, word_size(elf));
	cursor_uint(&c, 4);			/* flags */
	cursor_uint(&c, 2);			/* size of this header */
	elf->phentsize = (uint16_t)cursor_uint(&c, 2);
	elf->phnum = (uint32_t)cursor_uint(&c, 2);
	elf->shentsize = (uint16_t)cursor_uint(&c, 2);
	elf->shnum = (uint32_t)cursor_uint(&c, 2);
	elf->shstrndx = (uint32_t)cursor_uint(&c, 2);
	return c.bad ? -ENOEXEC : header_check(elf);
}

const unsigned char *elf_section_data(const struct elf *elf, const struct elf_section *section,
				      size_t *size)
{
	*size = 0;
	if (section->type == SHT_NULL || section->type == SHT_NOBITS)
		return NULL;
	if (section->offset > elf->size || section->size > elf->size - section->offset)
		return NULL;
	*size = (size_t)section->size;
	return elf->data + section->offset;
}

/* The string at @offset of string table @table, "" if unreadable. */
static const char *string_at(const struct elf *elf, const struct elf_section *table,
			     uint32_t offset)
{
	size_t size;
	const unsigned char *data = elf_section_data(elf, table, &size);

	/*
	 * The format requires a NUL at the end of the table, which terminates every
	 * string. Searching the end of each would be quadratic in a hostile file.
	 */
	if (!data || offset >= size || data[size - 1])
		return "";
	return (const char *)data + offset;
}

int elf_section(const struct elf *elf, uint32_t index, struct elf_section *section)
{
	struct elf_section names;
	uint32_t name, unused;

	if (index >= elf->shnum)
		return -ENOENT;
	if (section_read(elf, index, section, &name))
		return -ENOEXEC;
	if (elf->shstrndx != SHN_UNDEF && !section_read(elf, elf->shstrndx, &names, &unused))
		section->name = string_at(elf, &names, name);
	return 0;
}

int elf_section_find(const struct elf *elf, const char *name, struct elf_section *section)
{
	/* The headers are contiguous: none follows one that is outside the file. */
	for (uint32_t i = 0; !elf_section(elf, i, section); i++) {
		if (!strcmp(section->name, name))
			return 0;
	}
	return -ENOENT;
}

/* Find the first section of @type; its name is not read. */
static int section_find_type(const struct elf *elf, uint32_t type, struct elf_section *section)
{
	uint32_t name;

	for (uint32_t i = 0; i < elf->shnum; i++) {
		if (section_read(elf, i, section, &name))
			break;
		if (section->type == type)
			return 0;
	}
	return -ENOENT;
}

int elf_segment(const struct elf *elf, uint32_t index, struct elf_segment *segment)
{
	struct cursor c = entry_cursor(elf, elf->phoff, index, elf->phentsize);
	unsigned int word = word_size(elf);

	if (index >= elf->phnum)
		return -ENOENT;
	segment->type = (uint32_t)cursor_uint(&c, 4);
	if (elf->is64)
		segment->flags = (uint32_t)cursor_uint(&c, 4);
	segment->offset = cursor_uint(&c, word);
	segment->vaddr = cursor_uint(&c, word);
	cursor_uint(&c, word);		/* physical address */
	segment->filesz = cursor_uint(&c, word);
	segment->memsz = cursor_uint(&c, word);
	if (!elf->is64)
		segment->flags = (uint32_t)cursor_uint(&c, 4);
	cursor_uint(&c, word);		/* alignment */
	return c.bad ? -ENOEXEC : 0;
}

/* Convert @vaddr to a file offset. Return false if @segment does not load it from the file. */
static bool segment_offset(const struct elf *elf, const struct elf_segment *segment, uint64_t vaddr,
			   uint64_t *offset)
{
	uint64_t delta = vaddr - segment->vaddr;

	if (segment->type != PT_LOAD || vaddr < segment->vaddr || delta >= segment->filesz)
		return false;
	if (segment->offset >= elf->size || delta >= elf->size - segment->offset)
		return false;
	*offset = segment->offset + delta;
	return true;
}

int elf_vaddr_to_offset(const struct elf *elf, uint64_t vaddr, uint64_t *offset)
{
	struct elf_segment segment;

	for (uint32_t i = 0; i < SEGMENTS_MAX && !elf_segment(elf, i, &segment); i++)
		if (segment_offset(elf, &segment, vaddr, offset))
			return 0;
	return -ENOENT;
}

void elf_loads(const struct elf *elf, struct elf_loads *loads)
{
	struct elf_segment segment;

	loads->count = 0;
	for (uint32_t i = 0; i < SEGMENTS_MAX && loads->count < ELF_LOADS; i++) {
		if (elf_segment(elf, i, &segment))
			break;
		if (segment.type == PT_LOAD)
			loads->segment[loads->count++] = segment;
	}
}

int elf_loads_offset(const struct elf *elf, const struct elf_loads *loads, uint64_t vaddr,
		     uint64_t *offset)
{
	for (uint32_t i = 0; i < loads->count; i++)
		if (segment_offset(elf, &loads->segment[i], vaddr, offset))
			return 0;
	return -ENOENT;
}

bool elf_vaddr_has_flags(const struct elf *elf, uint64_t vaddr, uint32_t flags)
{
	struct elf_segment segment;

	for (uint32_t i = 0; i < SEGMENTS_MAX && !elf_segment(elf, i, &segment); i++) {
		if (segment.type == PT_LOAD && vaddr >= segment.vaddr &&
		    vaddr - segment.vaddr < segment.memsz && (segment.flags & flags) == flags)
			return true;
	}
	return false;
}

/* Start with symbol table @table. */
static int symbols_over(const struct elf *elf, const struct elf_section *table,
			struct elf_symbol_iter *iter)
{
	uint32_t name;
	size_t size;

	if (table->entsize != sym_size(elf) || !elf_section_data(elf, table, &size))
		return -ENOENT;
	*iter = (struct elf_symbol_iter){
		.elf = elf,
		.table = *table,
		.count = size / table->entsize,
	};
	if (iter->count > SYMBOLS_MAX)
		iter->count = SYMBOLS_MAX;
	if (table->link >= elf->shnum || section_read(elf, table->link, &iter->strings, &name))
		iter->strings = (struct elf_section){ .name = "" };
	return 0;
}

int elf_symbols(const struct elf *elf, uint32_t type, struct elf_symbol_iter *iter)
{
	struct elf_section table;

	if (section_find_type(elf, type, &table))
		return -ENOENT;
	return symbols_over(elf, &table, iter);
}

/* Read symbol @index, which must be less than the count. */
static void symbol_read(const struct elf_symbol_iter *iter, uint64_t index,
			struct elf_symbol *symbol)
{
	const struct elf *elf = iter->elf;
	struct cursor c = cursor_over(elf->data, elf->size, elf->big_endian);
	uint32_t name;
	uint8_t info;

	cursor_seek(&c, iter->table.offset + index * iter->table.entsize);
	name = (uint32_t)cursor_uint(&c, 4);
	if (!elf->is64) {
		symbol->value = cursor_uint(&c, 4);
		symbol->size = cursor_uint(&c, 4);
	}
	info = (uint8_t)cursor_uint(&c, 1);
	cursor_uint(&c, 1);		/* visibility */
	symbol->shndx = (uint16_t)cursor_uint(&c, 2);
	if (elf->is64) {
		symbol->value = cursor_uint(&c, 8);
		symbol->size = cursor_uint(&c, 8);
	}
	symbol->type = info & 0xf;
	symbol->bind = info >> 4;
	symbol->name = string_at(elf, &iter->strings, name);
}

bool elf_symbol_next(struct elf_symbol_iter *iter, struct elf_symbol *symbol)
{
	if (iter->next >= iter->count)
		return false;
	symbol_read(iter, iter->next++, symbol);
	return true;
}

static bool symbol_defines(const struct elf_symbol *symbol, const char *name)
{
	return symbol->shndx != SHN_UNDEF && symbol->type != STT_SECTION &&
	       symbol->type != STT_FILE && !strcmp(symbol->name, name);
}

/* Find @name by a linear search of the symbol table of section type @type. */
static int table_find(const struct elf *elf, uint32_t type, const char *name,
		      struct elf_symbol *symbol)
{
	struct elf_symbol_iter iter;

	if (elf_symbols(elf, type, &iter))
		return -ENOENT;
	while (elf_symbol_next(&iter, symbol)) {
		if (symbol_defines(symbol, name))
			return 0;
	}
	return -ENOENT;
}

/*
 * .gnu.hash: four words (number of buckets, first hashed symbol, words of the
 * Bloom filter, its shift), the filter, the buckets, and one word per hashed
 * symbol. A bucket is the index of its first symbol. A symbol's word is its
 * hash with bit 0 replaced: set, it ends the bucket. The filter would save
 * reading one bucket; it is not used.
 */
struct gnu_hash {
	struct cursor words;
	struct elf_symbol_iter symbols;
	uint64_t buckets, chains;	/* offsets in the section */
	uint32_t nbuckets, first;
};

static int gnu_hash_open(const struct elf *elf, struct gnu_hash *table)
{
	struct elf_section section, symbols;
	const unsigned char *data;
	uint32_t name, bloom;
	size_t size;

	if (section_find_type(elf, SHT_GNU_HASH, &section) || section.link >= elf->shnum ||
	    section_read(elf, section.link, &symbols, &name) || symbols.type != SHT_DYNSYM ||
	    symbols_over(elf, &symbols, &table->symbols))
		return -ENOEXEC;
	data = elf_section_data(elf, &section, &size);
	if (!data)
		return -ENOEXEC;
	table->words = cursor_over(data, size, elf->big_endian);
	table->nbuckets = (uint32_t)cursor_uint(&table->words, 4);
	table->first = (uint32_t)cursor_uint(&table->words, 4);
	bloom = (uint32_t)cursor_uint(&table->words, 4);
	table->buckets = 16 + (uint64_t)bloom * word_size(elf);
	table->chains = table->buckets + (uint64_t)table->nbuckets * 4;
	return table->words.bad || !table->nbuckets ? -ENOEXEC : 0;
}

static uint32_t gnu_hash_word(struct gnu_hash *table, uint64_t pos)
{
	cursor_seek(&table->words, pos);
	return (uint32_t)cursor_uint(&table->words, 4);
}

static uint32_t gnu_hash_name(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* Return 0, -ENOENT (@name is not in the table) or -ENOEXEC (no table, or an inconsistent one). */
static int gnu_hash_find(const struct elf *elf, const char *name, struct elf_symbol *symbol)
{
	uint32_t hash = gnu_hash_name(name), word;
	struct gnu_hash table;
	uint64_t i;

	if (gnu_hash_open(elf, &table))
		return -ENOEXEC;
	i = gnu_hash_word(&table, table.buckets + (uint64_t)(hash % table.nbuckets) * 4);
	if (!i && !table.words.bad)
		return -ENOENT;
	if (i < table.first)
		return -ENOEXEC;
	for (; i < table.symbols.count; i++) {
		word = gnu_hash_word(&table, table.chains + (i - table.first) * 4);
		if (table.words.bad)
			return -ENOEXEC;
		if ((word | 1) == (hash | 1)) {
			symbol_read(&table.symbols, i, symbol);
			if (symbol_defines(symbol, name))
				return 0;
		}
		if (word & 1)
			return -ENOENT;
	}
	return -ENOEXEC;
}

int elf_symbol_find_dynamic(const struct elf *elf, const char *name, struct elf_symbol *symbol)
{
	int err;

	if (!*name)
		return -ENOENT;
	err = gnu_hash_find(elf, name, symbol);
	return err == -ENOEXEC ? table_find(elf, SHT_DYNSYM, name, symbol) : err;
}

int elf_symbol_find(const struct elf *elf, const char *name, struct elf_symbol *symbol)
{
	int err = elf_symbol_find_dynamic(elf, name, symbol);

	return err && *name ? table_find(elf, SHT_SYMTAB, name, symbol) : err;
}
