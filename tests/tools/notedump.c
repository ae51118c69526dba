/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prints what usdt/ reads from a file, for tests/test_elf.py to compare.
 *
 *	notedump FILE			a line a site: provider name vaddr offset semaphore args
 *	notedump --symbol NAME FILE	"value size type bind", or exit status 1
 *	notedump --section NAME FILE	"addr offset size", or exit status 1
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "usdt/note.h"

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

static int file_open(const char *path, struct elf *elf)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *data;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !st.st_size)
		return -ENOEXEC;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	return elf_open(elf, data, (size_t)st.st_size);
}

int main(int argc, char **argv)
{
	struct elf elf;
	int err;

	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: notedump [--symbol NAME | --section NAME] FILE\n");
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
	return dump_section(&elf, argv[2]);
}
