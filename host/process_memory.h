/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory of another process, read through /proc/PID/mem. Its content is untrusted. */
#ifndef HOST_PROCESS_MEMORY_H
#define HOST_PROCESS_MEMORY_H

#include "host/process.h"

struct process_memory {
	int fd;
	uint64_t slide;		/* load address of the program minus its address as linked */
};

/*
 * Open the memory of process @pid for reads by address. Return 0 or -errno; release it with
 * process_memory_close().
 */
int process_memory_open(uint32_t pid, struct process_memory *memory);

/*
 * Open the memory also for reads of the program's variables. @lowest is the lowest address of the
 * program as linked. Return 0; -ENOENT if the program is not mapped; or -errno.
 */
int process_memory_open_program(const struct process *process, uint64_t lowest,
				struct process_memory *memory);

/* Read at most @size bytes at @address. Return the number of bytes, or -errno. */
ssize_t process_memory_read(const struct process_memory *memory, uint64_t address, void *buf,
			    size_t size);

/* Return whether all @size bytes at @address, which is not in the first page, could be read. */
bool process_memory_get(const struct process_memory *memory, uint64_t address, void *buf,
			size_t size);

/*
 * Read the string at @address to the @size bytes at @text. Return whether it is one: NUL-terminated
 * in that size, of printable ASCII; else @text is "".
 */
bool process_memory_string(const struct process_memory *memory, uint64_t address, char *text,
			   size_t size);

/*
 * Read @size bytes of the program's variable whose address as linked is @vaddr. Return 0, -EIO if
 * fewer bytes can be read, or -errno.
 */
int process_memory_variable(const struct process_memory *memory, uint64_t vaddr, void *buf,
			    size_t size);

void process_memory_close(struct process_memory *memory);

#endif
