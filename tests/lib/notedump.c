/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prints what usdt/ reads from a file, for tests/e2e/test_elf.py to compare.
 *
 *	notedump FILE			a line per site: provider name vaddr offset semaphore args
 *	notedump --symbol NAME FILE	"value size type bind", or exit status 1
 *	notedump --section NAME FILE	"addr offset size", or exit status 1
 *	notedump --sites FILE		a line per site: vaddr, start of its function or 0, and the
 *					reason if it is refused
 *	notedump --inside FILE		for each address on standard input a line: 1 if a site
 *					there would be inside an instruction, else 0
 *	notedump --lengths FILE		for each address of x86-64 code on standard input the
 *					addresses, in hexadecimal, of the instructions from there
 *					to the end of the function
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "usdt/x86_length.h"
#include "usdt/site.h"

static int dump_notes(const struct elf *elf)
{
	struct usdt_note_iter iter;
	struct usdt_site site;

	if (usdt_notes(elf, &iter))
		return 1;
	while (usdt_note_next(&iter, &site))
		printf("%s %s %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %s\n", site.provider,
		       site.name, site.vaddr, site.offset, site.semaphore_vaddr, site.args);
	if (iter.skipped)
		fprintf(stderr, "notedump: %u skipped\n", iter.skipped);
	return 0;
}

static int dump_symbol(const struct elf *elf, const char *name)
{
	struct elf_symbol symbol;

	if (elf_symbol_find(elf, name, &symbol))
		return 1;
	printf("%#" PRIx64 " %" PRIu64 " %u %u\n", symbol.value, symbol.size, symbol.type,
	       symbol.bind);
	return 0;
}

static int dump_section(const struct elf *elf, const char *name)
{
	struct elf_section section;

	if (elf_section_find(elf, name, &section))
		return 1;
	printf("%#" PRIx64 " %#" PRIx64 " %#" PRIx64 "\n", section.addr, section.offset,
	       section.size);
	return 0;
}

static int dump_refusals(const struct elf *elf)
{
	struct usdt_note_iter iter;
	struct usdt_site site;

	if (usdt_notes(elf, &iter))
		return 1;
	while (usdt_note_next(&iter, &site)) {
		const char *why = site_refusal(elf, &site);
		uint64_t start = 0, end;

		site_body(elf, site.vaddr, &start, &end);
		printf("%#" PRIx64 " %#" PRIx64 " %s\n", site.vaddr, start, why ? why : "");
	}
	return 0;
}

/* Check whether a site at each address would be inside an instruction, ignoring other reasons. */
static int dump_inside(const struct elf *elf)
{
	struct usdt_site site = { .provider = "" };
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		const char *why;

		site.vaddr = strtoull(line, NULL, 16);
		if (elf_vaddr_to_offset(elf, site.vaddr, &site.offset))
			return 1;
		why = site_refusal(elf, &site);
		puts(!why ? "0" : strstr(why, "inside") ? "1" : why);
	}
	return 0;
}

/* An unknown instruction ends the function. */
static int dump_lengths(const struct elf *elf)
{
	uint64_t start, end, offset;
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t vaddr = strtoull(line, NULL, 16);

		if (!site_body(elf, vaddr, &start, &end))
			return 1;
		while (vaddr < end && !elf_vaddr_to_offset(elf, vaddr, &offset)) {
			unsigned int n = x86_length_decode(elf->data + offset, elf->size - offset);

			printf("%" PRIx64 "%s\n", vaddr, n ? "" : " unknown");
			if (!n)
				break;
			vaddr += n;
		}
	}
	return 0;
}

static int file_open(const char *path, struct elf *elf)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !st.st_size)
		return -ENOEXEC;
	/* MAP_SHARED: see host/elf_map.c. */
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	return elf_open(elf, data, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
	struct elf elf;
	int err;

	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: notedump [--symbol NAME | --section NAME | --sites | "
				"--inside | --lengths] FILE\n");
		return 2;
	}
	err = file_open(argv[argc - 1], &elf);
	if (err) {
		fprintf(stderr, "notedump: %s: %s\n", argv[argc - 1], strerror(-err));
		return 2;
	}
	if (argc == 2)
		return dump_notes(&elf);
	if (!strcmp(argv[1], "--symbol"))
		return dump_symbol(&elf, argv[2]);
	if (!strcmp(argv[1], "--sites"))
		return dump_refusals(&elf);
	if (!strcmp(argv[1], "--inside"))
		return dump_inside(&elf);
	if (!strcmp(argv[1], "--lengths"))
		return dump_lengths(&elf);
	return dump_section(&elf, argv[2]);
}
