// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define FIRST_PAGE	4096	/* bytes in which nothing is mapped */

struct base {
	const struct process *process;
	uint64_t start;		/* load address of its program */
};

/* Stop at the first mapping of the program. */
static int base_find(void *arg, const struct process_map *map)
{
	struct base *base = arg;

	if (!process_maps_program(base->process, map))
		return 0;
	base->start = map->start;
	return 1;
}

int process_memory_open(uint32_t pid, struct process_memory *memory)
{
	char path[PROCESS_PATH];

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	memory->slide = 0;
	memory->fd = open(path, O_RDONLY | O_CLOEXEC);
	return memory->fd < 0 ? -errno : 0;
}

int process_memory_open_program(const struct process *process, uint64_t lowest,
				struct process_memory *memory)
{
	struct base base = { .process = process };
	int err = process_maps(process->pid, base_find, &base);

	if (err <= 0)
		return err ? err : -ENOENT;
	err = process_memory_open(process->pid, memory);
	memory->slide = base.start - lowest;
	return err;
}

ssize_t process_memory_read(const struct process_memory *memory, uint64_t address, void *buf,
			    size_t size)
{
	ssize_t n = pread(memory->fd, buf, size, (off_t)address);

	return n < 0 ? -errno : n;
}

bool process_memory_get(const struct process_memory *memory, uint64_t address, void *buf,
			size_t size)
{
	return address >= FIRST_PAGE &&
	       process_memory_read(memory, address, buf, size) == (ssize_t)size;
}

bool process_memory_string(const struct process_memory *memory, uint64_t address, char *text,
			   size_t size)
{
	ssize_t n = address < FIRST_PAGE ? 0 : process_memory_read(memory, address, text, size);

	for (ssize_t i = 0; i < n; i++) {
		if (!text[i])
			return true;
		if (text[i] < ' ' || text[i] > '~')
			break;
	}
	*text = '\0';
	return false;
}

int process_memory_variable(const struct process_memory *memory, uint64_t vaddr, void *buf,
			    size_t size)
{
	ssize_t n = process_memory_read(memory, vaddr + memory->slide, buf, size);

	return n < 0 ? (int)n : (size_t)n < size ? -EIO : 0;
}

void process_memory_close(struct process_memory *memory)
{
	close(memory->fd);
	memory->fd = -1;
}
