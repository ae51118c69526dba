// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/site.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "usdt/cursor.h"
#include "usdt/x86_length.h"

/* Bytes of a function that is looked at; the largest seen is PHP's, 330,000. */
#define BODY_MAX	(1u << 19)
#define SECTIONS_MAX	1024	/* that are looked at; executables have some dozens */

#define EH_PCREL	0x1b	/* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define EH_COUNT	0x03	/* DW_EH_PE_udata4 */
#define EH_TABLE	0x3b	/* DW_EH_PE_datarel | DW_EH_PE_sdata4 */

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

/* No section that is data may have it: where there is little memory, these are executable too. */
static bool site_is_code(const struct elf *elf, uint64_t vaddr)
{
	struct elf_section section;

	for (uint32_t i = 0; i < SECTIONS_MAX && !elf_section(elf, i, &section); i++)
		if (section.flags & SHF_ALLOC && !(section.flags & SHF_EXECINSTR) &&
		    !(section.flags & SHF_TLS) && vaddr - section.addr < section.size)
			return false;
	return elf_vaddr_has_flags(elf, vaddr, PF_X);
}

/* A cursor over what is in the file from @vaddr on; bad: nothing. */
static struct cursor site_cursor(const struct elf *elf, uint64_t vaddr)
{
	struct cursor c = cursor_over(elf->data, elf->size, elf->big_endian);
	uint64_t offset;

	cursor_seek(&c, elf_vaddr_to_offset(elf, vaddr, &offset) ? UINT64_MAX : offset);
	return c;
}

/* The first function of the table's row @index. */
static uint64_t frame_start(struct cursor table, uint64_t base, uint64_t index, uint64_t *fde)
{
	int64_t start;

	cursor_seek(&table, table.pos + index * 8);
	start = (int32_t)cursor_uint(&table, 4);
	*fde = base + (uint64_t)(int64_t)(int32_t)cursor_uint(&table, 4);
	return table.bad ? UINT64_MAX : base + (uint64_t)start;
}

/*
 * A sorted table of all functions' beginnings, each with where its frame description entry is:
 * length, CIE, beginning, length of the function.
 */
bool site_body(const struct elf *elf, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	struct elf_segment segment = { .type = PT_NULL };
	uint64_t fde, first = 0, last, middle;
	struct cursor c;

	if (elf->machine != EM_X86_64)
		return false;
	for (uint32_t i = 0; segment.type != PT_GNU_EH_FRAME; i++)
		if (i == ELF_LOADS || elf_segment(elf, i, &segment))
			return false;
	c = site_cursor(elf, segment.vaddr);
	if (cursor_uint(&c, 4) != (1 | EH_PCREL << 8 | EH_COUNT << 16 | EH_TABLE << 24))
		return false;
	cursor_uint(&c, 4);
	for (last = cursor_uint(&c, 4); first < last;) {
		middle = first + (last - first) / 2;
		if (frame_start(c, segment.vaddr, middle, &fde) <= vaddr)
			first = middle + 1;
		else
			last = middle;
	}
	if (!first)
		return false;
	*start = frame_start(c, segment.vaddr, first - 1, &fde);
	c = site_cursor(elf, fde + 8);
	/* Other encodings than the usual one do not lead back to where we came from. */
	if (fde + 8 + (uint64_t)(int64_t)(int32_t)cursor_uint(&c, 4) != *start)
		return false;
	*end = *start + cursor_uint(&c, 4);
	return vaddr < *end;
}

/* Where the jump of @n bytes at @vaddr goes; 0: it is none, or not a direct one. */
static uint64_t jump_target(struct cursor code, uint64_t vaddr, unsigned int n)
{
	unsigned int opcode = (unsigned int)cursor_uint(&code, 1);
	bool near = n == 2 && (opcode >> 4 == 7 || opcode >> 2 == 0xe0 >> 2 || opcode == 0xeb);

	if (near)
		return vaddr + n + (uint64_t)(int64_t)(int8_t)cursor_uint(&code, 1);
	if (opcode == 0x0f && n == 6)
		opcode = (unsigned int)cursor_uint(&code, 1) >> 4 == 8 ? 0xe9 : 0;
	if (opcode != 0xe9)
		return 0;
	return vaddr + n + (uint64_t)(int64_t)(int32_t)cursor_uint(&code, 4);
}

/*
 * Whether an instruction from @start on ends at @vaddr, or one before it is not known. If neither,
 * *@anchor becomes the last place up to there that anything before @end jumps to.
 */
static bool sweep_meets(const struct elf *elf, uint64_t vaddr, uint64_t start, uint64_t end,
			uint64_t *anchor)
{
	struct cursor c = site_cursor(elf, start);
	uint64_t target;
	unsigned int n;

	for (uint64_t at = start; at < end; at += n) {
		n = x86_length_decode(c.data + c.pos, cursor_left(&c));
		if (at == vaddr || (!n && at < vaddr))
			return true;
		if (!n)
			return false;
		target = jump_target(c, at, n);
		if (target > *anchor && target <= vaddr)
			*anchor = target;
		cursor_bytes(&c, n);
	}
	return false;
}

/*
 * Whether @vaddr is inside an instruction. One sweep from the function's beginning may be led
 * astray: there are functions that have other things than instructions behind a call that does
 * not return (glibc's longjmp). What is jumped to is an instruction.
 */
static bool site_is_inside(const struct elf *elf, uint64_t vaddr)
{
	uint64_t start, end, anchor = 0, unused = 0;

	if (!site_body(elf, vaddr, &start, &end) || end - start > BODY_MAX ||
	    sweep_meets(elf, vaddr, start, end, &anchor))
		return false;
	return anchor < start || !sweep_meets(elf, vaddr, anchor, vaddr + 1, &unused);
}

/* The kernel counts in the two bytes there, which nothing else may be kept in. */
static bool semaphore_is_one(const struct elf *elf, const struct usdt_site *site)
{
	struct cursor c = site_cursor(elf, site->semaphore_vaddr);

	return elf_vaddr_has_flags(elf, site->semaphore_vaddr, PF_W) &&
	       !(site->semaphore_offset & 1) && !cursor_uint(&c, 2) && !c.bad;
}

const char *site_refusal(const struct elf *elf, const struct usdt_site *site)
{
	unsigned int align = elf->machine == EM_AARCH64 ? 4 : 1;

	if (!site_is_nop(elf, site->offset))
		return "there is no nop at its site";
	if (!site_is_code(elf, site->vaddr))
		return "its site is in data";
	if (site->offset % align || site_is_inside(elf, site->vaddr))
		return "its site is inside an instruction";
	if (site->semaphore_vaddr && !site->semaphore_offset)
		return "its semaphore is not in the file";
	if (site->semaphore_vaddr && !semaphore_is_one(elf, site))
		return "its semaphore is used for something else";
	return NULL;
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
