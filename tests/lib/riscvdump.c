// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Prints what usdt/ decodes of machine code for riscv64, or of a file for another architecture,
 * for tests/e2e/test_riscv.py to compare.
 *
 *	riscvdump		for each 16-bit number the instruction that it is expanded to, or 0
 *	riscvdump FILE		for each function "START END" on standard input a line per
 *				instruction: its address and length, and the targets of a call and
 *				of a jump there, or 0
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "usdt/arch.h"
#include "usdt/elf.h"
#include "usdt/riscv_compressed.h"

static int dump_function(const struct elf *elf, uint64_t start, uint64_t end)
{
	const struct arch_code *arch = arch_code_of(elf->machine);
	struct cursor code = cursor_over(elf->data, elf->size, false);
	uint64_t offset;
	unsigned int n;

	if (elf_vaddr_to_offset(elf, start, &offset))
		return 1;
	cursor_seek(&code, offset);
	for (uint64_t at = start; at < end; at += n) {
		n = arch->length ? arch->length(code.data + code.pos, cursor_left(&code)) :
				   arch->insn_align;
		printf("%" PRIx64 " %u %" PRIx64 " %" PRIx64 "\n", at, n,
		       arch->call_target(code, at), arch->jump_target(code, at, n));
		if (!n)
			return 1;
		cursor_bytes(&code, n);
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t start, end;
	struct stat st;
	struct elf elf;
	void *data;
	int fd;

	if (argc < 2) {
		for (uint32_t half = 0; half <= UINT16_MAX; half++)
			printf("%" PRIx32 "\n", riscv_expand((uint16_t)half));
		return 0;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return 2;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED || elf_open(&elf, data, (size_t)st.st_size))
		return 2;
	while (scanf("%" SCNx64 " %" SCNx64, &start, &end) == 2)
		if (dump_function(&elf, start, end))
			return 1;
	return 0;
}
