// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/elf_map.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ELF_MAP_PAD	65536	/* bytes: the largest page size */

int elf_map_open(struct elf_map *binary, int fd)
{
	struct stat st;

	*binary = (struct elf_map){ .data = MAP_FAILED };
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return -ENOEXEC;
	binary->size = (size_t)st.st_size;
	/*
	 * MAP_SHARED, since the kernel inserts uprobe breakpoints into private mappings. One page
	 * more, which reads as zeros: a string of a file that changes meanwhile may lose its NUL.
	 */
	binary->data = mmap(NULL, binary->size + ELF_MAP_PAD, PROT_READ, MAP_SHARED, fd, 0);
	if (binary->data == MAP_FAILED)
		return -errno;
	if (!elf_open(&binary->elf, binary->data, binary->size))
		return 0;
	elf_map_close(binary);
	return -ENOEXEC;
}

void elf_map_close(struct elf_map *binary)
{
	if (binary->data != MAP_FAILED)
		munmap(binary->data, binary->size + ELF_MAP_PAD);
	binary->data = MAP_FAILED;
}

uint64_t elf_map_lowest_vaddr(const struct elf *elf)
{
	struct elf_loads loads;

	elf_loads(elf, &loads);
	/* Segments are in ascending order of their addresses. */
	return loads.count ? loads.segment[0].vaddr & ~(uint64_t)0xfff : 0;
}

int elf_map_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr)
{
	struct elf_symbol symbol;
	char copy[128];
	int err;

	if (len >= sizeof(copy))
		return -ENOENT;
	memcpy(copy, name, len);
	copy[len] = '\0';
	err = elf_symbol_find(arg, copy, &symbol);
	/* A thread-local symbol's value is an offset, an IFUNC's the address of its resolver. */
	if (!err && (symbol.type == STT_TLS || symbol.type == STT_GNU_IFUNC))
		err = -ENOENT;
	if (!err)
		*vaddr = symbol.value;
	return err;
}
