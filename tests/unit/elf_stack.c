/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* usdt/elf_stack: each sign of Go's linker by itself, and what resembles it. */
#include "usdt/elf_stack.h"

#include <elf.h>
#include <string.h>

#include "tests/unit/check.h"

/* A file with one section and one segment. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr sections[3];
	char names[64];
	unsigned char notes[128];
};

static void image_make(struct image *image, const char *section)
{
	static const char table[] = ".shstrtab";

	memset(image, 0, sizeof(*image));
	memcpy(image->header.e_ident, ELFMAG, SELFMAG);
	image->header.e_ident[EI_CLASS] = ELFCLASS64;
	image->header.e_ident[EI_DATA] = ELFDATA2LSB;
	image->header.e_type = ET_EXEC;
	image->header.e_phoff = offsetof(struct image, segment);
	image->header.e_phentsize = sizeof(Elf64_Phdr);
	image->header.e_phnum = 1;
	image->header.e_shoff = offsetof(struct image, sections);
	image->header.e_shentsize = sizeof(Elf64_Shdr);
	image->header.e_shnum = 3;
	image->header.e_shstrndx = 2;
	memcpy(image->names + 1, table, sizeof(table));
	strcpy(image->names + 20, section);
	image->sections[1] = (Elf64_Shdr){ .sh_name = 20, .sh_type = SHT_PROGBITS };
	image->sections[2] = (Elf64_Shdr){ .sh_name = 1, .sh_type = SHT_STRTAB,
					   .sh_offset = offsetof(struct image, names),
					   .sh_size = sizeof(image->names) };
	image->segment = (Elf64_Phdr){ .p_type = PT_LOAD };
}

/* Append a note with an ID of @size bytes at @at. Return where it ends. */
static size_t image_note(struct image *image, size_t at, const char owner[4], uint32_t type,
			 uint32_t size)
{
	const uint32_t head[] = { 4, size, type };

	memcpy(image->notes + at, head, sizeof(head));
	memcpy(image->notes + at + sizeof(head), owner, 4);
	at += sizeof(head) + 4 + ((size + 3) & ~3u);
	image->segment = (Elf64_Phdr){ .p_type = PT_NOTE,
				       .p_offset = offsetof(struct image, notes), .p_filesz = at };
	return at;
}

static bool is_go(const struct image *image)
{
	struct elf_work work = { .left = 100000, .pause_at = 0 };
	struct elf elf;

	if (elf_open(&elf, image, sizeof(*image)))
		return false;
	elf.work = &work;
	return elf_moves_stacks(&elf);
}

static void sections(void)
{
	static const struct {
		const char *name;
		bool go;
	} cases[] = {
		{ ".go.buildinfo", true }, { ".note.go.buildid", true }, { ".gopclntab", true },
		{ ".data.rel.ro.gopclntab", true }, { ".text", false }, { "", false },
		{ ".note.gnu.build-id", false }, { ".go.buildinfo2", false },
		{ "gopclntab", false },
	};
	struct image image;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		image_make(&image, cases[i].name);
		CHECK(is_go(&image) == cases[i].go, "%s", cases[i].name);
	}
}

/* Without section headers, or without their names, the note is what is left. */
static void notes(void)
{
	static const struct {
		const char *owner;
		uint32_t type;
		bool go;
	} cases[] = {
		{ "Go\0", 4, true }, { "Go\0", 3, false }, { "GNU", 4, false }, { "Gox", 4, false },
	};
	struct image image;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int headers = 0; headers < 3; headers++) {
			image_make(&image, ".go.buildinfo");
			image_note(&image, image_note(&image, 0, "GNU", 3, 5), cases[i].owner,
				   cases[i].type, 7);
			image.header.e_shstrndx = 0;
			if (headers)
				image.header.e_shnum = 0;
			if (headers == 2)
				image.header.e_shoff = 0;
			CHECK(is_go(&image) == cases[i].go, "%zu %d", i, headers);
		}
	}
}

/* Notes that are cut, or claim to be larger than the segment or the file. */
static void hostile(void)
{
	static const uint32_t sizes[] = { 0xffffffff, 0xfffffffd, 0x80000000, 200 };
	struct image image;
	size_t end;

	image_make(&image, ".text");
	end = image_note(&image, 0, "Go\0", 4, 8);
	for (size_t left = 0; left < end; left++) {
		image.segment.p_filesz = left;
		CHECK(is_go(&image) == (left >= 16), "%zu", left);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		image_make(&image, ".text");
		image_note(&image, image_note(&image, 0, "GNU", 3, 4), "Go\0", 4, 4);
		memcpy(image.notes, &sizes[i], 4);
		CHECK(!is_go(&image), "%u", sizes[i]);
		memcpy(image.notes, &(uint32_t){ 4 }, 4);
		memcpy(image.notes + 4, &sizes[i], 4);
		CHECK(!is_go(&image), "%u", sizes[i]);
	}
	image.segment.p_offset = UINT64_MAX - 8;
	CHECK(!is_go(&image));
	image.segment.p_offset = offsetof(struct image, notes);
	image.segment.p_filesz = UINT64_MAX;
	CHECK(!is_go(&image));
}

int main(void)
{
	RUN(sections);
	RUN(notes);
	RUN(hostile);
	return check_done();
}
