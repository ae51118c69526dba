/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "usdt/elf_symbol.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

/* Of a table; the largest executables seen have 165,000. */
#define SYMBOLS_MAX	(1u << 20)
#define INDEXED_NAME	256	/* bytes of a name that is indexed, with its NUL */

static size_t sym_size(const struct elf *elf)
{
	return elf->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

/* Start with symbol table @table. */
static int symbols_over(const struct elf *elf, const struct elf_section *table,
			struct elf_symbol_iter *iter)
{
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
	if (elf_section(elf, table->link, &iter->strings))
		iter->strings = (struct elf_section){ .name = "" };
	return 0;
}

int elf_symbols(const struct elf *elf, uint32_t type, struct elf_symbol_iter *iter)
{
	struct elf_section table;

	if (elf_section_find_type(elf, type, &table))
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
	symbol->name = elf_string(elf, &iter->strings, name);
}

bool elf_symbol_next(struct elf_symbol_iter *iter, struct elf_symbol *symbol)
{
	if (iter->next >= iter->count || !elf_spend(iter->elf, iter->table.entsize))
		return false;
	symbol_read(iter, iter->next++, symbol);
	return true;
}

static bool symbol_defines(const struct elf_symbol *symbol, const char *name)
{
	return symbol->shndx != SHN_UNDEF && symbol->type != STT_SECTION &&
	       symbol->type != STT_FILE && !strcmp(symbol->name, name);
}

/* The hash of @name. Its length is stored in *@len, INDEXED_NAME if it is longer. */
static uint32_t index_hash(const char *name, size_t *len)
{
	uint32_t hash = 5381;
	size_t n = 0;

	for (; n < INDEXED_NAME && name[n]; n++)
		hash = hash * 33 + (unsigned char)name[n];
	*len = n;
	return hash ^ hash >> 15;
}

/* Read symbol @number, from 1. Return false if no more may be read. */
static bool index_symbol(struct elf_symbol_iter *symbols, uint32_t number,
			 struct elf_symbol *symbol)
{
	symbols->next = number - 1;
	return elf_symbol_next(symbols, symbol);
}

/* Chain all symbols by the hash of their names, from the last one to the first. */
static void index_fill(struct elf_index_table *table, struct elf_symbol_iter *symbols)
{
	struct elf_symbol symbol;
	uint32_t *first;
	size_t len;

	for (uint32_t i = (uint32_t)symbols->count; i && index_symbol(symbols, i, &symbol); i--) {
		if (!*symbol.name || symbol.shndx == SHN_UNDEF)
			continue;
		first = &table->first[index_hash(symbol.name, &len) & table->mask];
		if (!elf_spend(symbols->elf, len))
			break;
		if (len == INDEXED_NAME)
			continue;
		table->next[i - 1] = *first;
		*first = i;
	}
}

/* Build the index of @symbols unless that was tried. Return whether there is one. */
static bool index_build(struct elf_index_table *table, struct elf_symbol_iter *symbols)
{
	uint32_t hashes = 1;

	if (table->tried)
		return table->next;
	table->tried = true;
	while (hashes < symbols->count)
		hashes *= 2;
	table->mask = hashes - 1;
	table->first = calloc(hashes, sizeof(*table->first));
	table->next = calloc(symbols->count + 1, sizeof(*table->next));
	if (!table->first || !table->next) {
		free(table->first);
		free(table->next);
		table->first = table->next = NULL;
		return false;
	}
	index_fill(table, symbols);
	return true;
}

/*
 * Find the first symbol that defines @name in the table of section type @type, through elf->index.
 * Return 0, -ENOENT, or -ENOTSUP if the name is long or there is no memory for an index.
 */
static int index_find(const struct elf *elf, uint32_t type, const char *name,
		      struct elf_symbol *symbol)
{
	struct elf_index_table *table = type == SHT_DYNSYM ? &elf->index->dynsym :
							     &elf->index->symtab;
	struct elf_symbol_iter symbols;
	uint32_t hash, i;
	size_t len;

	hash = index_hash(name, &len);
	if (len == INDEXED_NAME)
		return -ENOTSUP;
	if (elf_symbols(elf, type, &symbols))
		return -ENOENT;
	if (!index_build(table, &symbols))
		return -ENOTSUP;
	for (i = table->first[hash & table->mask]; i; i = table->next[i - 1]) {
		if (i > symbols.count || !index_symbol(&symbols, i, symbol))
			break;
		if (symbol_defines(symbol, name))
			return 0;
	}
	return -ENOENT;
}

/* Find @name in the symbol table of section type @type, by the index or a linear search. */
static int table_find(const struct elf *elf, uint32_t type, const char *name,
		      struct elf_symbol *symbol)
{
	struct elf_symbol_iter iter;
	int err = elf->index ? index_find(elf, type, name, symbol) : -ENOTSUP;

	if (err != -ENOTSUP)
		return err;
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
	uint32_t bloom;
	size_t size;

	if (elf_section_find_type(elf, SHT_GNU_HASH, &section) ||
	    elf_section(elf, section.link, &symbols) || symbols.type != SHT_DYNSYM ||
	    symbols_over(elf, &symbols, &table->symbols))
		return -ENOEXEC;
	data = elf_section_data(elf, &section, &size);
	if (!data)
		return -ENOEXEC;
	table->words = cursor_over(data, size, elf->big_endian);
	table->nbuckets = (uint32_t)cursor_uint(&table->words, 4);
	table->first = (uint32_t)cursor_uint(&table->words, 4);
	bloom = (uint32_t)cursor_uint(&table->words, 4);
	table->buckets = 16 + (uint64_t)bloom * (elf->is64 ? 8 : 4);
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
	for (; i < table.symbols.count && elf_spend(elf, sizeof(word)); i++) {
		word = gnu_hash_word(&table, table.chains + (i - table.first) * 4);
		if (table.words.bad)
			return -ENOEXEC;
		if ((word | 1) == (hash | 1) && elf_spend(elf, table.symbols.table.entsize)) {
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

uint64_t elf_symbol_value(const struct elf *elf, const char *name)
{
	struct elf_symbol symbol;

	return elf_symbol_find(elf, name, &symbol) ? 0 : symbol.value;
}

/* Return whether a symbol with @prefix is defined, and is a function if @functions. */
static bool symbols_have(const struct elf *elf, const char *prefix, bool functions)
{
	static const uint32_t types[] = { SHT_DYNSYM, SHT_SYMTAB };
	size_t len = strlen(prefix);
	struct elf_symbol_iter iter;
	struct elf_symbol symbol;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (elf_symbols(elf, types[i], &iter))
			continue;
		while (elf_symbol_next(&iter, &symbol))
			if (symbol.shndx != SHN_UNDEF && !strncmp(symbol.name, prefix, len) &&
			    (!functions || symbol.type == STT_FUNC))
				return true;
	}
	return false;
}

bool elf_symbol_has_prefix(const struct elf *elf, const char *prefix)
{
	return symbols_have(elf, prefix, false);
}

bool elf_symbol_has_functions(const struct elf *elf)
{
	return symbols_have(elf, "", true);
}

void elf_symbol_extend(const struct elf *elf, struct elf_symbol *symbol)
{
	struct elf_symbol_iter iter;
	struct elf_symbol other;
	uint64_t size = UINT64_MAX;

	if (elf_symbol_find_dynamic(elf, symbol->name, &other) || other.value != symbol->value ||
	    elf_symbols(elf, SHT_DYNSYM, &iter))
		return;
	while (elf_symbol_next(&iter, &other))
		if (other.shndx == symbol->shndx && other.value > symbol->value &&
		    other.value - symbol->value < size)
			size = other.value - symbol->value;
	if (size != UINT64_MAX)
		symbol->size = size;
}

void elf_index_free(struct elf_index *index)
{
	struct elf_index_table *tables[] = { &index->dynsym, &index->symtab };

	for (int i = 0; i < 2; i++) {
		free(tables[i]->first);
		free(tables[i]->next);
		*tables[i] = (struct elf_index_table){ 0 };
	}
}
