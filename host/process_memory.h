/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory of another process, read through /proc/PID/mem. All of it is foreign bytes. */
#ifndef HOST_PROCESS_MEMORY_H
#define HOST_PROCESS_MEMORY_H

#include "host/process.h"

struct process_memory {
	int fd;
	uint64_t slide;		/* of the program: addresses in memory less those it was linked with */
};

/* Opens the memory of process @pid, for addresses. 0 or -errno; process_memory_close() ends it. */
int process_memory_open(uint32_t pid, struct process_memory *memory);

/* As above, for the variables of its program, too, whose lowest address, as linked, is @lowest. */
int process_memory_open_program(const struct process *process, uint64_t lowest,
				struct process_memory *memory);

/* Reads what is there at @address, at most @size bytes: how many, or -errno. */
ssize_t process_memory_read(const struct process_memory *memory, uint64_t address, void *buf,
			    size_t size);

/* Reads the program's variable of @size bytes that was linked to @vaddr. 0 or -errno. */
int process_memory_variable(const struct process_memory *memory, uint64_t vaddr, void *buf,
			    size_t size);

void process_memory_close(struct process_memory *memory);

#endif
