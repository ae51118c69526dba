// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* host/process_code: this program's code, of which a child replaces pages; and its age. */
#include "host/process_code.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/clock.h"
#include "tests/unit/check.h"

#define OFFSETS	3

static uintptr_t page_size;
static struct process self;
static struct process_map code;		/* the executable mapping of this program */

static int find_code(void *arg, const struct process_map *map)
{
	(void)arg;
	if (!map->executable || !process_maps_program(&self, map))
		return 0;
	code = *map;
	return 1;
}

/* Replace the page at @address by a copy in anonymous memory; it may be the one that does it. */
static void replace(uintptr_t address)
{
	void *copy = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);

	memcpy(copy, (void *)address, page_size);
	mprotect(copy, page_size, PROT_READ | PROT_EXEC);
	mremap(copy, page_size, page_size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)address);
}

/* Return the result for a child that has replaced the pages of @mask of the @offsets. */
static ssize_t moved_in_child(const uint64_t offsets[OFFSETS], unsigned int mask)
{
	struct process child = self;
	int ready[2];
	ssize_t moved;
	char byte;

	if (pipe(ready))
		return -errno;
	child.pid = (uint32_t)fork();
	if (!child.pid) {
		for (int i = 0; i < OFFSETS; i++)
			if (mask >> i & 1)
				replace((code.start + offsets[i] - code.offset) & ~(page_size - 1));
		byte = (char)write(ready[1], "", 1);
		pause();
	}
	moved = read(ready[0], &byte, 1) == 1 ? process_code_moved(&child, offsets, OFFSETS) : -EIO;
	close(ready[0]);
	close(ready[1]);
	kill((pid_t)child.pid, SIGKILL);
	waitpid((pid_t)child.pid, NULL, 0);
	return moved;
}

static void pages(void)
{
	uint64_t offsets[OFFSETS] = { code.offset + 10, code.offset + 3 * page_size,
				      code.offset + code.end - code.start - 1 };

	CHECK(process_code_moved(&self, offsets, OFFSETS) == 0);
	for (unsigned int mask = 0; mask < 1 << OFFSETS; mask++) {
		ssize_t moved = moved_in_child(offsets, mask);

		CHECK(moved == __builtin_popcount(mask), "%#x: %zd", mask, moved);
	}
	/* Outside of the code. */
	offsets[0] = UINT64_MAX;
	offsets[2] += 1;
	CHECK(process_code_moved(&self, offsets, OFFSETS) == 2);
}

/* A file that the process does not map: it may load it later. */
static void other_files(void)
{
	const uint64_t offset = UINT64_MAX;
	struct process process = self;

	strcpy(process.exe, "/nonexistent");
	CHECK(process_code_moved(&process, &offset, 1) == 1, "by device and inode");
	process.file.ino++;
	CHECK(process_code_moved(&process, &offset, 1) == 0);
	strcpy(process.exe, self.exe);
	CHECK(process_code_moved(&process, &offset, 1) == 1, "by path");
	strcat(process.exe, PROCESS_DELETED);
	CHECK(process_code_moved(&process, &offset, 1) == 1, "by path");
	process.pid = (uint32_t)fork();
	if (!process.pid)
		_exit(0);
	waitpid((pid_t)process.pid, NULL, 0);
	CHECK(process_code_moved(&process, &offset, 1) < 0, "it has ended");
}

static void age(void)
{
	uint64_t before_ns = clock_ns(CLOCK_BOOTTIME), after_ns;
	pid_t child = fork();
	int64_t age_ns;

	if (!child) {
		pause();
		_exit(0);
	}
	usleep(50000);
	age_ns = process_age_ns((uint32_t)child);
	after_ns = clock_ns(CLOCK_BOOTTIME);
	/* The start is in ticks of 10 ms. */
	CHECK(age_ns >= 50000000 && age_ns <= (int64_t)(after_ns - before_ns) + 10000000, "%lld",
	      (long long)age_ns);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK(process_age_ns((uint32_t)child) < 0);
}

int main(void)
{
	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	if (process_read((uint32_t)getpid(), NULL, &self) ||
	    process_maps(self.pid, find_code, NULL) != 1)
		return 1;
	/* A user-mode emulator shows the mappings of its own process only. */
	RUN_LONG(pages);
	RUN_LONG(other_files);
	RUN(age);
	return check_done();
}
