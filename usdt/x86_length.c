// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/x86_length.h"

#include <stdint.h>

#include "base/cursor.h"

#define LENGTH_MAX	15	/* longer instructions raise #GP */

/* An instruction being decoded. */
struct insn {
	struct cursor code;
	bool wide;		/* REX.W */
	bool narrow;		/* operand-size prefix: 16-bit operands */
	bool short_address;
	bool refused;		/* a prefix with which Linux probes no instruction */
	bool bad;
};

/* One bit per opcode of a map; the row is the opcode's upper four bits. */
struct opcode_set {
	uint16_t rows[16];
};

static bool set_has(const struct opcode_set *set, unsigned int opcode)
{
	return set->rows[opcode >> 4] >> (opcode & 15) & 1;
}

/* One-byte opcodes with a ModRM byte. */
static const struct opcode_set one_modrm = { {
	0x0f0f, 0x0f0f, 0x0f0f, 0x0f0f, 0, 0, 0x0a08, 0,
	0xfffb, 0, 0, 0, 0x00c3, 0xff0f, 0, 0xc0c0,
} };

/* One-byte opcodes with an 8-bit immediate. */
static const struct opcode_set one_byte = { {
	0x1010, 0x1010, 0x1010, 0x1010, 0, 0, 0x0c00, 0xffff,
	0x0009, 0, 0x0100, 0x00ff, 0x2043, 0, 0x08ff, 0,
} };

/* One-byte opcodes with an immediate of the operand's size, at most four bytes. */
static const struct opcode_set one_word = { {
	0x2020, 0x2020, 0x2020, 0x2020, 0, 0, 0x0300, 0,
	0x0002, 0, 0x0200, 0, 0x0080, 0, 0, 0,
} };

/* One-byte opcodes that are undefined in 64-bit mode. */
static const struct opcode_set one_none = { {
	0x40c0, 0xc0c0, 0x8080, 0x8080, 0, 0, 0x0007, 0,
	0x0004, 0x0400, 0, 0, 0x4000, 0x0070, 0x0400, 0,
} };

/*
 * One-byte opcodes that Linux does not probe: ports, int, iret, hlt, cli, sti, and those that are
 * undefined. It looks up opcodes behind a VEX or EVEX prefix in the same table.
 */
static const struct opcode_set one_refused = { {
	0x40c0, 0xc0c0, 0x8080, 0x8080, 0, 0, 0xf003, 0,
	0x0004, 0x0400, 0, 0, 0xf000, 0x0050, 0xf4f0, 0x0c12,
} };

/* Two-byte opcodes (0f xx) without a ModRM byte. */
static const struct opcode_set two_alone = { {
	0x4be0, 0, 0, 0x00ff, 0, 0, 0, 0x0080,
	0xffff, 0, 0x0707, 0, 0xff00, 0, 0, 0,
} };

/* Two-byte opcodes with an 8-bit immediate. */
static const struct opcode_set two_byte = { {
	0x8000, 0, 0, 0, 0, 0, 0, 0x000f,
	0, 0, 0x1010, 0x0400, 0x0074, 0, 0, 0,
} };

/* Two-byte opcodes that are undefined, or whose length depends on the CPU vendor. */
static const struct opcode_set two_none = { {
	0x1410, 0, 0x00f0, 0xfa40, 0, 0, 0, 0x0100,
	0, 0, 0, 0, 0, 0, 0, 0x8000,
} };

static unsigned int insn_byte(struct insn *insn)
{
	return (unsigned int)cursor_uint(&insn->code, 1);
}

static void insn_skip(struct insn *insn, size_t bytes)
{
	cursor_bytes(&insn->code, bytes);
}

/* Skip the ModRM byte with its SIB byte and displacement. Return its reg field. */
static unsigned int insn_modrm(struct insn *insn)
{
	unsigned int modrm = insn_byte(insn), mod = modrm >> 6, base = modrm & 7;

	if (mod == 3)
		return modrm >> 3 & 7;
	if (base == 4)
		base = insn_byte(insn) & 7;
	if (mod == 1)
		insn_skip(insn, 1);
	else if (mod == 2 || base == 5)
		insn_skip(insn, 4);
	return modrm >> 3 & 7;
}

static void insn_word(struct insn *insn)
{
	insn_skip(insn, insn->narrow && !insn->wide ? 2 : 4);
}

static void insn_one(struct insn *insn, unsigned int opcode)
{
	unsigned int reg = 0;

	if (set_has(&one_modrm, opcode))
		reg = insn_modrm(insn);
	if (set_has(&one_byte, opcode) || (opcode == 0xf6 && reg < 2))
		insn_skip(insn, 1);
	else if (set_has(&one_word, opcode) || (opcode == 0xf7 && reg < 2))
		insn_word(insn);
	else if (opcode >= 0xb8 && opcode <= 0xbf)
		insn_skip(insn, insn->wide ? 8 : insn->narrow ? 2 : 4);
	else if (opcode >= 0xa0 && opcode <= 0xa3)
		insn_skip(insn, insn->short_address ? 4 : 8);
	else if (opcode == 0xe8 || opcode == 0xe9)
		insn_skip(insn, 4);
	else if (opcode == 0xc2 || opcode == 0xca)
		insn_skip(insn, 2);
	else if (opcode == 0xc8)
		insn_skip(insn, 3);
	/* AMD's XOP is longer; Intel and AMD disagree on branches with the 66 prefix. */
	insn->bad |= set_has(&one_none, opcode) || (opcode == 0x8f && reg) ||
		     ((opcode == 0xe8 || opcode == 0xe9) && insn->narrow && !insn->wide);
}

static void insn_two(struct insn *insn, unsigned int opcode)
{
	if (opcode == 0x38 || opcode == 0x3a) {
		insn_byte(insn);
		insn_modrm(insn);
		insn_skip(insn, opcode == 0x3a);
		return;
	}
	if (!set_has(&two_alone, opcode))
		insn_modrm(insn);
	if (set_has(&two_byte, opcode))
		insn_skip(insn, 1);
	else if (opcode >= 0x80 && opcode <= 0x8f)
		insn_skip(insn, 4);
	insn->bad |= set_has(&two_none, opcode);
}

/* The opcode after a VEX or EVEX prefix: @map selects 0f, 0f 38, 0f 3a, …; all use ModRM. */
static void insn_vector(struct insn *insn, unsigned int map, bool evex)
{
	unsigned int opcode = insn_byte(insn);

	insn->bad |= !map || map == 4 || map > 6 || (map > 3 && !evex);
	if (map != 1 || opcode != 0x77 || evex)
		insn_modrm(insn);
	if (map == 3 || (map == 1 && set_has(&two_byte, opcode)))
		insn_skip(insn, 1);
}

static void insn_opcode(struct insn *insn, unsigned int opcode)
{
	unsigned int map;

	switch (opcode) {
	case 0x0f:
		insn_two(insn, insn_byte(insn));
		break;
	case 0xc5:
		insn_skip(insn, 1);
		insn_vector(insn, 1, false);
		break;
	case 0xc4:
		map = insn_byte(insn) & 31;
		insn_skip(insn, 1);
		insn_vector(insn, map, false);
		break;
	case 0x62:
		map = insn_byte(insn) & 7;
		insn_skip(insn, 2);
		insn_vector(insn, map, true);
		break;
	default:
		insn_one(insn, opcode);
	}
}

/* Skip the prefixes, REX included, in any order. Return the opcode byte. */
static unsigned int insn_prefixes(struct insn *insn)
{
	for (;;) {
		unsigned int byte = insn_byte(insn);
		bool rex = (byte & 0xf0) == 0x40;

		switch (byte) {
		case 0x66:
			insn->narrow = true;
			break;
		case 0x67:
			insn->short_address = true;
			break;
		case 0x26: case 0x2e: case 0x36: case 0x3e: case 0xf0:
			insn->refused = true;
			break;
		case 0x64: case 0x65: case 0xf2: case 0xf3:
			break;
		default:
			if (!rex)
				return byte;
		}
		/* A REX counts only in front of the opcode. */
		insn->wide = rex && byte & 8;
	}
}

static struct insn insn_at(const unsigned char *code, size_t size)
{
	return (struct insn){ .code = cursor_over(code, size < LENGTH_MAX ? size : LENGTH_MAX,
						  false) };
}

unsigned int x86_length_decode(const unsigned char *code, size_t size)
{
	struct insn insn = insn_at(code, size);

	insn_opcode(&insn, insn_prefixes(&insn));
	return insn.bad || insn.code.bad ? 0 : (unsigned int)insn.code.pos;
}

bool x86_is_refused(const unsigned char *code, size_t size)
{
	struct insn insn = insn_at(code, size);
	unsigned int opcode = insn_prefixes(&insn);
	unsigned int vector = opcode == 0xc5 ? 1 : opcode == 0xc4 ? 2 : opcode == 0x62 ? 3 : 0;

	if (vector) {
		insn_skip(&insn, vector);
		opcode = insn_byte(&insn);
	}
	return !insn.code.bad && (insn.refused || set_has(&one_refused, opcode) ||
				  (vector && (opcode == 0x62 || opcode == 0xd5)));
}

/* mov %reg,%reg, and lea 0(%reg),%reg of five bytes; @modrm follows the opcode. */
static bool insn_keeps(struct insn *insn, unsigned int opcode, unsigned int modrm, unsigned int rex)
{
	unsigned int mod = modrm >> 6, reg = modrm >> 3 & 7, base = modrm & 7, sib;

	/* The fourth bit of each register: REX.R and REX.B. */
	if ((rex >> 2 & 1) != (rex & 1))
		return false;
	if (opcode == 0x89)
		return mod == 3 && reg == base;
	if (mod != 1)
		return false;
	if (base == 4) {
		sib = insn_byte(insn);
		base = sib & 7;
		if ((sib >> 3 & 7) != 4)
			return false;
	}
	return reg == base && !insn_byte(insn);
}

bool x86_is_nop5(const unsigned char *code, size_t size)
{
	struct insn insn = insn_at(code, size);
	unsigned int opcode, rex;

	if (x86_length_decode(code, size) != 5)
		return false;
	opcode = insn_prefixes(&insn);
	rex = insn.code.pos > 1 ? code[insn.code.pos - 2] : 0;
	rex = (rex & 0xf0) == 0x40 ? rex : 0;
	switch (opcode) {
	case 0x90:
		return !(rex & 1);	/* else xchg %rax,%r8 */
	case 0x0f:
		return insn_byte(&insn) == 0x1f;
	case 0xe9:
		return !cursor_uint(&insn.code, 4);	/* jmp to the next instruction */
	case 0x89: case 0x8d:
		return insn_keeps(&insn, opcode, insn_byte(&insn), rex);
	default:
		return false;
	}
}
