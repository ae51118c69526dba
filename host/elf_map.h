/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An ELF file of this host, mapped to be read by usdt/. */
#ifndef HOST_ELF_MAP_H
#define HOST_ELF_MAP_H

#include <elf.h>

#include "usdt/elf.h"

/* What runs on this host. */
#if defined(__x86_64__)
#define BINARY_MACHINE	EM_X86_64
#elif defined(__aarch64__)
#define BINARY_MACHINE	EM_AARCH64
#else
#error "usdt/ has no emitter for this architecture"
#endif

struct elf_map {
	struct elf elf;		/* borrows the mapping */
	void *data;
	size_t size;
};

/*
 * Maps the file open as @fd, which stays the caller's. 0; -ENOEXEC: it is no ELF file; or -errno.
 * elf_map_unmap() ends it. Its owner may change it meanwhile: whoever reads it must live with
 * SIGBUS, also behind its end.
 */
int elf_map_map(struct elf_map *binary, int fd);

void elf_map_unmap(struct elf_map *binary);

/*
 * Looks a variable up for spec_emit(); @arg is the struct elf. 0 and its address as linked, or
 * -ENOENT: also where a symbol's value is no address, as a thread-local one's.
 */
int elf_map_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr);

#endif
