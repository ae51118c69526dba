/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host/elf_map.c: files that are truncated while they are read. */
#include "host/elf_map.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/check.h"

#define FILE_BYTES	(1u << 20)

static volatile sig_atomic_t faults;
static sigjmp_buf foreign;

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	faults++;
	if (!elf_map_fault(info->si_addr))
		siglongjmp(foreign, 1);
}

/* Return a file of FILE_BYTES that begins as an ELF file does and ends in 'x'. */
static int make_file(void)
{
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
		.e_type = ET_DYN,
	};
	int fd = memfd_create("file", MFD_CLOEXEC);

	CHECK(fd >= 0 && !ftruncate(fd, FILE_BYTES));
	CHECK(pwrite(fd, &header, sizeof(header), 0) == sizeof(header));
	CHECK(pwrite(fd, "x", 1, FILE_BYTES - 1) == 1);
	return fd;
}

/* Return the sum of all bytes of the mapping, from its end to its beginning. */
static unsigned long sum(const struct elf_map *map)
{
	const volatile unsigned char *data = map->data;
	unsigned long total = 0;

	for (size_t i = map->size; i--;)
		total += data[i];
	return total;
}

/* The number of mappings of this process. */
static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int lines = 0, c;

	while (maps && (c = getc(maps)) != EOF)
		lines += c == '\n';
	if (maps)
		fclose(maps);
	return lines;
}

/* Several files at once, each truncated in several steps: one signal each, and zeros. */
static void truncated(void)
{
	static const off_t sizes[] = { FILE_BYTES - 4096, FILE_BYTES / 2, 4096, 0 };
	struct elf_map map[3];
	int fd[3], before;

	mappings();	/* the first one allocates memory */
	before = mappings();
	for (int i = 0; i < 3; i++) {
		fd[i] = make_file();
		CHECK(!elf_map_open(&map[i], fd[i], NULL));
		CHECK(((unsigned char *)map[i].data)[FILE_BYTES] == 0);
	}
	faults = 0;
	for (int i = 0; i < 3; i++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			CHECK(!ftruncate(fd[i], sizes[s]));
			CHECK(sum(&map[i]) == 0 && faults == i + 1, "%d faults", faults);
			CHECK(mappings() <= before + 6, "%d, %d before", mappings(), before);
		}
	elf_map_close(&map[1]);
	elf_map_close(&map[0]);
	elf_map_close(&map[2]);
	elf_map_close(&map[2]);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	CHECK(mappings() == before);
}

/* Addresses of a mapping that is closed, or that elf_map_open() did not make. */
static void not_mapped(void)
{
	volatile unsigned char *data;
	struct elf_map map;
	int fd = make_file();

	CHECK(!elf_map_open(&map, fd, NULL));
	elf_map_close(&map);
	CHECK(!elf_map_fault(&map) && !elf_map_fault(NULL));
	data = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(!ftruncate(fd, 0));
	if (!sigsetjmp(foreign, 1)) {
		CHECK(!data[0]);
		CHECK(false);
	}
	munmap((void *)(uintptr_t)data, FILE_BYTES);
	close(fd);
}

static void refused(void)
{
	struct elf_map map;
	int fd = memfd_create("file", MFD_CLOEXEC), pipes[2];

	CHECK(elf_map_open(&map, fd, NULL) == -ENOEXEC);
	CHECK(!ftruncate(fd, 4096) && elf_map_open(&map, fd, NULL) == -ENOEXEC);
	CHECK(elf_map_open(&map, -1, NULL) == -EBADF);
	CHECK(!pipe(pipes) && elf_map_open(&map, pipes[0], NULL) == -ENOEXEC);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };

	alarm(60);
	sigaction(SIGBUS, &action, NULL);
	RUN(truncated);
	RUN(not_mapped);
	RUN(refused);
	return check_done();
}
