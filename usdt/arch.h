/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What differs between architectures when specs are parsed, printed and
 * emitted. Internal to usdt/spec.c, emit.c and arch_*.c.
 *
 * Registers have the number of their 8-byte slot in the kernel's struct
 * pt_regs (user_pt_regs on aarch64), where the architecture has an emitter.
 */
#ifndef USDT_ARCH_H
#define USDT_ARCH_H

#include <elf.h>

#include "usdt/spec.h"

#define ARCH_ARGS_MAX	6

/* An operand's text that has not been looked at yet. */
struct scan {
	const char *p, *end;
};

struct arch_reg {
	int16_t number;
	uint8_t bits, shift;		/* which part of the register its name means */
	bool zero;			/* reads as 0 always: xzr, zero */
};

struct arch_alias {
	char name[8];
	int8_t number;
};

struct arch {
	uint16_t machine;
	bool can_emit;
	char sigil;			/* may stand before a register: '%', or 0 */
	char constant;			/* must stand before an immediate: '$', 'i', or 0 */
	const char *prefix;		/* registers below ->numbered are this and their number */
	uint8_t numbered;
	const char *names;		/* the registers after these, a blank between */
	const struct arch_alias *aliases; /* other names; the last one is empty. May be NULL */
	int8_t args[ARCH_ARGS_MAX], ret, pc; /* the calling convention, or SPEC_NO_REG */
	/* Looks up a register by name. Preset: ->number SPEC_NO_REG, ->bits the ABI's word. */
	enum spec_reason (*reg)(const struct arch *arch, const char *name, size_t len,
				struct arch_reg *reg);
	/* Parses an operand in the assembler's syntax. @spec comes cleared. */
	enum spec_reason (*operand)(const struct arch *arch, struct scan *s, struct spec *spec);
};

extern const struct arch arch_x86_64, arch_i386, arch_aarch64, arch_arm;
extern const struct arch arch_ppc64, arch_s390, arch_riscv, arch_mips;

/* The architecture of ELF machine @machine, or NULL. */
const struct arch *arch_find(uint16_t machine);

/* arch->reg for those whose names are only ->prefix, ->names and ->aliases. */
enum spec_reason arch_plain_reg(const struct arch *arch, const char *name, size_t len,
				struct arch_reg *reg);

/* Makes @spec name the register @reg, or the constant 0 where it always is that. */
void arch_set_reg(struct spec *spec, const struct arch_reg *reg);

/* Passes @c if it comes next. */
bool scan_char(struct scan *s, char c);

/* Whether @c comes next; does not pass it. */
bool scan_peek(const struct scan *s, char c);

void scan_blanks(struct scan *s);

/* A decimal or 0x number with a sign or none. False where there is none, or beyond 64 bits. */
bool scan_number(struct scan *s, int64_t *value);

/* Letters, digits, _ . $: the length, 0 where there are none. */
size_t scan_name(struct scan *s, const char **name);

/* A register's name, after the architecture's sigil. */
enum spec_reason scan_reg(const struct arch *arch, struct scan *s, struct spec *spec,
			  struct arch_reg *reg);

/* Numbers and at most one symbol with + or - between, to spec->value and ->symbol. May be empty. */
enum spec_reason scan_displacement(struct scan *s, struct spec *spec);

#endif
