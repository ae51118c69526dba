/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ELF files of any machine: headers, sections, symbols, notes, accessors, listing. */
#include <errno.h>

#include "cli/format/probe_print.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/valid.h"
#include "usdt/accessor.h"
#include "usdt/probe.h"
#include "usdt/site.h"

#define NAMES	64
#define CALLS	3

/* Read @text to its end. It must be inside the file, or a static "". */
static void check_string(const struct elf *elf, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	if (*text)
		REQUIRE(p >= elf->data && p < elf->data + elf->size &&
			memchr(p, '\0', elf->size - (size_t)(p - elf->data)));
}

static void check_sections(const struct elf *elf)
{
	struct elf_section section, found;
	const unsigned char *data;
	size_t size;

	for (uint32_t i = 0; !elf_section(elf, i, &section); i++) {
		check_string(elf, section.name);
		data = elf_section_data(elf, &section, &size);
		if (data)
			REQUIRE(data >= elf->data && size <= elf->size &&
				(size_t)(data - elf->data) <= elf->size - size);
		else
			REQUIRE(!size);
		REQUIRE(!elf_section_find(elf, section.name, &found) || !*section.name);
	}
}

static void check_address(const struct elf *elf, const struct elf_loads *loads, uint64_t vaddr)
{
	uint64_t offset = 0, again = 0, start, end;
	int err = elf_vaddr_to_offset(elf, vaddr, &offset);

	REQUIRE(err == 0 || err == -ENOENT);
	REQUIRE(err || offset < elf->size);
	if (loads->count < ELF_LOADS)
		REQUIRE(elf_loads_offset(elf, loads, vaddr, &again) == err && offset == again);
	if (!err)
		site_is_nop(elf, offset);
	site_function(elf, vaddr);
	if (site_body(elf, vaddr, &start, &end))
		REQUIRE(start <= vaddr && vaddr < end);
	elf_vaddr_has_flags(elf, vaddr, 1);
}

/* Return whether a linear search finds a @name with this value. */
static bool is_symbol(const struct elf *elf, const char *name, uint64_t value)
{
	static const uint32_t tables[] = { 11, 2 };	/* SHT_DYNSYM, SHT_SYMTAB */
	struct elf_symbol_iter iter;
	struct elf_symbol symbol;

	for (size_t i = 0; i < 2; i++)
		for (int err = elf_symbols(elf, tables[i], &iter);
		     !err && elf_symbol_next(&iter, &symbol);)
			if (symbol.value == value && !strcmp(symbol.name, name))
				return true;
	return false;
}

/* The index must find the same symbol as the linear search. */
static void check_index(const struct elf *elf, const char *name)
{
	struct elf_symbol linear = { .value = 0 }, found = { .value = 0 };
	struct elf_index index = { .symtab = { NULL, NULL, 0, false } };
	struct elf indexed = *elf;
	int err = elf_symbol_find(elf, name, &linear);

	indexed.index = &index;
	REQUIRE(elf_symbol_find(&indexed, name, &found) == err);
	REQUIRE(err || (found.name == linear.name && found.value == linear.value));
	elf_index_free(&index);
}

static void check_symbols(const struct elf *elf, uint32_t table, const struct elf_loads *loads)
{
	struct elf_symbol_iter iter;
	struct elf_symbol symbol, found;
	struct accessor accessor;
	uint64_t calls[CALLS];
	unsigned int names = 0;
	uint64_t vaddr;
	int64_t offset;

	if (elf_symbols(elf, table, &iter))
		return;
	REQUIRE(iter.count <= elf->size);
	while (names < NAMES && elf_symbol_next(&iter, &symbol)) {
		check_string(elf, symbol.name);
		check_address(elf, loads, symbol.value);
		if (!*symbol.name)
			continue;
		names++;
		if (!elf_symbol_find(elf, symbol.name, &found))
			REQUIRE(!strcmp(found.name, symbol.name) && found.shndx);
		else
			/* A wrong .gnu.hash hides symbols of .dynsym, but not of .symtab. */
			REQUIRE(table != 2 || !symbol.shndx || symbol.type == 3 || symbol.type == 4,
				"%s", symbol.name);
		check_index(elf, symbol.name);
		accessor_read(elf, symbol.name, &accessor);
		accessor_read_setter(elf, symbol.name, &accessor);
		accessor_read_third(elf, symbol.name, &accessor);
		accessor_read_compared(elf, symbol.name, &accessor);
		accessor_read_passed(elf, symbol.name, &accessor);
		accessor_read_flag(elf, symbol.name, &accessor);
		accessor_read_copied(elf, symbol.name, 8, &accessor);
		accessor_read_global(elf, symbol.name, &vaddr);
		accessor_match(elf, symbol.name, "48 8b @@@@@@@@", &offset);
		REQUIRE(site_calls(elf, &symbol, "called", calls, CALLS) <= CALLS);
	}
	if (!elf_symbol_find_dynamic(elf, "probed", &found))
		REQUIRE(table != 11 || elf->shnum > 64 || is_symbol(elf, "probed", found.value));
}

static void check_site(const struct elf *elf, const struct usdt_site *site)
{
	const char *refusal;
	uint64_t offset;

	check_string(elf, site->provider);
	check_string(elf, site->name);
	check_string(elf, site->args);
	REQUIRE(site->offset < elf->size && site->semaphore_offset < elf->size);
	REQUIRE(!elf_vaddr_to_offset(elf, site->vaddr, &offset) && offset == site->offset);
	REQUIRE(site->semaphore_vaddr || !site->semaphore_offset);
	refusal = site_refusal(elf, site);
	REQUIRE(site_is_nop(elf, site->offset) || refusal);
}

static void check_probes(const struct elf *elf)
{
	static struct output out;
	struct probe_list list;
	int err = probe_list_read(elf, &list);

	REQUIRE(err == 0 || err == -ENOENT, "%d", err);
	for (size_t i = 0; !err && i < list.count;) {
		size_t end = probe_list_end(&list, i);

		REQUIRE(end > i && end <= list.count);
		output_init(&out, -1);
		if (elf->size < OUTPUT_SIZE / 64) {
			probe_json(&out, "/a/file", elf, list.sites + i, end - i);
			REQUIRE(is_json_line(out.buf, out.len), "%.*s", (int)out.len, out.buf);
		}
		for (; i < end; i++)
			check_site(elf, &list.sites[i].site);
	}
	if (!err)
		probe_list_free(&list);
}

static bool is_libc(const char *library)
{
	return !strcmp(library, "libc.so.6");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_loads loads;
	struct elf elf;

	if (elf_open(&elf, data, size))
		return 0;
	elf_loads(&elf, &loads);
	elf_needs(&elf, is_libc);
	elf_symbol_has_functions(&elf);
	REQUIRE(loads.count <= ELF_LOADS);
	check_sections(&elf);
	check_symbols(&elf, 2, &loads);
	check_symbols(&elf, 11, &loads);
	check_probes(&elf);
	return 0;
}
