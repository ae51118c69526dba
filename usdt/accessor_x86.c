// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The x86-64 instructions that accessors consist of.
 *
 * Source of the encodings: Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2.
 */
#include "usdt/accessor_x86.h"

#include <errno.h>
#include <string.h>

#include "usdt/arch.h"

#define X86_AX	0
#define X86_SP	4
#define X86_BP	5

struct x86 {
	struct cursor *code;
	bool wide;		/* REX.W */
	unsigned int rex;	/* the REX prefix, 0: none */
	bool is_reg;		/* r/m is register ->base, else memory at ->base + ->disp */
	unsigned int reg, base;
	int64_t disp;
};

static int64_t x86_signed(struct x86 *x, unsigned int bytes)
{
	return uop_sign_extend(cursor_uint(x->code, bytes), 8 * bytes);
}

/* Decode ModRM with SIB and displacement. An address that is not modelled has no ->base. */
static void x86_modrm(struct x86 *x)
{
	unsigned int byte = (unsigned int)cursor_uint(x->code, 1), mod = byte >> 6, rm = byte & 7;

	x->reg = (byte >> 3 & 7) | (x->rex & 4) << 1;
	x->base = rm | (x->rex & 1) << 3;
	x->disp = 0;
	x->is_reg = mod == 3;
	if (x->is_reg)
		return;
	if (rm == 4) {
		unsigned int sib = (unsigned int)cursor_uint(x->code, 1);

		x->base = (sib & 7) | (x->rex & 1) << 3;
		/* Addresses with an index are not modelled. */
		if ((sib >> 3 & 7) != 4 || x->rex & 2 || (!mod && (sib & 7) == 5)) {
			x->base = UOP_NO_REG;
			if (!mod && (sib & 7) == 5)
				mod = 2;
		}
	} else if (!mod && rm == 5) {
		x->base = UOP_GLOBAL;	/* %rip */
		mod = 2;
	}
	if (mod)
		x->disp = x86_signed(x, mod == 1 ? 1 : 4);
	if (x->base == X86_SP)
		x->base = UOP_NO_REG;
}

/* Operand size in bytes. */
static unsigned int x86_size(const struct x86 *x)
{
	return x->wide ? 8 : 4;
}

/* Without REX, the byte registers 4 to 7 are %ah to %bh. */
static bool x86_has_byte(const struct x86 *x)
{
	return x->base < 4 || x->rex;
}

/* reg = low @size bytes of r/m */
static bool x86_load(struct x86 *x, struct uop_list *list, unsigned int size)
{
	x86_modrm(x);
	if (x->is_reg)
		uop_add_move(list, x->reg, x->base, size);
	else
		uop_add_memory(list, UOP_LOAD, x->reg, x->base, x->disp, size);
	return size > 1 || !x->is_reg || x86_has_byte(x);
}

/* 8b: mov; 63: movslq */
static bool x86_mov_load(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	if (opcode == 0x63 && !x->wide)
		return false;
	return x86_load(x, list, opcode == 0x63 ? 4 : x86_size(x));
}

static bool x86_mov_store(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	(void)opcode;
	x86_modrm(x);
	if (x->is_reg)
		uop_add_move(list, x->base, x->reg, x86_size(x));
	else
		uop_add_memory(list, UOP_STORE, x->reg, x->base, x->disp, x86_size(x));
	return true;
}

static bool x86_lea(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	(void)opcode;
	x86_modrm(x);
	if (x->wide)
		uop_add_memory(list, UOP_ADD_NUMBER, x->reg, x->base, x->disp, 8);
	else
		uop_add(list, UOP_FORGET, x->reg);
	return !x->is_reg;
}

/* Write a result that is not modelled to reg or to r/m. */
static void x86_forget(struct x86 *x, struct uop_list *list, bool to_reg)
{
	if (x->is_reg || to_reg)
		uop_add(list, UOP_FORGET, to_reg ? x->reg : x->base);
	else
		uop_add_memory(list, UOP_STORE, UOP_NO_REG, x->base, x->disp, x86_size(x));
	uop_add(list, UOP_CLOBBER_FLAGS, UOP_NO_REG);
}

/*
 * 01 to 29 to r/m, 03 to 2b to reg: add, or, adc, sbb, and, sub. Only 8-byte
 * additions with memory are modelled.
 */
static bool x86_arithmetic(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	bool to_reg = opcode & 2;

	x86_modrm(x);
	if (opcode > 3 || !x->wide || x->is_reg) {
		x86_forget(x, list, to_reg);
		return true;
	}
	uop_add_memory(list, UOP_LOAD, UOP_TEMP, x->base, x->disp, 8);
	uop_add_sum(list, to_reg ? x->reg : UOP_TEMP, UOP_TEMP, x->reg);
	if (!to_reg)
		uop_add_memory(list, UOP_STORE, UOP_TEMP, x->base, x->disp, 8);
	else
		uop_add(list, UOP_CLOBBER_FLAGS, UOP_NO_REG);
	return true;
}

/* add of an immediate to %rax */
static bool x86_add_rax(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	(void)opcode;
	if (!x->wide)
		return false;
	uop_add_memory(list, UOP_ADD_NUMBER, X86_AX, X86_AX, x86_signed(x, 4), 8);
	uop_add(list, UOP_CLOBBER_FLAGS, UOP_NO_REG);
	return true;
}

/* or of r/m and an immediate; to memory, it also clobbers the flags */
static void x86_or(struct x86 *x, struct uop_list *list, int64_t number, unsigned int size)
{
	unsigned int reg = x->is_reg ? x->base : UOP_TEMP;

	if (!x->is_reg)
		uop_add_memory(list, UOP_LOAD, reg, x->base, x->disp, size);
	uop_add_number(list, UOP_OR_NUMBER, reg, number, size);
	if (x->is_reg)
		uop_add(list, UOP_CLOBBER_FLAGS, UOP_NO_REG);
	else
		uop_add_memory(list, UOP_STORE, reg, x->base, x->disp, size);
}

/* 80, 81, 83: an operation of r/m and an immediate. Only cmp, or, add and sub are modelled. */
static bool x86_immediate(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	unsigned int size = opcode == 0x80 ? 1 : x86_size(x), operation;
	int64_t number;

	x86_modrm(x);
	number = x86_signed(x, opcode == 0x81 ? 4 : 1);
	operation = x->reg & 7;
	if (x->is_reg && size == 1)
		return false;
	if (operation == 7) {
		if (!x->is_reg)
			uop_add_memory(list, UOP_LOAD, UOP_TEMP, x->base, x->disp, size);
		uop_add_number(list, UOP_COMPARE, x->is_reg ? x->base : UOP_TEMP, number, size);
		return true;
	}
	if (operation == 1) {
		x86_or(x, list, number, size);
		return true;
	}
	if (!x->is_reg || !x->wide || (operation != 0 && operation != 5)) {
		x86_forget(x, list, false);
		return true;
	}
	uop_add_memory(list, UOP_ADD_NUMBER, x->base, x->base, operation ? -number : number, 8);
	uop_add(list, UOP_CLOBBER_FLAGS, UOP_NO_REG);
	return true;
}

/* mov of an immediate. c6: one byte, to memory only; c7: 4 or 8 bytes */
static bool x86_mov_immediate(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	bool byte = opcode == 0xc6;

	x86_modrm(x);
	x86_signed(x, byte ? 1 : 4);
	x86_forget(x, list, false);
	return !(x->reg & 7) && !(byte && x->is_reg);
}

/* b8 to bf: mov of a 4-byte immediate to a register */
static bool x86_mov_number(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	if (x->wide)
		return false;
	uop_add_number(list, UOP_NUMBER, (opcode & 7) | (x->rex & 1) << 3,
		       (int64_t)cursor_uint(x->code, 4), 8);
	return true;
}

/* test of a register with itself */
static bool x86_test(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	(void)opcode;
	x86_modrm(x);
	if (!x->is_reg || x->base != x->reg)
		return false;
	uop_add_number(list, UOP_COMPARE, x->reg, 0, x86_size(x));
	return true;
}

/* xor of a register with itself */
static bool x86_xor(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	(void)opcode;
	x86_modrm(x);
	if (!x->is_reg || x->base != x->reg)
		return false;
	uop_add_number(list, UOP_NUMBER, x->reg, 0, 8);
	uop_add(list, UOP_CLOBBER_FLAGS, UOP_NO_REG);
	return true;
}

static bool x86_nop(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	(void)list;
	(void)opcode;
	return !x->rex;
}

/* push has no effect: the stack is not modelled. */
static bool x86_push(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	(void)x;
	(void)list;
	(void)opcode;
	return true;
}

/* 58 to 5f: pop; c9: leave, which pops %rbp */
static bool x86_pop(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	uop_add(list, UOP_FORGET, opcode == 0xc9 ? X86_BP : (opcode & 7) | (x->rex & 1) << 3);
	return true;
}

static bool x86_return(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	(void)x;
	(void)opcode;
	uop_add(list, UOP_RETURN, UOP_NO_REG);
	return true;
}

/* Append a jump by a displacement of @bytes. */
static bool x86_branch(struct x86 *x, struct uop_list *list, enum uop_kind kind, unsigned int bytes,
		       bool if_not)
{
	int64_t distance = x86_signed(x, bytes);

	uop_add_jump(list, kind, (int64_t)x->code->pos + distance, if_not);
	return true;
}

/* jo to jg. Only je and jne depend on flags that are modelled. */
static bool x86_condition(struct x86 *x, struct uop_list *list, unsigned int opcode,
			  unsigned int bytes)
{
	return x86_branch(x, list, (opcode & 0xe) == 4 ? UOP_BRANCH : UOP_FORK, bytes, opcode & 1);
}

static bool x86_short_condition(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	return x86_condition(x, list, opcode, 1);
}

/* e8: call; e9, eb: jmp */
static bool x86_jump(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	return x86_branch(x, list, opcode == 0xe8 ? UOP_CALL : UOP_JUMP, opcode == 0xeb ? 1 : 4,
			  false);
}

/* ff: call (2) or jmp (4) through r/m */
static bool x86_indirect(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	(void)opcode;
	x86_modrm(x);
	uop_add(list, (x->reg & 7) == 2 ? UOP_CALL : UOP_LEAVE, UOP_NO_REG);
	return (x->reg & 7) == 2 || (x->reg & 7) == 4;
}

/* The one-byte opcodes. The first row with (opcode & mask) == value applies. */
static const struct {
	uint8_t mask, value;
	bool (*decode)(struct x86 *x, struct uop_list *list, unsigned int opcode);
} x86_opcodes[] = {
	{ 0xff, 0x05, x86_add_rax },
	{ 0xfd, 0x31, x86_xor },
	{ 0xfd, 0x39, NULL },			/* cmp */
	{ 0xc5, 0x01, x86_arithmetic },
	{ 0xf8, 0x50, x86_push },
	{ 0xf8, 0x58, x86_pop },
	{ 0xff, 0x63, x86_mov_load },
	{ 0xf0, 0x70, x86_short_condition },
	{ 0xfe, 0x80, x86_immediate },
	{ 0xff, 0x83, x86_immediate },
	{ 0xff, 0x85, x86_test },
	{ 0xff, 0x89, x86_mov_store },
	{ 0xff, 0x8b, x86_mov_load },
	{ 0xff, 0x8d, x86_lea },
	{ 0xff, 0x90, x86_nop },
	{ 0xf8, 0xb8, x86_mov_number },
	{ 0xff, 0xc3, x86_return },
	{ 0xfe, 0xc6, x86_mov_immediate },
	{ 0xff, 0xc9, x86_pop },
	{ 0xfe, 0xe8, x86_jump },
	{ 0xff, 0xeb, x86_jump },
	{ 0xff, 0xff, x86_indirect },
};

static bool x86_decode_one(struct x86 *x, struct uop_list *list, unsigned int opcode)
{
	for (size_t i = 0; i < sizeof(x86_opcodes) / sizeof(x86_opcodes[0]); i++)
		if ((opcode & x86_opcodes[i].mask) == x86_opcodes[i].value)
			return x86_opcodes[i].decode && x86_opcodes[i].decode(x, list, opcode);
	return false;
}

/* The opcodes behind 0f: jcc, sete, movzx and movsx. */
static bool x86_decode_two(struct x86 *x, struct uop_list *list)
{
	unsigned int opcode = (unsigned int)cursor_uint(x->code, 1);

	if ((opcode & 0xf0) == 0x80)
		return x86_condition(x, list, opcode, 4);
	switch (opcode) {
	case 0x94:
		x86_modrm(x);
		uop_add(list, UOP_SET_EQUAL, x->base);
		return x->is_reg && x86_has_byte(x);
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf:
		return x86_load(x, list, opcode & 1 ? 2 : 1);
	}
	return false;
}

/* Skip endbr64, or a nop with up to seven prefixes. Return false if neither is next. */
static bool x86_padding(struct cursor *code)
{
	struct cursor at = *code;
	unsigned int byte = 0, prefixes = 0;

	if (cursor_uint(&at, 4) == 0xfa1e0ff3) {
		*code = at;
		return true;
	}
	for (at = *code; prefixes < 8; prefixes++) {
		byte = (unsigned int)cursor_uint(&at, 1);
		if (byte != 0x66 && byte != 0x2e)
			break;
	}
	if (byte == 0x0f && cursor_uint(&at, 1) == 0x1f)
		x86_modrm(&(struct x86){ .code = &at });
	else if (byte != 0x90 || !prefixes)
		return false;
	*code = at;
	return !at.bad;
}

bool accessor_x86_decode(struct cursor *code, struct uop_list *list)
{
	struct x86 x = { .code = code };
	unsigned int opcode;

	if (x86_padding(code))
		return true;
	opcode = (unsigned int)cursor_uint(code, 1);
	if (opcode == 0xf3) {
		uop_add(list, UOP_RETURN, UOP_NO_REG);
		return cursor_uint(code, 1) == 0xc3;	/* rep ret */
	}
	if ((opcode & 0xf0) == 0x40) {
		x.rex = opcode;
		x.wide = opcode & 8;
		opcode = (unsigned int)cursor_uint(code, 1);
	}
	return opcode == 0x0f ? x86_decode_two(&x, list) : x86_decode_one(&x, list, opcode);
}

/* mov variable(%rip),%rax; ret; optionally behind endbr64 */
int accessor_x86_global(const unsigned char *code, size_t size, uint64_t vaddr, uint64_t *variable)
{
	static const unsigned char pad[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const unsigned char load[] = { 0x48, 0x8b, 0x05 };
	struct cursor c = cursor_over(code, size, false);
	const unsigned char *bytes;

	if (size >= sizeof(pad) && !memcmp(code, pad, sizeof(pad)))
		cursor_seek(&c, sizeof(pad));
	vaddr += c.pos + sizeof(load) + 4;
	bytes = cursor_bytes(&c, sizeof(load));
	if (!bytes || memcmp(bytes, load, sizeof(load)))
		return -EINVAL;
	*variable = vaddr + (uint64_t)(int64_t)(int32_t)cursor_uint(&c, 4);
	return cursor_uint(&c, 1) == 0xc3 ? 0 : -EINVAL;
}

/* Read a displacement of @bytes. */
static int64_t x86_displacement(struct cursor *code, unsigned int bytes)
{
	return uop_sign_extend(cursor_uint(code, bytes), 8 * bytes);
}

/* mov or movslq index(%rip),%eax; test %eax,%eax */
static bool x86_index(struct cursor code, int64_t *index)
{
	unsigned int opcode = (unsigned int)cursor_uint(&code, 1);
	bool is_rip = cursor_uint(&code, 1) == 0x05;

	*index = x86_displacement(&code, 4);
	*index += (int64_t)code.pos;
	return (opcode == 0x8b || opcode == 0x63) && is_rip && cursor_uint(&code, 2) == 0xc085 &&
	       !code.bad;
}

/* mov member(%base,%rax),%eax; %base is register @reg */
static bool x86_indexed(struct cursor *code, unsigned int reg, int64_t *member)
{
	bool is_mov = cursor_uint(code, 1) == 0x8b;
	unsigned int modrm = (unsigned int)cursor_uint(code, 1), mod = modrm >> 6;
	unsigned int sib = (unsigned int)cursor_uint(code, 1);

	*member += x86_displacement(code, mod == 1 ? 1 : 4);
	return is_mov && (modrm & 0x3f) == 4 && (mod == 1 || mod == 2) && reg != X86_AX &&
	       (sib == reg || sib == reg << 3) && !code->bad;
}

/*
 * imul $size,%rax,%rax; lea array(%rip),%base; mov member(%base,%rax),%eax; where code is not
 * relocated, the last two are one.
 */
static bool x86_element(struct cursor code, uint64_t vaddr, int64_t *member)
{
	unsigned int opcode, modrm;

	if (cursor_uint(&code, 3) != 0xc06948)
		return false;
	cursor_uint(&code, 4);
	opcode = (unsigned int)cursor_uint(&code, 2);
	if (opcode == 0x808b) {
		*member = x86_displacement(&code, 4) - (int64_t)vaddr;
		return !code.bad;
	}
	modrm = (unsigned int)cursor_uint(&code, 1);
	*member = x86_displacement(&code, 4);
	*member += (int64_t)code.pos;
	return opcode == 0x8d48 && (modrm & 0xc7) == 5 &&
	       x86_indexed(&code, modrm >> 3 & 7, member);
}

int accessor_x86_element(const unsigned char *code, size_t size, uint64_t vaddr,
			 struct accessor_element *out)
{
	struct cursor c = cursor_over(code, size, false);
	unsigned int indexes = 0, members = 0;
	int64_t distance;

	for (size_t at = 0; at < size; at++) {
		cursor_seek(&c, at);
		if (x86_index(c, &distance)) {
			out->index = distance;
			indexes++;
		} else if (x86_element(c, vaddr, &distance)) {
			out->member = distance;
			members++;
		}
	}
	return indexes == 1 && members == 1 ? 0 : -EINVAL;
}
