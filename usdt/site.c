// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/site.h"

#include <elf.h>
#include <errno.h>
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

/* A function's instructions. */
struct body {
	uint16_t machine;
	uint64_t vaddr;
	struct cursor bytes;
};

/* Where the call @at bytes into the function goes; 0: there is no direct one. */
static uint64_t body_call(const struct body *body, size_t at)
{
	struct cursor c = body->bytes;
	uint32_t word;
	int64_t distance;

	cursor_seek(&c, at);
	if (body->machine == EM_X86_64 && cursor_uint(&c, 1) == 0xe8) {
		distance = (int32_t)cursor_uint(&c, 4);
		return c.bad ? 0 : body->vaddr + c.pos + (uint64_t)distance;
	}
	if (body->machine != EM_AARCH64 || at & 3)
		return 0;
	word = (uint32_t)cursor_uint(&c, 4);
	distance = (int32_t)(word << 6) >> 4;
	return word >> 26 == 0x25 ? body->vaddr + at + (uint64_t)distance : 0;
}

size_t site_calls(const struct elf *elf, const struct elf_symbol *function, const char *callee,
		  uint64_t *vaddrs, size_t max)
{
	struct cursor file = cursor_over(elf->data, elf->size, false);
	struct body body = { .machine = elf->machine, .vaddr = function->value };
	const unsigned char *bytes;
	struct elf_symbol called;
	uint64_t offset;
	size_t n = 0;

	if (elf->big_endian || elf_symbol_find(elf, callee, &called) || !called.value ||
	    elf_vaddr_to_offset(elf, function->value, &offset))
		return 0;
	cursor_seek(&file, offset);
	bytes = cursor_bytes(&file, (size_t)function->size);
	if (!bytes)
		return 0;
	body.bytes = cursor_over(bytes, (size_t)function->size, false);
	for (size_t at = 0; at < function->size; at++) {
		if (body_call(&body, at) != called.value)
			continue;
		if (n == max)
			return 0;
		vaddrs[n++] = function->value + at;
	}
	return n;
}

int site_owner(const struct elf *elf, uint64_t vaddr, int64_t offset, char reg[SITE_REG])
{
	static const char x86_regs[16][SITE_REG] = {
		"rax", "rcx", "rdx", "rbx", "", "rbp", "rsi", "rdi",
		"r8", "r9", "r10", "r11", "", "r13", "r14", "r15",
	};
	struct cursor c = cursor_over(elf->data, elf->size, false);
	uint64_t at;
	uint32_t word, n;

	if (elf->big_endian || elf_vaddr_to_offset(elf, vaddr - 4, &at))
		return -EINVAL;
	cursor_seek(&c, at);
	word = (uint32_t)cursor_uint(&c, 4);
	/*
	 * mov offset(%reg),%rdi: REX.W, REX.B for the upper half, 8b; %rsp and %r12 take more
	 * bytes
	 */
	if (elf->machine == EM_X86_64 && (word & 0xf8fffe) == 0x788b48 && offset < 0x80 &&
	    word >> 24 == (uint64_t)offset) {
		memcpy(reg, x86_regs[(word >> 16 & 7) | (word & 1) << 3], SITE_REG);
		return *reg ? 0 : -EINVAL;
	}
	/* ldr x0, [xn, #offset] */
	n = word >> 5 & 31;
	if (elf->machine == EM_AARCH64 && (word & 0xffc0001f) == 0xf9400000 && n < 31 &&
	    8 * (word >> 10 & 0xfff) == (uint64_t)offset) {
		reg[0] = 'x';
		reg[1] = (char)('0' + (n > 9 ? n / 10 : n));
		reg[2] = (char)(n > 9 ? '0' + n % 10 : '\0');
		reg[3] = '\0';
		return 0;
	}
	return -EINVAL;
}
