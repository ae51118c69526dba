/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The CPU architectures: one descriptor each, found by ELF e_machine. To add
 * one, write arch_NAME.c, and accessor_NAME.c if it is to be traced, and list it
 * in ARCHS() below.
 *
 * A register has two numbers. Its slot is the index of its 8 bytes in the
 * kernel's struct pt_regs (user_pt_regs on aarch64, user_regs_struct on riscv) if
 * the architecture has an emitter, else arbitrary. Its code number is the one that
 * instructions encode.
 *
 * Source: System V psABI of each architecture (calling conventions), the
 * kernel's asm/ptrace.h (slots), the CPU manuals (instructions).
 */
#ifndef USDT_ARCH_H
#define USDT_ARCH_H

#include "base/cursor.h"
#include "base/scan.h"
#include "usdt/spec_types.h"

#define ARCH_ARGS_MAX	6
#define ARCH_NOPS_MAX	10
#define ARCH_NO_REG	0xff
#define ARCH_REG_NAME	4	/* bytes of a register's name: "rbx", "x19" */

struct accessor_element;
struct uop_list;

/* A register as the assembler names it. */
struct arch_reg {
	int16_t slot;			/* or SPEC_NO_REG */
	uint8_t bits, shift;		/* the part of the register that the name means */
	bool zero;			/* always reads as 0: xzr, zero */
};

struct arch_alias {
	char name[8];
	int8_t slot;
};

/* A nop that may be at a site, one instruction; the bytes are in file order. */
struct arch_nop {
	uint8_t len;			/* 0: unused */
	unsigned char bytes[10];
};

/* Machine code, for little-endian files. Registers are code numbers. */
struct arch_code {
	uint8_t insn_align;		/* bytes */
	uint8_t args[ARCH_ARGS_MAX];	/* integer and pointer arguments of a call */
	uint8_t returns[2];		/* the return value, the second half of a pair */
	uint8_t zero_reg;		/* reads as 0; ARCH_NO_REG: none */
	uint32_t preserved;		/* callee-saved: bit n is register n */
	const char (*reg_names)[ARCH_REG_NAME]; /* NULL: ->prefix and the code number */
	unsigned char landing_pad[4];	/* at a function's start, skipped by probes; 0: none */

	/*
	 * The length in bytes of the instruction at @code, of which @size bytes are readable; 0 if
	 * it is truncated or undefined. NULL: every instruction has insn_align bytes.
	 */
	unsigned int (*length)(const unsigned char *code, size_t size);

	/*
	 * Return whether Linux refuses to probe the instruction at @code, of @size bytes at most.
	 * NULL: that is not known here.
	 */
	bool (*refused)(const unsigned char *code, size_t size);

	/*
	 * Return whether the instruction at @code, of @size bytes at most, is a nop that Linux may
	 * replace by a call when a probe on it is hit. NULL: it does not on this architecture.
	 */
	bool (*call_nop)(const unsigned char *code, size_t size);

	/* The target of the direct jump of @len bytes at @code and @vaddr, 0: not one. */
	uint64_t (*jump_target)(struct cursor code, uint64_t vaddr, unsigned int len);

	/* The target of the direct call at @code and @vaddr, 0: not one. */
	uint64_t (*call_target)(struct cursor code, uint64_t vaddr);

	/*
	 * The register behind which instruction bytes @word load 8 bytes at
	 * @offset for the first argument, or -1 if they do something else.
	 */
	int (*member_load)(uint32_t word, int64_t offset);

	/*
	 * The bytes by which the instruction at @code, in a function's prologue, lowers the stack
	 * pointer; -1 if the place of the return address is not known behind it.
	 */
	int (*stack_growth)(struct cursor code);
	const char *return_address;	/* at a function's start; "(REG)": behind that number */

	/*
	 * Decode the instruction at @code, a cursor over the whole body, to
	 * micro-operations in @list, which is empty, and advance @code behind it.
	 * An instruction without an effect that matters leaves @list empty.
	 * Return false if the instruction is not supported; @list and the
	 * position are then undefined. If it is truncated, @code->bad is set.
	 */
	bool (*decode)(struct cursor *code, struct uop_list *list);

	/*
	 * Match a body that does nothing but return an 8-byte variable addressed
	 * relative to the program counter. @vaddr is the link-time address of
	 * @code; *@variable becomes the variable's. Return 0 or -EINVAL.
	 */
	int (*global)(const unsigned char *code, size_t size, uint64_t vaddr, uint64_t *variable);

	/* Find the element that a body linked at @vaddr returns. Return 0 or -EINVAL. */
	int (*element)(const unsigned char *code, size_t size, uint64_t vaddr,
		       struct accessor_element *out);
};

struct arch {
	uint16_t machine;		/* EM_… of <elf.h> */
	const char *name;		/* for messages */
	bool can_emit;			/* spec_emit() supports it */
	char sigil;			/* may precede a register: '%', or 0 */
	char constant;			/* must precede an immediate: 'i', or 0 */
	const char *prefix;		/* registers below ->numbered are this and their slot */
	uint8_t numbered;
	const char *names;		/* the registers from ->numbered on, separated by a blank */
	const struct arch_alias *aliases; /* other names, up to an empty one; or NULL */
	int8_t args[ARCH_ARGS_MAX], ret, pc; /* slots, or SPEC_NO_REG if on the stack */
	struct arch_nop nops[ARCH_NOPS_MAX];
	const struct arch_code *code;	/* NULL: instructions are not decoded */

	/* Look up a register. Preset: ->slot SPEC_NO_REG, ->bits the size of an ABI word. */
	enum spec_reason (*reg)(const struct arch *arch, const char *name, size_t len,
				struct arch_reg *reg);
	/* Parse an operand in the assembler's syntax to @spec, which is cleared. */
	enum spec_reason (*operand)(const struct arch *arch, struct scan *s, struct spec *spec);
};

/* Return the descriptor of ELF machine @machine, static, or NULL if it is not known. */
const struct arch *arch_of(uint16_t machine);

/* Return arch_of(@machine)->code, or NULL. */
const struct arch_code *arch_code_of(uint16_t machine);

/* Write the assembler's name of code number @reg; @arch must have ->code. */
void arch_reg_name(const struct arch *arch, unsigned int reg, char name[ARCH_REG_NAME]);

/*
 * Write the assembler's name of the register that holds argument @n, from 0,
 * of a function call: "rdi", "x0". Return 0, or -EINVAL if @machine has no
 * ->code or @n is passed on the stack.
 */
int arch_arg_name(uint16_t machine, unsigned int n, char name[ARCH_REG_NAME]);

/* An arch->reg() for registers that are named by ->prefix, ->names and ->aliases only. */
enum spec_reason arch_plain_reg(const struct arch *arch, const char *name, size_t len,
				struct arch_reg *reg);

/* Make @spec the register @reg, or the constant 0 if it always reads as that. */
void arch_set_reg(struct spec *spec, const struct arch_reg *reg);

/* Parse a register's name, behind the sigil. Return a reason; @reg is valid if it is SPEC_OK. */
enum spec_reason arch_parse_reg(const struct arch *arch, struct scan *s, const struct spec *spec,
				struct arch_reg *reg);

/* Parse numbers and at most one symbol, added up, to ->value and ->symbol. May be empty. */
enum spec_reason arch_parse_displacement(struct scan *s, struct spec *spec);

/* All architectures; the descriptor of each is arch_NAME. */
#define ARCHS(ROW)                                                           \
	ROW(x86_64) ROW(i386) ROW(aarch64) ROW(arm)                          \
	ROW(ppc64) ROW(s390) ROW(riscv) ROW(mips) ROW(loongarch)

/* Without the command list, a program has its own only (Makefile); the others' address is NULL. */
#define ARCH_DECLARE(name) extern const struct arch arch_##name __attribute__((weak));
ARCHS(ARCH_DECLARE)
#undef ARCH_DECLARE

/*
 * The code of each architecture that has one. Only the program that runs there and the tests have
 * it; to list a file, no instruction is decoded.
 */
extern const struct arch_code arch_x86_64_code __attribute__((weak));
extern const struct arch_code arch_aarch64_code __attribute__((weak));
extern const struct arch_code arch_riscv_code __attribute__((weak));

#endif
