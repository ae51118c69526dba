/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An ELF file of this host, mapped into memory for usdt/ to read. */
#ifndef HOST_ELF_MAP_H
#define HOST_ELF_MAP_H

#include "usdt/elf_symbol.h"

/*
 * Maximum number of bytes to read of a file, each time counted. A server with 600,000 symbols of
 * 100 bytes requires 77 MiB; a hostile file costs less than a second of CPU time.
 */
#define ELF_MAP_WORK	(512u << 20)

/* ->pause is called every few ms while a file is read; true: read no more. NULL: none. */
struct elf_pause {
	bool (*pause)(void *arg);
	void *arg;
};

/* Must not be moved or copied while it is open. */
struct elf_map {
	struct elf elf;		/* borrows the mapping */
	void *data;
	size_t size;
	struct elf_work work;
	struct elf_index index;
	struct elf_map *next;	/* another one that is open */
};

/*
 * Map the file that is open as @fd; the caller keeps the descriptor and releases the mapping with
 * elf_map_close(). The file's owner may change it meanwhile, or truncate it, upon which reading
 * raises SIGBUS; see elf_map_fault(). @pause may be NULL. Return 0, -ENOEXEC if it is not an ELF
 * file, or -errno.
 */
int elf_map_open(struct elf_map *binary, int fd, const struct elf_pause *pause);

/*
 * Return 0 if nothing was omitted; -EFBIG if more than ELF_MAP_WORK would have been read, or -EINTR
 * if ->pause ended it: what was not found may be in the file.
 */
int elf_map_limit(const struct elf_map *binary);

/*
 * For the handler of SIGBUS: replace the whole mapping that contains @address by zeros, which
 * parsers reject. A file can thus raise the signal once, however it is truncated. Return false if
 * no open mapping contains it. May be called while any function reads the mapping.
 */
bool elf_map_fault(const void *address);

/* Release the mapping and the index; harmless if they were released already. */
void elf_map_close(struct elf_map *binary);

/*
 * Return the lowest address of the file's segments as linked, rounded down to 4 KiB; 0: none. See
 * process_memory_open_program().
 */
uint64_t elf_map_lowest_vaddr(const struct elf *elf);

/*
 * Resolve a variable for spec_emit(); @arg is the struct elf. Store its address as linked in
 * *@vaddr. Return 0, or -ENOENT if there is no such symbol or its value is not an address, as with
 * thread-local variables.
 */
int elf_map_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr);

#endif
