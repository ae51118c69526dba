// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/elf_map.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ELF_MAP_PAD	65536	/* bytes: the largest page size */

/* Those that are open: a signal handler has no argument that could lead to them. */
static struct elf_map *volatile elf_maps;

static size_t elf_map_bytes(const struct elf_map *binary)
{
	return ((binary->size + ELF_MAP_PAD - 1) & ~(size_t)(ELF_MAP_PAD - 1)) + ELF_MAP_PAD;
}

/*
 * Map the file, followed by zeros: a string of a file that changes meanwhile may lose its NUL.
 * Return 0 or -errno.
 */
static int elf_map_data(struct elf_map *binary, int fd)
{
	size_t bytes = elf_map_bytes(binary);
	void *all = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			 0);
	int err;

	if (all == MAP_FAILED)
		return -errno;
	/* MAP_SHARED, since the kernel inserts uprobe breakpoints into private mappings. */
	binary->data = mmap(all, binary->size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	if (binary->data != MAP_FAILED)
		return 0;
	err = -errno;
	munmap(all, bytes);
	return err;
}

bool elf_map_fault(const void *address)
{
	for (struct elf_map *map = elf_maps; map; map = map->next) {
		size_t bytes = elf_map_bytes(map);

		if ((uintptr_t)address - (uintptr_t)map->data < bytes)
			return mmap(map->data, bytes, PROT_READ,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
				    0) != MAP_FAILED;
	}
	return false;
}

int elf_map_open(struct elf_map *binary, int fd, const struct elf_pause *pause)
{
	struct stat st;
	int err;

	*binary = (struct elf_map){ .data = MAP_FAILED };
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return -ENOEXEC;
	binary->size = (size_t)st.st_size;
	if (binary->size > SIZE_MAX / 2)
		return -EFBIG;
	err = elf_map_data(binary, fd);
	if (err)
		return err;
	binary->next = elf_maps;
	elf_maps = binary;
	if (elf_open(&binary->elf, binary->data, binary->size)) {
		elf_map_close(binary);
		return -ENOEXEC;
	}
	binary->work = (struct elf_work){ .left = ELF_MAP_WORK, .pause_at = ELF_MAP_WORK };
	if (pause) {
		binary->work.pause = pause->pause;
		binary->work.arg = pause->arg;
	}
	binary->elf.work = &binary->work;
	binary->elf.index = &binary->index;
	return 0;
}

int elf_map_limit(const struct elf_map *binary)
{
	if (binary->work.left)
		return 0;
	return binary->work.stopped ? -EINTR : -EFBIG;
}

void elf_map_close(struct elf_map *binary)
{
	if (binary->data == MAP_FAILED)
		return;
	if (elf_maps == binary)
		elf_maps = binary->next;
	for (struct elf_map *map = elf_maps; map; map = map->next)
		if (map->next == binary)
			map->next = binary->next;
	elf_index_free(&binary->index);
	munmap(binary->data, elf_map_bytes(binary));
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
