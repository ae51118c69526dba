/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An ELF file of this host, mapped to be read by usdt/. */
#ifndef HOST_ELF_MAP_H
#define HOST_ELF_MAP_H

#include "usdt/elf.h"

struct elf_map {
	struct elf elf;		/* borrows the mapping */
	void *data;
	size_t size;
};

/*
 * Maps the file open as @fd, which stays the caller's. 0; -ENOEXEC: it is no ELF file; or -errno.
 * elf_map_close() ends it. Its owner may change it meanwhile: whoever reads it must live with
 * SIGBUS, also behind its end.
 */
int elf_map_open(struct elf_map *binary, int fd);

void elf_map_close(struct elf_map *binary);

/*
 * Looks a variable up for spec_emit(); @arg is the struct elf. 0 and its address as linked, or
 * -ENOENT: also where a symbol's value is no address, as a thread-local one's.
 */
int elf_map_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr);

#endif
