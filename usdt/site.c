// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/site.h"

#include <elf.h>
#include <string.h>

#include "usdt/cursor.h"

/* Source: the nops of each assembler, as sys/sdt.h's users have them in their files. */
static const struct {
	uint16_t machine;
	uint8_t len;
	unsigned char bytes[10];	/* in memory order of a little-endian file */
} site_nops[] = {
	{ EM_X86_64, 1, { 0x90 } },
	{ EM_X86_64, 5, { 0x0f, 0x1f, 0x44, 0x00, 0x00 } },
	{ EM_X86_64, 10, { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 } },
	{ EM_386, 1, { 0x90 } },
	{ EM_AARCH64, 4, { 0x1f, 0x20, 0x03, 0xd5 } },
	{ EM_PPC64, 4, { 0x00, 0x00, 0x00, 0x60 } },
	{ EM_RISCV, 2, { 0x01, 0x00 } },
	{ EM_RISCV, 4, { 0x13, 0x00, 0x00, 0x00 } },
	{ EM_S390, 4, { 0x47, 0x00, 0x00, 0x00 } },
	{ EM_ARM, 2, { 0x00, 0xbf } },
};

static bool site_bytes(const struct elf *elf, uint64_t offset, const void *want, size_t len)
{
	struct cursor c = cursor_over(elf->data, elf->size, elf->big_endian);
	const unsigned char *have;

	cursor_seek(&c, offset);
	have = cursor_bytes(&c, len);
	return have && !memcmp(have, want, len);
}

bool site_is_nop(const struct elf *elf, uint64_t offset)
{
	for (size_t i = 0; i < sizeof(site_nops) / sizeof(site_nops[0]); i++)
		if (site_nops[i].machine == elf->machine &&
		    site_bytes(elf, offset, site_nops[i].bytes, site_nops[i].len))
			return true;
	return false;
}

uint64_t site_function(const struct elf *elf, uint64_t vaddr)
{
	static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint64_t offset;

	if (elf->machine == EM_X86_64 && !elf_vaddr_to_offset(elf, vaddr, &offset) &&
	    site_bytes(elf, offset, endbr64, sizeof(endbr64)))
		return vaddr + sizeof(endbr64);
	return vaddr;
}
