/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "usdt/elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cursor.h"

#define SECTIONS_MAX	(1u << 16)	/* the largest executables seen have some dozens */

/* execve(2) refuses more than 64 KiB of program headers. This bounds each address conversion. */
#define SEGMENTS_MAX	(65536 / sizeof(Elf32_Phdr))

#define RODATA_MAX	(64u << 20)	/* bytes that are searched; PostgreSQL has 2 MB */
#define PAUSE_BYTES	(1u << 19)	/* of work between two pauses: at most some milliseconds */
#define LOAD_BYTES	16		/* equivalent of comparing with a segment */
#define DYNAMIC_BYTES	32		/* equivalent of comparing with a library */

bool elf_spend(const struct elf *elf, uint64_t bytes)
{
	struct elf_work *work = elf->work;

	if (!work)
		return true;
	work->left = bytes < work->left ? work->left - bytes : 0;
	if (work->pause && work->left && work->left <= work->pause_at) {
		work->pause_at = work->left > PAUSE_BYTES ? work->left - PAUSE_BYTES : 0;
		work->stopped = work->pause(work->arg);
		if (work->stopped)
			work->left = 0;
	}
	return work->left;
}

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

	if (!elf_spend(elf, elf->shentsize))
		return -ENOEXEC;
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

const char *elf_constant(const struct elf *elf, const void *bytes, size_t size, size_t *left,
			 uint64_t *vaddr)
{
	const unsigned char *data = NULL, *at = NULL;
	struct elf_section section;
	size_t all = 0;

	if (!elf_section_find(elf, ".rodata", &section))
		data = elf_section_data(elf, &section, &all);
	all = all < RODATA_MAX ? all : RODATA_MAX;
	if (data && elf_spend(elf, all))
		at = memmem(data, all, bytes, size);
	if (!at)
		return NULL;
	*left = all - (size_t)(at - data);
	*vaddr = section.addr + (uint64_t)(at - data);
	return (const char *)at;
}

const char *elf_string(const struct elf *elf, const struct elf_section *table, uint32_t offset)
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
		section->name = elf_string(elf, &names, name);
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

int elf_section_find_type(const struct elf *elf, uint32_t type, struct elf_section *section)
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

bool elf_needs(const struct elf *elf, bool (*wanted)(const char *library))
{
	struct elf_section dynamic, strings;
	const unsigned char *data;
	struct cursor c;
	uint64_t tag, value;
	size_t size;

	if (elf_section_find_type(elf, SHT_DYNAMIC, &dynamic) ||
	    elf_section(elf, dynamic.link, &strings))
		return false;
	data = elf_section_data(elf, &dynamic, &size);
	c = cursor_over(data, size, elf->big_endian);
	while (cursor_left(&c) && elf_spend(elf, DYNAMIC_BYTES)) {
		tag = cursor_uint(&c, word_size(elf));
		value = cursor_uint(&c, word_size(elf));
		if (tag == DT_NULL)
			break;
		if (tag == DT_NEEDED && wanted(elf_string(elf, &strings, (uint32_t)value)))
			return true;
	}
	return false;
}

int elf_segment(const struct elf *elf, uint32_t index, struct elf_segment *segment)
{
	struct cursor c = entry_cursor(elf, elf->phoff, index, elf->phentsize);
	unsigned int word = word_size(elf);

	if (index >= elf->phnum)
		return -ENOENT;
	if (!elf_spend(elf, elf->phentsize))
		return -ENOEXEC;
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
	if (!elf_spend(elf, loads->count * LOAD_BYTES))
		return -ENOENT;
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
