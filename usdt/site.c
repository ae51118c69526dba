// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/site.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "usdt/arch.h"

#define BODY_MAX	(1u << 19)	/* bytes of a function; at most 330,000 seen, in PHP */
#define SECTIONS_MAX	1024		/* executables have some dozens */
#define INSN_BYTES	16		/* equivalent of decoding an instruction */
#define PROLOGUE_MAX	256		/* bytes; 40 seen */
#define CALL_BYTES	8		/* equivalent of testing whether a call starts at a byte */
#define PARTS_MAX	4		/* of a function, beside its body; 1 seen */

#define EH_PCREL	0x1b	/* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define EH_COUNT	0x03	/* DW_EH_PE_udata4 */
#define EH_TABLE	0x3b	/* DW_EH_PE_datarel | DW_EH_PE_sdata4 */

/* Compare the @len bytes at file offset @offset. */
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
	const struct arch *arch = arch_of(elf->machine);

	for (size_t i = 0; arch && i < ARCH_NOPS_MAX && arch->nops[i].len; i++)
		if (site_bytes(elf, offset, arch->nops[i].bytes, arch->nops[i].len))
			return true;
	return false;
}

/* Return whether @test, or NULL, is true of the instruction at file offset @offset. */
static bool site_insn_is(const struct elf *elf, uint64_t offset,
			 bool (*test)(const unsigned char *code, size_t size))
{
	struct cursor c = cursor_over(elf->data, elf->size, elf->big_endian);

	cursor_seek(&c, offset);
	return test && !c.bad && test(c.data + c.pos, cursor_left(&c));
}

bool site_is_refused(const struct elf *elf, uint64_t offset)
{
	const struct arch_code *arch = arch_code_of(elf->machine);

	return arch && site_insn_is(elf, offset, arch->refused);
}

bool site_is_call_nop(const struct elf *elf, uint64_t offset)
{
	const struct arch_code *arch = arch_code_of(elf->machine);

	return arch && site_insn_is(elf, offset, arch->call_nop);
}

/*
 * Return whether @vaddr is executable and not in a data section. Linkers that
 * save memory put data into executable segments.
 */
static bool site_is_code(const struct elf *elf, uint64_t vaddr)
{
	struct elf_section section;

	for (uint32_t i = 0; i < SECTIONS_MAX && !elf_section(elf, i, &section); i++)
		if (section.flags & SHF_ALLOC && !(section.flags & SHF_EXECINSTR) &&
		    !(section.flags & SHF_TLS) && vaddr - section.addr < section.size)
			return false;
	return elf_vaddr_has_flags(elf, vaddr, PF_X);
}

/* A cursor at @vaddr; bad if the file does not contain that address. */
static struct cursor site_cursor(const struct elf *elf, uint64_t vaddr)
{
	struct cursor c = cursor_over(elf->data, elf->size, elf->big_endian);
	uint64_t offset;

	cursor_seek(&c, elf_vaddr_to_offset(elf, vaddr, &offset) ? UINT64_MAX : offset);
	return c;
}

/*
 * Row @index of the table in .eh_frame_hdr, which @base is the address of:
 * return the start of a function, and in *@fde the address of its frame
 * description entry. Both are stored relative to @base.
 */
static uint64_t frame_start(struct cursor table, uint64_t base, uint64_t index, uint64_t *fde)
{
	int64_t start;

	cursor_seek(&table, table.pos + index * 8);
	start = (int32_t)cursor_uint(&table, 4);
	*fde = base + (uint64_t)(int64_t)(int32_t)cursor_uint(&table, 4);
	return table.bad ? UINT64_MAX : base + (uint64_t)start;
}

/*
 * .eh_frame_hdr has a table of all functions and their parts, sorted by start. A
 * frame description entry is: length, CIE pointer, start of the function, length
 * of the function.
 */
static bool frame_bounds(const struct elf *elf, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	struct elf_segment segment = { .type = PT_NULL };
	uint64_t fde, first = 0, last, middle;
	struct cursor c;

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
	/* With an encoding other than the usual one, the start does not match. */
	if (fde + 8 + (uint64_t)(int64_t)(int32_t)cursor_uint(&c, 4) != *start)
		return false;
	*end = *start + cursor_uint(&c, 4);
	return vaddr < *end;
}

bool site_body(const struct elf *elf, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	const struct arch_code *arch = arch_code_of(elf->machine);

	return arch && arch->length && frame_bounds(elf, vaddr, start, end);
}

/*
 * Decode instructions from @start to @end. Return true if one starts at
 * @vaddr, or if one before @vaddr cannot be decoded. Otherwise *@anchor is
 * raised to the highest jump target that is not above @vaddr.
 */
static bool sweep_meets(const struct elf *elf, uint64_t vaddr, uint64_t start, uint64_t end,
			uint64_t *anchor)
{
	const struct arch_code *arch = arch_code_of(elf->machine);
	struct cursor c = site_cursor(elf, start);
	uint64_t target;
	unsigned int n;

	for (uint64_t at = start; at < end && elf_spend(elf, INSN_BYTES); at += n) {
		n = arch->length(c.data + c.pos, cursor_left(&c));
		if (at == vaddr || (!n && at < vaddr))
			return true;
		if (!n)
			return false;
		target = arch->jump_target(c, at, n);
		if (target > *anchor && target <= vaddr)
			*anchor = target;
		cursor_bytes(&c, n);
	}
	return false;
}

/*
 * Return whether @vaddr is inside an instruction. A sweep from the start of the
 * function alone may lose synchronization: some functions have data behind a
 * call that does not return (glibc's longjmp). A jump target is the start of an
 * instruction, so a second sweep starts at the last one.
 */
static bool site_is_inside(const struct elf *elf, uint64_t vaddr)
{
	uint64_t start, end, anchor = 0, unused = 0;

	if (!site_body(elf, vaddr, &start, &end) || end - start > BODY_MAX ||
	    sweep_meets(elf, vaddr, start, end, &anchor))
		return false;
	return anchor < start || !sweep_meets(elf, vaddr, anchor, vaddr + 1, &unused);
}

/* Return whether @site has a semaphore that the kernel may increment: writable, aligned, 0. */
static bool semaphore_is_valid(const struct elf *elf, const struct usdt_site *site)
{
	struct cursor c = site_cursor(elf, site->semaphore_vaddr);

	return elf_vaddr_has_flags(elf, site->semaphore_vaddr, PF_W) &&
	       !(site->semaphore_offset & 1) && !cursor_uint(&c, 2) && !c.bad;
}

const char *site_refusal(const struct elf *elf, const struct usdt_site *site)
{
	const struct arch_code *arch = arch_code_of(elf->machine);
	unsigned int align = arch ? arch->insn_align : 1;

	if (!site_is_nop(elf, site->offset))
		return "there is no nop at its site";
	if (!site_is_code(elf, site->vaddr))
		return "its site is in data";
	if (site->offset % align || site_is_inside(elf, site->vaddr))
		return "its site is inside an instruction";
	if (site->semaphore_vaddr && !site->semaphore_offset)
		return "its semaphore is not in the file";
	if (site->semaphore_vaddr && !semaphore_is_valid(elf, site))
		return "its semaphore is used for something else";
	return NULL;
}

uint64_t site_function(const struct elf *elf, uint64_t vaddr)
{
	const struct arch_code *arch = arch_code_of(elf->machine);
	uint64_t offset;

	if (arch && *arch->landing_pad && !elf_vaddr_to_offset(elf, vaddr, &offset) &&
	    site_bytes(elf, offset, arch->landing_pad, sizeof(arch->landing_pad)))
		return vaddr + sizeof(arch->landing_pad);
	return vaddr;
}

/* A function: its body first, then the parts that the compiler has put elsewhere. */
struct parts {
	uint64_t start[1 + PARTS_MAX], size[1 + PARTS_MAX];
	size_t n;
};

static bool parts_have(const struct parts *parts, uint64_t vaddr)
{
	for (size_t i = 0; i < parts->n; i++)
		if (vaddr - parts->start[i] < parts->size[i])
			return true;
	return false;
}

static void parts_add(struct parts *parts, uint64_t start, uint64_t size)
{
	if (parts_have(parts, start) || parts->n > PARTS_MAX || size > BODY_MAX)
		return;
	parts->start[parts->n] = start;
	parts->size[parts->n++] = size;
}

/* Instructions that are searched for jumps. */
struct jumps {
	struct cursor code;
	uint64_t at, end;
};

static struct jumps jumps_over(const struct elf *elf, uint64_t start, uint64_t size)
{
	return (struct jumps){ site_cursor(elf, start), start, start + size };
}

/* Return the target of the next direct jump, or 0 at the end or at an unknown instruction. */
static uint64_t jumps_next(const struct elf *elf, struct jumps *jumps)
{
	const struct arch_code *arch = arch_code_of(elf->machine);
	uint64_t target = 0;
	unsigned int n = 1;

	while (!target && n && jumps->at < jumps->end && elf_spend(elf, INSN_BYTES)) {
		n = arch->length ? arch->length(jumps->code.data + jumps->code.pos,
						cursor_left(&jumps->code)) : arch->insn_align;
		target = n ? arch->jump_target(jumps->code, jumps->at, n) : 0;
		if (!cursor_bytes(&jumps->code, n))
			return 0;
		jumps->at += n;
	}
	return target;
}

/* Return whether the code from @start to @end jumps behind the start of @function. */
static bool jumps_into(const struct elf *elf, uint64_t start, uint64_t end,
		       const struct elf_symbol *function)
{
	struct jumps jumps = jumps_over(elf, start, end - start);
	uint64_t target;

	while ((target = jumps_next(elf, &jumps)))
		if (target != function->value && target - function->value < function->size)
			return true;
	return false;
}

/*
 * Add the code to which @function jumps. It is a part if the jump is not to its start, or if it
 * jumps back; otherwise it is another function, of which the call is the last one made.
 */
static void parts_by_jumps(const struct elf *elf, const struct elf_symbol *function,
			   struct parts *parts)
{
	struct jumps jumps = jumps_over(elf, function->value, function->size);
	uint64_t target, start, end;

	while ((target = jumps_next(elf, &jumps))) {
		if (parts_have(parts, target) || !frame_bounds(elf, target, &start, &end) ||
		    target >= end || end - start > BODY_MAX)
			continue;
		if (target != start || jumps_into(elf, start, end, function))
			parts_add(parts, start, end - start);
	}
}

/* Add the parts that .symtab names: NAME.cold, of gcc before 8, clang and BOLT NAME.cold.N. */
static void parts_by_symbols(const struct elf *elf, const struct elf_symbol *function,
			     struct parts *parts)
{
	size_t len = strlen(function->name);
	struct elf_symbol_iter iter;
	struct elf_symbol part;

	if (elf_symbols(elf, SHT_SYMTAB, &iter))
		return;
	while (elf_symbol_next(&iter, &part))
		if (part.shndx != SHN_UNDEF && part.type == STT_FUNC &&
		    !strncmp(part.name, function->name, len) &&
		    !strncmp(part.name + len, ".cold", 5) && strchr(".", part.name[len + 5]))
			parts_add(parts, part.value, part.size);
}

/* Calls that are looked for. */
struct calls {
	uint64_t callee, *vaddrs;
	size_t n, max;
};

static bool calls_have(const struct calls *calls, uint64_t vaddr)
{
	for (size_t i = 0; i < calls->n; i++)
		if (calls->vaddrs[i] == vaddr)
			return true;
	return false;
}

/* Find calls in the @size bytes at @start. Return false if these cannot be read, or too many. */
static bool calls_find(const struct elf *elf, uint64_t start, uint64_t size, struct calls *calls)
{
	const struct arch_code *arch = arch_code_of(elf->machine);
	struct cursor code = site_cursor(elf, start);
	const unsigned char *bytes = cursor_bytes(&code, (size_t)size);

	if (!bytes || size > BODY_MAX || !elf_spend(elf, size * CALL_BYTES))
		return false;
	code = cursor_over(bytes, (size_t)size, false);
	for (size_t at = 0; at < size; at += arch->insn_align) {
		cursor_seek(&code, at);
		/* Parts of an inconsistent file may overlap. */
		if (arch->call_target(code, start + at) != calls->callee ||
		    calls_have(calls, start + at))
			continue;
		if (calls->n == calls->max)
			return false;
		calls->vaddrs[calls->n++] = start + at;
	}
	return true;
}

size_t site_calls(const struct elf *elf, const struct elf_symbol *function, const char *callee,
		  uint64_t *vaddrs, size_t max)
{
	struct parts parts = { .start = { function->value }, .size = { function->size }, .n = 1 };
	struct calls calls = { .vaddrs = vaddrs, .max = max };
	struct elf_symbol called;

	if (!arch_code_of(elf->machine) || elf->big_endian ||
	    elf_symbol_find(elf, callee, &called) || !called.value)
		return 0;
	calls.callee = called.value;
	/* Without any in the body, those that are often executed have been inlined. */
	if (!calls_find(elf, function->value, function->size, &calls) || !calls.n)
		return 0;
	parts_by_jumps(elf, function, &parts);
	parts_by_symbols(elf, function, &parts);
	for (size_t i = 1; i < parts.n; i++)
		if (!calls_find(elf, parts.start[i], parts.size[i], &calls))
			return 0;
	return calls.n;
}

int site_owner(const struct elf *elf, uint64_t vaddr, int64_t offset, char reg[SITE_REG])
{
	struct cursor c = cursor_over(elf->data, elf->size, false);
	const struct arch *arch = arch_of(elf->machine);
	uint64_t at;
	int n;

	if (!arch || !arch->code || elf->big_endian || elf_vaddr_to_offset(elf, vaddr - 4, &at))
		return -EINVAL;
	cursor_seek(&c, at);
	n = arch->code->member_load((uint32_t)cursor_uint(&c, 4), offset);
	if (n < 0)
		return -EINVAL;
	arch_reg_name(arch, (unsigned int)n, reg);
	return 0;
}

int site_caller(const struct elf *elf, uint64_t start, uint64_t vaddr,
		char operand[SITE_OPERAND])
{
	const struct arch_code *arch = arch_code_of(elf->machine);
	struct cursor c = site_cursor(elf, start);
	int growth, depth = 0;
	unsigned int n;

	if (!arch || !arch->stack_growth || elf->big_endian || vaddr - start > PROLOGUE_MAX)
		return -EINVAL;
	for (uint64_t at = start; at != vaddr; at += n) {
		n = arch->length ? arch->length(c.data + c.pos, cursor_left(&c)) :
				   arch->insn_align;
		growth = arch->stack_growth(c);
		if (!n || at > vaddr || growth < 0 || !cursor_bytes(&c, n))
			return -EINVAL;
		depth += growth;
	}
	if (*arch->return_address == '(')
		snprintf(operand, SITE_OPERAND, "%d%s", depth, arch->return_address);
	else
		snprintf(operand, SITE_OPERAND, "%s", arch->return_address);
	return 0;
}
