/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * base/cursor.h, elf.c and note.c with files built in memory: valid ones of both
 * classes and byte orders, and hostile ones. Also meant for ASan and UBSan.
 */
#include "usdt/elf_symbol.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cursor.h"
#include "tests/unit/check.h"
#include "usdt/note.h"

/* A file in memory */

#define IMAGE_MAX	4096
#define TEXT_DELTA	0x10000		/* virtual address minus file offset */
#define DATA_DELTA	0x31000
#define TEXT_SIZE	64
#define DATA_SIZE	16
#define BSS_SIZE	32
#define NSEGMENTS	3
#define NFLAVORS	4

enum {
	S_NULL, S_TEXT, S_BASE, S_PROBES, S_BSS, S_NOTES, S_DYNSYM, S_DYNSTR, S_HASH, S_SYMTAB,
	S_STRTAB, S_NAMES, S_COUNT,
};

static const char *const section_names[S_COUNT] = {
	"", ".text", ".stapsdt.base", ".probes", ".bss", ".note.stapsdt", ".dynsym", ".dynstr",
	".gnu.hash", ".symtab", ".strtab", ".shstrtab",
};

struct image {
	unsigned char bytes[IMAGE_MAX];
	size_t size;
	bool is64, big_endian;
	size_t phdrs, shdrs;
	size_t offset[S_COUNT], length[S_COUNT];	/* of the sections */
};

/* Offset and size of a member in the 32-bit and the 64-bit struct of <elf.h>. */
struct member {
	size_t offset[2], size[2];
};

#define MEMBER(type, m) ((struct member){                                        \
	{ offsetof(Elf32_##type, m), offsetof(Elf64_##type, m) },                \
	{ sizeof(((Elf32_##type *)0)->m), sizeof(((Elf64_##type *)0)->m) } })

#define STRUCT_SIZE(im, type) ((im)->is64 ? sizeof(Elf64_##type) : sizeof(Elf32_##type))

static void poke(struct image *im, size_t pos, size_t n, uint64_t value)
{
	for (size_t i = 0; i < n; i++)
		im->bytes[pos + i] = (unsigned char)(value >> 8 * (im->big_endian ? n - 1 - i : i));
}

static void poke_member(struct image *im, size_t pos, struct member m, uint64_t value)
{
	poke(im, pos + m.offset[im->is64], m.size[im->is64], value);
}

#define POKE_EHDR(im, m, value) poke_member(im, 0, MEMBER(Ehdr, m), value)
#define POKE_SHDR(im, i, m, value)                                               \
	poke_member(im, (im)->shdrs + (size_t)(i) * STRUCT_SIZE(im, Shdr), MEMBER(Shdr, m), value)
#define POKE_PHDR(im, i, m, value)                                               \
	poke_member(im, (im)->phdrs + (size_t)(i) * STRUCT_SIZE(im, Phdr), MEMBER(Phdr, m), value)

/* Append @n zero bytes. Return their offset. */
static size_t reserve(struct image *im, size_t n)
{
	size_t pos = im->size;

	if (n > IMAGE_MAX - pos)
		abort();
	im->size += n;
	return pos;
}

static void put(struct image *im, size_t n, uint64_t value)
{
	poke(im, reserve(im, n), n, value);
}

static void put_word(struct image *im, uint64_t value)
{
	put(im, im->is64 ? 8 : 4, value);
}

static size_t put_string(struct image *im, const char *s)
{
	size_t pos = reserve(im, strlen(s) + 1);

	memcpy(im->bytes + pos, s, strlen(s) + 1);
	return pos;
}

static void align(struct image *im, size_t to)
{
	while (im->size % to)
		put(im, 1, 0);
}

static void section_start(struct image *im, int index)
{
	align(im, 8);
	im->offset[index] = im->size;
}

static void section_end(struct image *im, int index)
{
	im->length[index] = im->size - im->offset[index];
}

static uint64_t text_addr(const struct image *im)
{
	return im->offset[S_TEXT] + TEXT_DELTA;
}

static uint64_t probes_addr(const struct image *im)
{
	return im->offset[S_PROBES] + DATA_DELTA;
}

static uint64_t base_addr(const struct image *im)
{
	return im->offset[S_BASE] + TEXT_DELTA;
}

static void put_note(struct image *im, const char *owner, uint32_t type, const void *desc,
		     size_t size)
{
	put(im, 4, strlen(owner) + 1);
	put(im, 4, size);
	put(im, 4, type);
	put_string(im, owner);
	align(im, 4);
	memcpy(im->bytes + reserve(im, size), desc, size);
	align(im, 4);
}

static void put_probe(struct image *im, uint64_t site, uint64_t semaphore, const char *provider,
		      const char *name, const char *args)
{
	struct image desc = { .is64 = im->is64, .big_endian = im->big_endian };

	put_word(&desc, site);
	put_word(&desc, base_addr(im));
	put_word(&desc, semaphore);
	put_string(&desc, provider);
	put_string(&desc, name);
	put_string(&desc, args);
	put_note(im, "stapsdt", 3, desc.bytes, desc.size);
}

static void put_notes(struct image *im)
{
	uint64_t text = text_addr(im), probes = probes_addr(im);

	section_start(im, S_NOTES);
	put_probe(im, text + 8, probes + 2, "test-app", "test-probe", "8@%rax -4@$-1");
	put_note(im, "GNU", 3, "\1\2\3\4\5", 5);
	put_note(im, "stapsdt", 4, "\1\2\3\4\5", 5);
	put_probe(im, text + 16, 0, "app", "twice", "");
	put_probe(im, text + 24, probes + 4, "app", "twice", "-4@8(%rsp)");
	section_end(im, S_NOTES);
}

static void put_symbol(struct image *im, uint64_t name, uint64_t value, unsigned int info,
		       unsigned int shndx)
{
	size_t pos = reserve(im, STRUCT_SIZE(im, Sym));

	poke_member(im, pos, MEMBER(Sym, st_name), name);
	poke_member(im, pos, MEMBER(Sym, st_value), value);
	poke_member(im, pos, MEMBER(Sym, st_size), 8);
	poke_member(im, pos, MEMBER(Sym, st_info), info);
	poke_member(im, pos, MEMBER(Sym, st_shndx), shndx);
}

#define INFO(bind, type)	ELF64_ST_INFO(bind, type)

/* Hashed symbols: "alpha", … at text + 0, 4, 8, … */
static const char *const exported[] = { "alpha", "beta", "gamma", "delta", "epsilon", "zeta" };
#define NEXPORTED	(sizeof(exported) / sizeof(*exported))
#define NBUCKETS	2
#define FIRST_HASHED	2

static uint32_t hash_name(const char *s)
{
	uint32_t h = 5381;

	while (*s)
		h = (h << 5) + h + (unsigned char)*s++;
	return h;
}

/* .dynstr, .dynsym and .gnu.hash: a null symbol, an import, then the exports by bucket. */
static void put_dynamic(struct image *im)
{
	size_t names[NEXPORTED], import;
	uint32_t chains[NEXPORTED], buckets[NBUCKETS] = { 0 };
	unsigned int n = 0;

	section_start(im, S_DYNSTR);
	put(im, 1, 0);
	import = put_string(im, "malloc") - im->offset[S_DYNSTR];
	for (size_t i = 0; i < NEXPORTED; i++)
		names[i] = put_string(im, exported[i]) - im->offset[S_DYNSTR];
	section_end(im, S_DYNSTR);

	section_start(im, S_DYNSYM);
	put_symbol(im, 0, 0, 0, SHN_UNDEF);
	put_symbol(im, import, 0, INFO(STB_GLOBAL, STT_FUNC), SHN_UNDEF);
	for (unsigned int b = 0; b < NBUCKETS; b++) {
		for (size_t i = 0; i < NEXPORTED; i++) {
			if (hash_name(exported[i]) % NBUCKETS != b)
				continue;
			if (!buckets[b])
				buckets[b] = FIRST_HASHED + n;
			chains[n++] = hash_name(exported[i]) & ~1u;
			put_symbol(im, names[i], text_addr(im) + 4 * i,
				   INFO(STB_GLOBAL, STT_FUNC), S_TEXT);
		}
		if (buckets[b])
			chains[n - 1] |= 1;
	}
	section_end(im, S_DYNSYM);

	section_start(im, S_HASH);
	put(im, 4, NBUCKETS);
	put(im, 4, FIRST_HASHED);
	put(im, 4, 1);
	put(im, 4, 6);
	put_word(im, ~0ull);
	for (unsigned int b = 0; b < NBUCKETS; b++)
		put(im, 4, buckets[b]);
	for (size_t i = 0; i < NEXPORTED; i++)
		put(im, 4, chains[i]);
	section_end(im, S_HASH);
}

/* A file symbol and a function with one name, and an "alpha" that .dynsym also has. */
static void put_symtab(struct image *im)
{
	size_t hidden, alpha;

	section_start(im, S_STRTAB);
	put(im, 1, 0);
	hidden = put_string(im, "hidden") - im->offset[S_STRTAB];
	alpha = put_string(im, "alpha") - im->offset[S_STRTAB];
	section_end(im, S_STRTAB);
	section_start(im, S_SYMTAB);
	put_symbol(im, 0, 0, 0, SHN_UNDEF);
	put_symbol(im, hidden, 0, INFO(STB_LOCAL, STT_FILE), SHN_ABS);
	put_symbol(im, hidden, text_addr(im) + 32, INFO(STB_LOCAL, STT_FUNC), S_TEXT);
	put_symbol(im, alpha, text_addr(im) + 40, INFO(STB_GLOBAL, STT_FUNC), S_TEXT);
	section_end(im, S_SYMTAB);
}

static void put_shdr(struct image *im, int i, uint32_t type, uint64_t addr, uint32_t link,
		     uint64_t entsize)
{
	POKE_SHDR(im, i, sh_type, type);
	POKE_SHDR(im, i, sh_addr, addr);
	POKE_SHDR(im, i, sh_offset, im->offset[i]);
	POKE_SHDR(im, i, sh_size, im->length[i]);
	POKE_SHDR(im, i, sh_link, link);
	POKE_SHDR(im, i, sh_entsize, entsize);
}

static void put_shdrs(struct image *im)
{
	size_t names[S_COUNT];

	section_start(im, S_NAMES);
	for (int i = 0; i < S_COUNT; i++)
		names[i] = put_string(im, section_names[i]) - im->offset[S_NAMES];
	section_end(im, S_NAMES);
	align(im, 8);
	im->shdrs = reserve(im, S_COUNT * STRUCT_SIZE(im, Shdr));
	put_shdr(im, S_TEXT, SHT_PROGBITS, text_addr(im), 0, 0);
	put_shdr(im, S_BASE, SHT_PROGBITS, base_addr(im), 0, 0);
	put_shdr(im, S_PROBES, SHT_PROGBITS, probes_addr(im), 0, 0);
	im->offset[S_BSS] = im->offset[S_PROBES] + DATA_SIZE;
	im->length[S_BSS] = BSS_SIZE;
	put_shdr(im, S_BSS, SHT_NOBITS, probes_addr(im) + DATA_SIZE, 0, 0);
	put_shdr(im, S_NOTES, SHT_NOTE, 0, 0, 0);
	put_shdr(im, S_DYNSYM, SHT_DYNSYM, 0, S_DYNSTR, STRUCT_SIZE(im, Sym));
	put_shdr(im, S_DYNSTR, SHT_STRTAB, 0, 0, 0);
	put_shdr(im, S_HASH, SHT_GNU_HASH, 0, S_DYNSYM, 0);
	put_shdr(im, S_SYMTAB, SHT_SYMTAB, 0, S_STRTAB, STRUCT_SIZE(im, Sym));
	put_shdr(im, S_STRTAB, SHT_STRTAB, 0, 0, 0);
	put_shdr(im, S_NAMES, SHT_STRTAB, 0, 0, 0);
	for (int i = 0; i < S_COUNT; i++)
		POKE_SHDR(im, i, sh_name, names[i]);
}

static void put_phdr(struct image *im, int i, uint32_t type, uint32_t flags, uint64_t offset,
		     uint64_t vaddr, uint64_t filesz, uint64_t memsz)
{
	POKE_PHDR(im, i, p_type, type);
	POKE_PHDR(im, i, p_flags, flags);
	POKE_PHDR(im, i, p_offset, offset);
	POKE_PHDR(im, i, p_vaddr, vaddr);
	POKE_PHDR(im, i, p_filesz, filesz);
	POKE_PHDR(im, i, p_memsz, memsz);
}

static void put_segments(struct image *im)
{
	size_t text_end = im->offset[S_BASE] + im->length[S_BASE];

	/* A PT_NOTE segment overlaps the text and must be ignored. */
	put_phdr(im, 0, PT_NOTE, PF_R | PF_W | PF_X, 8, text_addr(im), TEXT_SIZE, TEXT_SIZE);
	put_phdr(im, 1, PT_LOAD, PF_R | PF_X, 0, TEXT_DELTA, text_end, text_end);
	put_phdr(im, 2, PT_LOAD, PF_R | PF_W, im->offset[S_PROBES], probes_addr(im), DATA_SIZE,
		 DATA_SIZE + BSS_SIZE);
}

static void put_ehdr(struct image *im)
{
	memcpy(im->bytes, ELFMAG, SELFMAG);
	im->bytes[EI_CLASS] = im->is64 ? ELFCLASS64 : ELFCLASS32;
	im->bytes[EI_DATA] = im->big_endian ? ELFDATA2MSB : ELFDATA2LSB;
	im->bytes[EI_VERSION] = EV_CURRENT;
	POKE_EHDR(im, e_type, ET_DYN);
	POKE_EHDR(im, e_machine, 0x1234);
	POKE_EHDR(im, e_version, EV_CURRENT);
	POKE_EHDR(im, e_phoff, im->phdrs);
	POKE_EHDR(im, e_shoff, im->shdrs);
	POKE_EHDR(im, e_ehsize, STRUCT_SIZE(im, Ehdr));
	POKE_EHDR(im, e_phentsize, STRUCT_SIZE(im, Phdr));
	POKE_EHDR(im, e_phnum, NSEGMENTS);
	POKE_EHDR(im, e_shentsize, STRUCT_SIZE(im, Shdr));
	POKE_EHDR(im, e_shnum, S_COUNT);
	POKE_EHDR(im, e_shstrndx, S_NAMES);
}

/* Build the file of class and byte order @flavor, which ends with the section headers. */
static struct image build(int flavor)
{
	struct image im = { .is64 = !(flavor & 2), .big_endian = flavor & 1 };

	reserve(&im, STRUCT_SIZE(&im, Ehdr));
	im.phdrs = reserve(&im, NSEGMENTS * STRUCT_SIZE(&im, Phdr));
	section_start(&im, S_TEXT);
	reserve(&im, TEXT_SIZE);
	section_end(&im, S_TEXT);
	section_start(&im, S_BASE);
	put(&im, 1, 0);
	section_end(&im, S_BASE);
	section_start(&im, S_PROBES);
	reserve(&im, DATA_SIZE);
	section_end(&im, S_PROBES);
	put_notes(&im);
	put_dynamic(&im);
	put_symtab(&im);
	put_shdrs(&im);
	put_segments(&im);
	put_ehdr(&im);
	return im;
}

static struct elf open_image(const struct image *im)
{
	struct elf elf = { 0 };
	int err = elf_open(&elf, im->bytes, im->size);

	CHECK(!err, "%d", err);
	return elf;
}

/* Call every function on a file, and read all results to their ends */

static volatile size_t sink;

static void touch(const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sink += ((const unsigned char *)bytes)[i];
}

static void touch_symbols(const struct elf *elf, uint32_t type)
{
	struct elf_symbol_iter iter;
	struct elf_symbol symbol;
	uint64_t count = 0;

	if (elf_symbols(elf, type, &iter))
		return;
	while (elf_symbol_next(&iter, &symbol)) {
		touch(symbol.name, strlen(symbol.name));
		count++;
	}
	CHECK(count * 16 <= elf->size, "%" PRIu64, count);
}

static void touch_notes(const struct elf *elf)
{
	struct usdt_note_iter iter;
	struct usdt_site site;

	if (usdt_notes(elf, &iter))
		return;
	while (usdt_note_next(&iter, &site)) {
		touch(site.provider, strlen(site.provider));
		touch(site.name, strlen(site.name));
		touch(site.args, strlen(site.args));
		CHECK(site.offset < elf->size, "%#" PRIx64, site.offset);
		CHECK(site.semaphore_offset < elf->size, "%#" PRIx64, site.semaphore_offset);
	}
	CHECK(iter.pos == iter.size);
	CHECK(iter.skipped <= elf->size / 6, "%u", iter.skipped);
}

static void touch_all(const void *bytes, size_t size)
{
	static const uint64_t addrs[] = { 0, 1, 0x10000, 0x100b0, 0x31100, UINT32_MAX, UINT64_MAX };
	struct elf_section section;
	struct elf_segment segment;
	struct elf_symbol symbol;
	struct elf elf;
	uint64_t offset;
	size_t len;

	if (elf_open(&elf, bytes, size))
		return;
	for (uint32_t i = 0; !elf_section(&elf, i, &section); i++) {
		const unsigned char *data = elf_section_data(&elf, &section, &len);

		touch(section.name, strlen(section.name));
		touch(data, data ? len : 0);
	}
	for (uint32_t i = 0; !elf_segment(&elf, i, &segment); i++)
		sink += segment.offset;
	for (size_t i = 0; i < sizeof(addrs) / sizeof(*addrs); i++) {
		if (!elf_vaddr_to_offset(&elf, addrs[i], &offset))
			CHECK(offset < size, "%#" PRIx64, offset);
		sink += elf_vaddr_has_flags(&elf, addrs[i], PF_X);
	}
	touch_symbols(&elf, SHT_SYMTAB);
	touch_symbols(&elf, SHT_DYNSYM);
	touch_notes(&elf);
	for (size_t i = 0; i < NEXPORTED; i++)
		sink += (size_t)elf_symbol_find(&elf, exported[i], &symbol);
	sink += (size_t)elf_symbol_find(&elf, "hidden", &symbol);
	sink += (size_t)elf_symbol_find(&elf, "absent", &symbol);
}

/* Use a heap copy of exactly that size, so that ASan detects an overread. */
static void touch_copy(const void *bytes, size_t size)
{
	void *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, bytes, size);
	touch_all(copy, size);
	free(copy);
}

static void touch_image(const struct image *im)
{
	touch_copy(im->bytes, im->size);
}

/* Tests */

static void test_cursor_integers(void)
{
	static const unsigned char bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 0xf8 };
	struct cursor le = cursor_over(bytes, 8, false), be = cursor_over(bytes, 8, true);

	CHECK(cursor_uint(&le, 8) == 0xf807060504030201);
	CHECK(cursor_uint(&be, 8) == 0x01020304050607f8);
	CHECK(!le.bad && cursor_left(&le) == 0);
	CHECK(cursor_uint(&le, 1) == 0 && le.bad);
	cursor_seek(&be, 6);
	CHECK(cursor_uint(&be, 2) == 0x07f8 && !be.bad);
	cursor_seek(&be, 5);
	CHECK(cursor_uint(&be, 4) == 0 && be.bad && be.pos == 8);
}

static void test_cursor_bounds(void)
{
	static const unsigned char bytes[4] = { 'a', 0, 'b', 'c' };
	struct cursor c = cursor_over(bytes, 4, false);
	size_t len;

	CHECK(!strcmp(cursor_string(&c, &len), "a") && len == 1 && c.pos == 2);
	CHECK(!cursor_string(&c, &len) && c.bad && c.pos == 4 && len == 0);
	c = cursor_over(bytes, 4, false);
	CHECK(!cursor_bytes(&c, SIZE_MAX) && c.bad);
	c = cursor_over(bytes, 4, false);
	cursor_seek(&c, 4);
	CHECK(!c.bad);
	cursor_seek(&c, UINT64_MAX);
	CHECK(c.bad && c.pos == 4);
	c = cursor_over(NULL, 0, false);
	CHECK(cursor_uint(&c, 4) == 0 && c.bad);
	CHECK(!cursor_string(&c, &len));
	cursor_bytes(&c, 0);
}

static void test_open(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct elf elf = open_image(&im);

		CHECK(elf.is64 == im.is64 && elf.big_endian == im.big_endian);
		CHECK(elf.type == ET_DYN && elf.machine == 0x1234);
		CHECK(elf.phnum == NSEGMENTS && elf.shnum == S_COUNT && elf.shstrndx == S_NAMES);
		CHECK(elf.phoff == im.phdrs && elf.shoff == im.shdrs);
	}
}

static void test_open_refuses(void)
{
	struct image im = build(0);
	struct elf elf;

	CHECK(elf_open(&elf, NULL, 0) == -ENOEXEC);
	CHECK(elf_open(&elf, "#!/bin/sh\nexec something\n", 25) == -ENOEXEC);
	CHECK(elf_open(&elf, im.bytes, sizeof(Elf64_Ehdr) - 1) == -ENOEXEC);
	im.bytes[EI_CLASS] = 3;
	CHECK(elf_open(&elf, im.bytes, im.size) == -ENOEXEC);
	im = build(0);
	im.bytes[EI_DATA] = 0;
	CHECK(elf_open(&elf, im.bytes, im.size) == -ENOEXEC);
	im = build(0);
	POKE_EHDR(&im, e_shentsize, 0);
	CHECK(elf_open(&elf, im.bytes, im.size) == -ENOEXEC);
	im = build(0);
	for (int i = -1; i <= 1; i += 2) {
		im = build(0);
		POKE_EHDR(&im, e_phentsize, (int)sizeof(Elf64_Phdr) + i);
		CHECK(elf_open(&elf, im.bytes, im.size) == -ENOEXEC);
		im = build(0);
		POKE_EHDR(&im, e_shentsize, (int)sizeof(Elf64_Shdr) + i);
		CHECK(elf_open(&elf, im.bytes, im.size) == -ENOEXEC);
	}
}

/* A table without an offset or an entry size is empty, whatever its count. */
static void test_open_no_tables(void)
{
	struct image im = build(0);
	struct elf elf;

	POKE_EHDR(&im, e_phoff, 0);
	POKE_EHDR(&im, e_shoff, 0);
	elf = open_image(&im);
	CHECK(!elf.phnum && !elf.shnum && elf.shstrndx == SHN_UNDEF);
	im = build(0);
	POKE_EHDR(&im, e_shnum, 0);
	POKE_EHDR(&im, e_shentsize, 0);
	POKE_SHDR(&im, 0, sh_size, S_COUNT);
	elf = open_image(&im);
	CHECK(!elf.shnum);
}

static void test_open_stripped(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct elf_symbol symbol;
		struct elf_section section;
		struct usdt_note_iter iter;
		struct elf elf;
		uint64_t offset;

		POKE_EHDR(&im, e_shoff, 0);
		POKE_EHDR(&im, e_shnum, 0);
		POKE_EHDR(&im, e_shentsize, 0);
		elf = open_image(&im);
		CHECK(elf.shnum == 0);
		CHECK(elf_section(&elf, 0, &section) == -ENOENT);
		CHECK(elf_section_find(&elf, ".text", &section) == -ENOENT);
		CHECK(elf_symbol_find(&elf, "alpha", &symbol) == -ENOENT);
		CHECK(usdt_notes(&elf, &iter) == -ENOENT);
		CHECK(!elf_vaddr_to_offset(&elf, text_addr(&im), &offset));
	}
}

static void test_sections(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct elf elf = open_image(&im);
		struct elf_section section;
		const unsigned char *data;
		size_t size;

		for (uint32_t i = 1; i < S_COUNT; i++) {
			CHECK(!elf_section_find(&elf, section_names[i], &section), "%u", i);
			CHECK(section.offset == im.offset[i] && section.size == im.length[i]);
			data = elf_section_data(&elf, &section, &size);
			if (i == S_BSS)
				CHECK(!data && !size);
			else
				CHECK(data == im.bytes + im.offset[i] && size == im.length[i]);
		}
		CHECK(!elf_section(&elf, S_SYMTAB, &section));
		CHECK(section.link == S_STRTAB && section.entsize == STRUCT_SIZE(&im, Sym));
		CHECK(elf_section_find(&elf, ".absent", &section) == -ENOENT);
		CHECK(elf_section(&elf, S_COUNT, &section) == -ENOENT);
		CHECK(elf_section(&elf, UINT32_MAX, &section) == -ENOENT);
	}
}

static void test_segments(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct elf elf = open_image(&im);
		uint64_t text = text_addr(&im), probes = probes_addr(&im), offset = 0;
		struct elf_segment segment;

		CHECK(!elf_segment(&elf, 2, &segment));
		CHECK(segment.flags == (PF_R | PF_W) && segment.memsz == DATA_SIZE + BSS_SIZE);
		CHECK(elf_segment(&elf, NSEGMENTS, &segment) == -ENOENT);
		CHECK(!elf_vaddr_to_offset(&elf, text, &offset) && offset == im.offset[S_TEXT]);
		CHECK(!elf_vaddr_to_offset(&elf, probes + 2, &offset));
		CHECK(offset == im.offset[S_PROBES] + 2, "%#" PRIx64, offset);
		CHECK(elf_vaddr_to_offset(&elf, probes + DATA_SIZE, &offset) == -ENOENT);
		CHECK(elf_vaddr_to_offset(&elf, TEXT_DELTA - 1, &offset) == -ENOENT);
		CHECK(elf_vaddr_to_offset(&elf, UINT64_MAX, &offset) == -ENOENT);
		CHECK(elf_vaddr_has_flags(&elf, text, PF_X));
		CHECK(!elf_vaddr_has_flags(&elf, text, PF_X | PF_W));
		CHECK(elf_vaddr_has_flags(&elf, probes + DATA_SIZE, PF_W));
		CHECK(!elf_vaddr_has_flags(&elf, probes + DATA_SIZE + BSS_SIZE, 0));
	}
}

static void check_finds(const struct image *im, const char *what)
{
	struct elf elf = open_image(im);
	struct elf_symbol symbol;

	for (size_t i = 0; i < NEXPORTED; i++) {
		int err = elf_symbol_find(&elf, exported[i], &symbol);

		CHECK(!err, "%s: %s", what, exported[i]);
		CHECK(err || symbol.value == text_addr(im) + 4 * i, "%s: %s", what, exported[i]);
		symbol.size = 1;
		elf_symbol_extend(&elf, &symbol);
		/* Nothing is behind the last one: "hidden" is not in .dynsym. */
		CHECK(symbol.size == (i == NEXPORTED - 1 ? 1 : 4), "%s: %s", what, exported[i]);
		symbol.size = 1;
		symbol.shndx++;
		elf_symbol_extend(&elf, &symbol);
		CHECK(symbol.size == 1, "%s: %s: others are of another section", what, exported[i]);
	}
	CHECK(!elf_symbol_find(&elf, "hidden", &symbol), "%s", what);
	CHECK(symbol.value == text_addr(im) + 32 && symbol.bind == STB_LOCAL, "%s", what);
	/* Before those of .dynsym, of which it is none. */
	symbol.value = text_addr(im) - 1;
	elf_symbol_extend(&elf, &symbol);
	CHECK(symbol.size == 8, "%s: %#" PRIx64, what, symbol.size);
	CHECK(elf_symbol_find(&elf, "malloc", &symbol) == -ENOENT, "%s", what);
	CHECK(elf_symbol_find(&elf, "absent", &symbol) == -ENOENT, "%s", what);
	CHECK(elf_symbol_find(&elf, "alph", &symbol) == -ENOENT, "%s", what);
	CHECK(elf_symbol_find(&elf, "", &symbol) == -ENOENT, "%s", what);
}

static void test_symbols(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct elf elf = open_image(&im);
		struct elf_symbol_iter iter;
		struct elf_symbol symbol;
		int n = 0;

		CHECK(!elf_symbols(&elf, SHT_SYMTAB, &iter) && iter.count == 4);
		while (elf_symbol_next(&iter, &symbol)) {
			if (++n == 3)
				CHECK(!strcmp(symbol.name, "hidden") && symbol.size == 8 &&
				      symbol.type == STT_FUNC && symbol.shndx == S_TEXT);
		}
		CHECK(n == 4 && !elf_symbol_next(&iter, &symbol));
		check_finds(&im, "with .gnu.hash");
		POKE_SHDR(&im, S_HASH, sh_type, SHT_PROGBITS);
		check_finds(&im, "without .gnu.hash");
		POKE_SHDR(&im, S_DYNSYM, sh_type, SHT_PROGBITS);
		elf = open_image(&im);
		CHECK(!elf_symbol_find(&elf, "alpha", &symbol));
		CHECK(symbol.value == text_addr(&im) + 40);
	}
}

/* By the beginning of a name, defined ones only. */
static void test_symbol_prefix(void)
{
	static const struct {
		const char *prefix;
		bool has;
	} cases[] = {
		{ "alp", true }, { "alpha", true }, { "alphax", false }, { "lpha", false },
		{ "hid", true }, { "hidden", true }, { "", true }, { "__bolt", false },
	};

	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct elf elf = open_image(&im);
		struct elf_symbol_iter iter;
		struct elf_symbol symbol;

		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			CHECK(elf_symbol_has_prefix(&elf, cases[i].prefix) == cases[i].has, "%s",
			      cases[i].prefix);
		for (int type = 0; type < 2; type++) {
			elf_symbols(&elf, type ? SHT_SYMTAB : SHT_DYNSYM, &iter);
			while (elf_symbol_next(&iter, &symbol))
				CHECK(!*symbol.name || symbol.shndx != SHN_UNDEF ||
				      !elf_symbol_has_prefix(&elf, symbol.name), "%s", symbol.name);
		}
	}
}

/* The hash is used: a name that is not in its bucket is not found in .dynsym. */
static void test_symbols_use_hash(void)
{
	struct image im = build(0);
	struct elf_symbol symbol;
	struct elf elf;

	for (int b = 0; b < NBUCKETS; b++)
		poke(&im, im.offset[S_HASH] + 24 + 4 * (size_t)b, 4, 0);
	elf = open_image(&im);
	CHECK(elf_symbol_find(&elf, "beta", &symbol) == -ENOENT);
	CHECK(!elf_symbol_find(&elf, "alpha", &symbol) && symbol.value == text_addr(&im) + 40);
}

/* A lookup terminates, and falls back to a linear search if .gnu.hash is inconsistent. */
static void test_hash_hostile(void)
{
	static const uint32_t values[] = { 0, 3, 0x1000, 0x10000000, 0x80000000, UINT32_MAX };

	for (int f = 0; f < NFLAVORS; f++) {
		struct image good = build(f), im;
		size_t hash = good.offset[S_HASH], buckets = hash + (good.is64 ? 24 : 20);

		for (size_t pos = hash; pos < hash + good.length[S_HASH]; pos += 4) {
			for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
				im = good;
				poke(&im, pos, 4, values[i]);
				touch_image(&im);
			}
		}
		im = good;
		poke(&im, hash, 4, 0);
		check_finds(&im, "no buckets");
		im = good;
		poke(&im, hash + 8, 4, UINT32_MAX);
		check_finds(&im, "huge Bloom filter");
		im = good;
		for (size_t b = 0; b < NBUCKETS; b++)
			poke(&im, buckets + 4 * b, 4, 1);
		check_finds(&im, "buckets before the first symbol");
		for (size_t b = 0; b < NBUCKETS; b++)
			poke(&im, buckets + 4 * b, 4, UINT32_MAX);
		check_finds(&im, "buckets after the last symbol");
		im = good;
		POKE_SHDR(&im, S_HASH, sh_size, 8);
		check_finds(&im, "truncated header");
		im = good;
		POKE_SHDR(&im, S_HASH, sh_link, S_SYMTAB);
		check_finds(&im, "hash of another table");
		im = good;
		for (size_t i = 0; i < NEXPORTED; i++)
			poke(&im, buckets + 4 * (NBUCKETS + i), 4, 0x12345678);
		check_finds(&im, "chains without an end");
	}
}

static void test_notes(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct elf elf = open_image(&im);
		uint64_t text = im.offset[S_TEXT], probes = im.offset[S_PROBES];
		struct usdt_note_iter iter;
		struct usdt_site site;

		CHECK(!usdt_notes(&elf, &iter) && iter.base == base_addr(&im));
		CHECK(usdt_note_next(&iter, &site));
		CHECK(!strcmp(site.provider, "test-app") && !strcmp(site.name, "test-probe"));
		CHECK(!strcmp(site.args, "8@%rax -4@$-1"), "%s", site.args);
		CHECK(site.vaddr == text_addr(&im) + 8 && site.offset == text + 8);
		CHECK(site.semaphore_vaddr == probes_addr(&im) + 2);
		CHECK(site.semaphore_offset == probes + 2, "%#" PRIx64, site.semaphore_offset);
		CHECK(usdt_note_next(&iter, &site));
		CHECK(!strcmp(site.provider, "app") && !strcmp(site.name, "twice") && !*site.args);
		CHECK(site.offset == text + 16);
		CHECK(!site.semaphore_vaddr && !site.semaphore_offset);
		CHECK(usdt_note_next(&iter, &site));
		CHECK(!strcmp(site.name, "twice") && !strcmp(site.args, "-4@8(%rsp)"));
		CHECK(site.offset == text + 24 && site.semaphore_offset == probes + 4);
		CHECK(!usdt_note_next(&iter, &site) && !iter.skipped, "%u", iter.skipped);
	}
}

/* Read the first site of @im and the number of skipped notes. */
static bool first_site(const struct image *im, struct usdt_site *site, uint32_t *skipped)
{
	struct elf elf = open_image(im);
	struct usdt_note_iter iter;
	struct usdt_site next;
	bool found;

	*skipped = 0;
	if (usdt_notes(&elf, &iter))
		return false;
	found = usdt_note_next(&iter, site);
	while (found && usdt_note_next(&iter, &next))
		;
	*skipped = iter.skipped;
	return found;
}

static void test_notes_base(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct usdt_site site;
		uint32_t skipped;

		POKE_SHDR(&im, S_BASE, sh_addr, base_addr(&im) + 4);
		CHECK(first_site(&im, &site, &skipped) && !skipped);
		CHECK(site.vaddr == text_addr(&im) + 12 && site.offset == im.offset[S_TEXT] + 12);
		CHECK(site.semaphore_vaddr == probes_addr(&im) + 6);
		CHECK(site.semaphore_offset == im.offset[S_PROBES] + 6);
		POKE_SHDR(&im, S_BASE, sh_addr, base_addr(&im) - 8);
		CHECK(first_site(&im, &site, &skipped));
		CHECK(site.vaddr == text_addr(&im));
		POKE_SHDR(&im, S_BASE, sh_name, 0);
		CHECK(first_site(&im, &site, &skipped));
		CHECK(site.vaddr == text_addr(&im) + 8);
		CHECK(site.semaphore_vaddr == probes_addr(&im) + 2);
	}
}

/* Addresses of a 32-bit file wrap at 32 bits. */
static void test_notes_base_wraps(void)
{
	for (int f = 2; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct usdt_site site;
		uint32_t skipped;

		POKE_SHDR(&im, S_BASE, sh_addr, base_addr(&im) + 0x80000000);
		poke(&im, im.offset[S_NOTES] + 20, 4, text_addr(&im) + 8 + 0x80000000);
		CHECK(first_site(&im, &site, &skipped));
		CHECK(site.vaddr == text_addr(&im) + 8, "%#" PRIx64, site.vaddr);
	}
}

static void test_notes_unmapped(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image good = build(f), im = good;
		size_t desc = im.offset[S_NOTES] + 12 + 8, word = im.is64 ? 8 : 4;
		struct usdt_site site;
		uint32_t skipped;

		poke(&im, desc, word, UINT64_MAX);
		CHECK(first_site(&im, &site, &skipped) && skipped == 1, "%u", skipped);
		CHECK(!strcmp(site.provider, "app"));
		im = good;
		poke(&im, desc + 2 * word, word, probes_addr(&im) + DATA_SIZE);
		CHECK(first_site(&im, &site, &skipped) && skipped == 1, "%u", skipped);
		CHECK(!strcmp(site.provider, "test-app"));
		CHECK(site.semaphore_vaddr && !site.semaphore_offset);
	}
}

static void test_notes_hostile(void)
{
	static const uint32_t sizes[] = {
		0, 1, 4, 7, 9, 0x7fffffff, 0x80000000, UINT32_MAX - 12, UINT32_MAX - 3, UINT32_MAX,
	};

	for (int f = 0; f < NFLAVORS; f++) {
		struct image good = build(f), im;
		size_t notes = good.offset[S_NOTES];
		struct usdt_site site;
		uint32_t skipped;

		for (size_t i = 0; i < 100; i++) {
			im = good;
			poke(&im, notes, 4, sizes[i / 10]);
			poke(&im, notes + 4, 4, sizes[i % 10]);
			touch_image(&im);
		}
		im = good;
		poke(&im, notes + 4, 4, UINT32_MAX);
		CHECK(!first_site(&im, &site, &skipped) && skipped == 1);
		/* An owner without its NUL is a different owner, not an error. */
		im = good;
		poke(&im, notes, 4, 7);
		CHECK(first_site(&im, &site, &skipped) && !skipped, "%u", skipped);
		CHECK(!strcmp(site.provider, "app"));
		/* Truncated behind the provider. */
		im = good;
		poke(&im, notes + 4, 4, (im.is64 ? 24 : 12) + 9);
		CHECK(!first_site(&im, &site, &skipped) || strcmp(site.provider, "test-app"));
		CHECK(skipped, "%u", skipped);
		/* The last note without its padding, then truncated before its last NUL. */
		im = good;
		while (!im.bytes[notes + im.length[S_NOTES] - 1])
			im.length[S_NOTES]--;
		POKE_SHDR(&im, S_NOTES, sh_size, im.length[S_NOTES] + 1);
		CHECK(first_site(&im, &site, &skipped) && !skipped, "%u", skipped);
		POKE_SHDR(&im, S_NOTES, sh_size, im.length[S_NOTES]);
		CHECK(first_site(&im, &site, &skipped) && skipped == 1, "%u", skipped);
		POKE_SHDR(&im, S_NOTES, sh_size, 11);
		CHECK(!first_site(&im, &site, &skipped) && skipped == 1, "%u", skipped);
	}
}

static void test_missing_nul(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct elf elf;
		struct elf_section section;
		struct elf_symbol symbol;

		POKE_SHDR(&im, S_DYNSTR, sh_size, im.length[S_DYNSTR] - 1);
		touch_image(&im);
		elf = open_image(&im);
		CHECK(elf_symbol_find(&elf, exported[NEXPORTED - 1], &symbol) == -ENOENT);
		POKE_SHDR(&im, S_NAMES, sh_size, im.length[S_NAMES] - 1);
		touch_image(&im);
		elf = open_image(&im);
		CHECK(!elf_section(&elf, S_TEXT, &section) && !*section.name);
		CHECK(section.offset == im.offset[S_TEXT]);
	}
}

static void test_every_truncation(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);

		for (size_t size = 0; size <= im.size; size++)
			touch_copy(im.bytes, size);
	}
}

static void touch_corrupted(struct image *im, size_t start, size_t end, unsigned int step)
{
	for (size_t pos = start; pos < end; pos++) {
		unsigned char old = im->bytes[pos];

		for (unsigned int v = 0; v < 256; v += step) {
			im->bytes[pos] = (unsigned char)v;
			touch_image(im);
		}
		im->bytes[pos] = 0xff;
		touch_image(im);
		im->bytes[pos] = old ^ 1;
		touch_image(im);
		im->bytes[pos] = old;
	}
}

/* Set each byte of the file and program headers to every value, of the rest to some. */
static void test_every_corruption(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);

		touch_corrupted(&im, 0, im.offset[S_TEXT], 1);
		touch_corrupted(&im, im.offset[S_NOTES], im.shdrs, 127);
		touch_corrupted(&im, im.shdrs, im.size, 42);
	}
}

static void test_extended_numbering(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image im = build(f);
		struct elf elf;

		POKE_EHDR(&im, e_shnum, 0);
		POKE_EHDR(&im, e_shstrndx, SHN_XINDEX);
		POKE_EHDR(&im, e_phnum, PN_XNUM);
		POKE_SHDR(&im, 0, sh_size, S_COUNT);
		POKE_SHDR(&im, 0, sh_link, S_NAMES);
		POKE_SHDR(&im, 0, sh_info, NSEGMENTS);
		elf = open_image(&im);
		CHECK(elf.shnum == S_COUNT && elf.shstrndx == S_NAMES && elf.phnum == NSEGMENTS);
		check_finds(&im, "extended numbering");
		touch_image(&im);
		POKE_SHDR(&im, 0, sh_size, UINT32_MAX);
		POKE_SHDR(&im, 0, sh_link, UINT32_MAX);
		POKE_SHDR(&im, 0, sh_info, UINT32_MAX);
		touch_image(&im);
		if (im.is64) {
			POKE_SHDR(&im, 0, sh_size, UINT64_MAX);
			CHECK(elf_open(&elf, im.bytes, im.size) == -ENOEXEC);
		}
	}
}

/* Offsets, sizes and addresses whose sum overflows. */
static void test_overflow(void)
{
	static const uint64_t big[] = {
		UINT64_MAX, UINT64_MAX - 7, UINT64_MAX - 63, UINT64_MAX - 4095,
		1ull << 63, (1ull << 63) - 1, 1ull << 32, UINT32_MAX, 1ull << 31,
	};

	for (size_t k = 0; k < NFLAVORS * sizeof(big) / sizeof(*big); k++) {
		struct image good = build((int)(k % NFLAVORS)), im = good;
		uint64_t value = big[k / NFLAVORS];

		POKE_EHDR(&im, e_shoff, value);
		touch_image(&im);
		im = good;
		POKE_EHDR(&im, e_phoff, value);
		touch_image(&im);
		for (int i = 0; i < S_COUNT; i++) {
			im = good;
			POKE_SHDR(&im, i, sh_offset, value);
			touch_image(&im);
			POKE_SHDR(&im, i, sh_size, -value);
			touch_image(&im);
			im = good;
			POKE_SHDR(&im, i, sh_size, value);
			touch_image(&im);
			POKE_SHDR(&im, i, sh_entsize, value);
			touch_image(&im);
		}
		for (int i = 0; i < NSEGMENTS; i++) {
			im = good;
			POKE_PHDR(&im, i, p_offset, value);
			POKE_PHDR(&im, i, p_filesz, UINT64_MAX);
			touch_image(&im);
			im = good;
			POKE_PHDR(&im, i, p_vaddr, value);
			POKE_PHDR(&im, i, p_filesz, UINT64_MAX);
			POKE_PHDR(&im, i, p_memsz, UINT64_MAX);
			touch_image(&im);
		}
	}
}

static void test_overflow_address(void)
{
	struct image im = build(0);
	struct elf elf;
	uint64_t offset = 0;

	POKE_PHDR(&im, 1, p_vaddr, UINT64_MAX - 15);
	POKE_PHDR(&im, 1, p_filesz, 64);
	elf = open_image(&im);
	CHECK(!elf_vaddr_to_offset(&elf, UINT64_MAX, &offset) && offset == 15);
	CHECK(elf_vaddr_to_offset(&elf, 0, &offset) == -ENOENT);
	POKE_PHDR(&im, 1, p_memsz, 64);
	CHECK(elf_vaddr_has_flags(&elf, UINT64_MAX, PF_X));
	CHECK(!elf_vaddr_has_flags(&elf, 0, PF_X));
	POKE_PHDR(&im, 1, p_offset, UINT64_MAX - 1);
	elf = open_image(&im);
	CHECK(elf_vaddr_to_offset(&elf, UINT64_MAX, &offset) == -ENOENT);
}

/* Section 1 would be at offset 0 if the sum could wrap. */
static void test_overflow_table(void)
{
	struct image im = build(0);
	struct elf_section section;
	struct elf elf;

	POKE_EHDR(&im, e_shoff, 0 - sizeof(Elf64_Shdr));
	elf = open_image(&im);
	CHECK(elf_section(&elf, 1, &section) == -ENOEXEC);
}

static void test_symbol_entsize(void)
{
	static const uint64_t sizes[] = { 0, 1, 15, 32, 0x1000, UINT32_MAX };

	for (int f = 0; f < NFLAVORS; f++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct image im = build(f);
			struct elf_symbol symbol;
			struct elf elf;

			POKE_SHDR(&im, S_DYNSYM, sh_entsize, sizes[i]);
			touch_image(&im);
			elf = open_image(&im);
			CHECK(!elf_symbol_find(&elf, "alpha", &symbol));
			CHECK(symbol.value == text_addr(&im) + 40);
			POKE_SHDR(&im, S_SYMTAB, sh_entsize, sizes[i]);
			touch_image(&im);
			CHECK(elf_symbol_find(&elf, "hidden", &symbol) == -ENOENT);
		}
	}
}

static void test_overlap(void)
{
	for (int f = 0; f < NFLAVORS; f++) {
		struct image good = build(f), im = good;

		for (int i = 0; i < S_COUNT; i++) {
			POKE_SHDR(&im, i, sh_offset, 0);
			POKE_SHDR(&im, i, sh_size, im.size);
		}
		touch_image(&im);
		im = good;
		for (int i = 0; i < S_COUNT; i++) {
			POKE_SHDR(&im, i, sh_offset, im.shdrs);
			POKE_SHDR(&im, i, sh_size, im.size - im.shdrs);
			POKE_SHDR(&im, i, sh_link, i);
		}
		touch_image(&im);
		im = good;
		POKE_EHDR(&im, e_shoff, im.phdrs);
		touch_image(&im);
		POKE_EHDR(&im, e_shoff, 0);
		POKE_EHDR(&im, e_phoff, 1);
		touch_image(&im);
	}
}

/*
 * Tables that each cover the whole file: 65,000 sections and 500,000 symbols,
 * each with a name that extends to the end of 16 MB, and one hash chain of all
 * symbols.
 */
static void test_hostile_is_linear(void)
{
	const size_t size = 16 << 20;
	const uint64_t sections = 65000 * sizeof(Elf64_Shdr);
	struct image im = build(0);
	unsigned char *big = malloc(size);
	size_t start = im.shdrs;
	clock_t used = clock();

	if (!big)
		abort();
	memset(big, 'x', size);
	POKE_EHDR(&im, e_shnum, 65000);
	for (int i = S_DYNSYM; i < S_COUNT; i++) {
		POKE_SHDR(&im, i, sh_offset, start);
		POKE_SHDR(&im, i, sh_size, size - start);
	}
	POKE_SHDR(&im, S_HASH, sh_offset, im.offset[S_HASH]);
	poke(&im, im.offset[S_HASH], 4, 1);
	poke(&im, im.offset[S_HASH] + 24, 4, 2);
	POKE_SHDR(&im, S_HASH, sh_size, size - im.offset[S_HASH]);
	memcpy(big, im.bytes, im.size);
	for (uint64_t pos = start + S_COUNT * sizeof(Elf64_Shdr); pos < start + sections; pos += 64)
		memset(big + pos, 0, 64);
	touch_all(big, size);
	big[size - 1] = 0;
	{
		struct elf elf;
		struct elf_section section;
		struct elf_symbol symbol;

		CHECK(!elf_open(&elf, big, size));
		CHECK(elf_section_find(&elf, "nothing", &section) == -ENOENT);
		CHECK(elf_symbol_find(&elf, "nothing", &symbol) == -ENOENT);
	}
	free(big);
	used = clock() - used;
	CHECK(used < 20 * CLOCKS_PER_SEC, "%ld s", (long)(used / CLOCKS_PER_SEC));
}

/* A file with COUNT symbols in .symtab whose names are in @strings, which begins with a NUL. */
static unsigned char *with_symbols(struct image *im, const Elf64_Sym *symbols, size_t count,
				   const char *strings, size_t len, size_t *size)
{
	size_t table = count * sizeof(*symbols);
	unsigned char *file = malloc(im->size + table + len);

	if (!file)
		abort();
	POKE_SHDR(im, S_SYMTAB, sh_offset, im->size);
	POKE_SHDR(im, S_SYMTAB, sh_size, table);
	POKE_SHDR(im, S_STRTAB, sh_offset, im->size + table);
	POKE_SHDR(im, S_STRTAB, sh_size, len);
	memcpy(file, im->bytes, im->size);
	memcpy(file + im->size, symbols, table);
	memcpy(file + im->size + table, strings, len);
	*size = im->size + table + len;
	return file;
}

static bool same_symbol(const struct elf_symbol *a, const struct elf_symbol *b)
{
	return !strcmp(a->name, b->name) && a->value == b->value && a->shndx == b->shndx &&
	       a->type == b->type;
}

/* Both ways must find the same. */
static void compare_find(struct elf *elf, struct elf_index *index, const char *name)
{
	struct elf_symbol linear = { .name = "" }, indexed = { .name = "" };
	int err;

	elf->index = NULL;
	err = elf_symbol_find(elf, name, &linear);
	elf->index = index;
	CHECK(elf_symbol_find(elf, name, &indexed) == err, "%s", name);
	CHECK(err || same_symbol(&linear, &indexed), "%s", name);
}

static void test_index(void)
{
	static const char *const names[] = { "malloc", "hidden", "absent", "", "x", "alpha " };

	for (int f = 0; f < 2 * NFLAVORS; f++) {
		struct image im = build(f % NFLAVORS);
		struct elf_index index = { .symtab = { NULL, NULL, 0, false } };
		struct elf elf;

		if (f >= NFLAVORS)
			POKE_SHDR(&im, S_HASH, sh_type, SHT_PROGBITS);
		elf = open_image(&im);
		for (size_t i = 0; i < NEXPORTED; i++)
			compare_find(&elf, &index, exported[i]);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			compare_find(&elf, &index, names[i]);
		CHECK(!index.dynsym.tried == (f < NFLAVORS) && index.symtab.tried);
		elf_index_free(&index);
		CHECK(!index.symtab.first && !index.symtab.tried);
	}
}

#define MANY		5000
#define LONG_NAME	300

/* Duplicates, names of every length and names that share their ends; the order decides. */
static void test_index_random(void)
{
	static Elf64_Sym symbols[MANY];
	static char strings[64 * 1024];
	struct image im = build(0);
	struct elf_index index = { .symtab = { NULL, NULL, 0, false } };
	unsigned char *file;
	struct elf elf;
	size_t size;

	srandom(1);
	for (size_t i = 1; i < sizeof(strings) - 1; i++)
		strings[i] = random() % 40 ? 'a' + (char)(random() % 3) : '\0';
	for (int i = 0; i < MANY; i++)
		symbols[i] = (Elf64_Sym){
			.st_name = (uint32_t)(random() % sizeof(strings)),
			.st_info = (unsigned char)(random() % 5), .st_value = (uint64_t)i,
			.st_shndx = random() % 4 ? S_TEXT : SHN_UNDEF,
		};
	memset(strings + 1, 'l', LONG_NAME);
	strings[1 + LONG_NAME] = '\0';
	for (int i = 0; i < 300; i++)
		symbols[i].st_name = 1 + (uint32_t)i;
	file = with_symbols(&im, symbols, MANY, strings, sizeof(strings), &size);
	CHECK(!elf_open(&elf, file, size));
	for (int i = 0; i < MANY; i++)
		compare_find(&elf, &index, strings + symbols[i].st_name);
	elf_index_free(&index);
	free(file);
}

static unsigned int pauses, pauses_max;

static bool on_pause(void *arg)
{
	CHECK(arg == &pauses);
	return ++pauses == pauses_max;
}

/* Work is bounded in whatever way it is caused, and interrupted regularly. */
static void test_work(void)
{
	const size_t count = 1 << 20;
	Elf64_Sym *symbols = calloc(count, sizeof(*symbols));
	struct image im = build(0);
	struct elf_symbol symbol;
	unsigned char *file;
	size_t size;
	struct elf elf;

	if (!symbols)
		abort();
	for (size_t i = 0; i < count; i++)
		symbols[i] = (Elf64_Sym){ .st_name = 1, .st_shndx = S_TEXT };
	file = with_symbols(&im, symbols, count, "\0hidden", 8, &size);
	free(symbols);
	CHECK(!elf_open(&elf, file, size));
	for (int indexed = 0; indexed < 2; indexed++) {
		struct elf_work work = { .left = 1 << 20, .pause_at = 1 << 20 };
		struct elf_index index = { .symtab = { NULL, NULL, 0, false } };

		elf.work = &work;
		elf.index = indexed ? &index : NULL;
		CHECK(elf_symbol_find(&elf, "absent", &symbol) == -ENOENT && !work.left);
		CHECK(elf_symbol_find(&elf, "hidden", &symbol) == -ENOENT);
		CHECK(elf_section_find(&elf, ".text", &(struct elf_section){ 0 }) == -ENOENT);
		elf_index_free(&index);
		work = (struct elf_work){ .left = 1 << 30, .pause_at = 1 << 30,
					  .pause = on_pause, .arg = &pauses };
		pauses = pauses_max = 0;
		CHECK(elf_symbol_find(&elf, "absent", &symbol) == -ENOENT && work.left);
		CHECK(pauses >= count * sizeof(Elf64_Sym) >> 20, "%u", pauses);
		elf_index_free(&index);
		pauses = 0;
		pauses_max = 5;
		CHECK(elf_symbol_find(&elf, "absent", &symbol) == -ENOENT);
		CHECK(pauses == 5 && work.stopped && !work.left);
		elf_index_free(&index);
	}
	free(file);
}

int main(void)
{
	alarm(300);	/* a hang is a failure */
	RUN(test_cursor_integers);
	RUN(test_cursor_bounds);
	RUN(test_open);
	RUN(test_open_refuses);
	RUN(test_open_no_tables);
	RUN(test_open_stripped);
	RUN(test_sections);
	RUN(test_segments);
	RUN(test_symbols);
	RUN(test_symbol_prefix);
	RUN(test_symbols_use_hash);
	RUN(test_hash_hostile);
	RUN(test_notes);
	RUN(test_notes_base);
	RUN(test_notes_base_wraps);
	RUN(test_notes_unmapped);
	RUN(test_notes_hostile);
	RUN(test_missing_nul);
	RUN(test_every_truncation);
	RUN_LONG(test_every_corruption);
	RUN(test_extended_numbering);
	RUN(test_overflow);
	RUN(test_overflow_address);
	RUN(test_overflow_table);
	RUN(test_symbol_entsize);
	RUN(test_overlap);
	RUN(test_index);
	RUN(test_index_random);
	RUN_LONG(test_work);
	RUN(test_hostile_is_linear);
	return check_done();
}
