/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random argument specs with known values: the text for spec_parse(), and the
 * parts that it was built from for gen_expect(). Independent of usdt/: register
 * offsets are repeated here.
 */
#ifndef TESTS_UNIT_GENSPEC_H
#define TESTS_UNIT_GENSPEC_H

#include <elf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define GEN_SITE	0x401234ULL
#define GEN_REGS	34		/* 8-byte slots of the larger pt_regs */

struct gen_reg {
	const char *name;
	uint16_t offset;
	uint8_t bits;
};

struct gen_symbol {
	const char *name;
	uint64_t vaddr;
};

struct gen_spec {
	char text[256];
	unsigned int size;
	bool is_signed, constant, memory, addr32, bad_symbol;
	uint64_t value;			/* of the constant, or the displacement */
	const struct gen_reg *base, *index;
	unsigned int scale;
	const struct gen_symbol *symbol;
	unsigned int nderef;
	uint64_t deref[4];		/* in the order of dereferencing */
};

static const struct gen_reg gen_x86[] = {
	{ "rax", 80, 64 }, { "rbx", 40, 64 }, { "rcx", 88, 64 }, { "rdx", 96, 64 },
	{ "rsi", 104, 64 }, { "rdi", 112, 64 }, { "rbp", 32, 64 }, { "rsp", 152, 64 },
	{ "r8", 72, 64 }, { "r9", 64, 64 }, { "r10", 56, 64 }, { "r11", 48, 64 },
	{ "r12", 24, 64 }, { "r13", 16, 64 }, { "r14", 8, 64 }, { "r15", 0, 64 },
	{ "eax", 80, 32 }, { "ebx", 40, 32 }, { "ecx", 88, 32 }, { "edx", 96, 32 },
	{ "esi", 104, 32 }, { "edi", 112, 32 }, { "ebp", 32, 32 }, { "esp", 152, 32 },
	{ "r8d", 72, 32 }, { "r9d", 64, 32 }, { "r10d", 56, 32 }, { "r15d", 0, 32 },
	{ "ax", 80, 16 }, { "bx", 40, 16 }, { "si", 104, 16 }, { "bp", 32, 16 },
	{ "r11w", 48, 16 }, { "r12w", 24, 16 }, { "al", 80, 8 }, { "bl", 40, 8 },
	{ "cl", 88, 8 }, { "dl", 96, 8 }, { "sil", 104, 8 }, { "dil", 112, 8 },
	{ "bpl", 32, 8 }, { "spl", 152, 8 }, { "ah", 81, 8 }, { "bh", 41, 8 },
	{ "ch", 89, 8 }, { "dh", 97, 8 }, { "r13b", 16, 8 }, { "r14b", 8, 8 },
};

static const struct gen_reg gen_a64[] = {
	{ "x0", 0, 64 }, { "x1", 8, 64 }, { "x2", 16, 64 }, { "x3", 24, 64 },
	{ "x4", 32, 64 }, { "x7", 56, 64 }, { "x8", 64, 64 }, { "x9", 72, 64 },
	{ "x10", 80, 64 }, { "x15", 120, 64 }, { "x18", 144, 64 }, { "x19", 152, 64 },
	{ "x20", 160, 64 }, { "x21", 168, 64 }, { "x22", 176, 64 }, { "x25", 200, 64 },
	{ "x28", 224, 64 }, { "x29", 232, 64 }, { "x30", 240, 64 }, { "sp", 248, 64 },
	{ "w0", 0, 32 }, { "w1", 8, 32 }, { "w9", 72, 32 }, { "w19", 152, 32 },
	{ "w21", 168, 32 }, { "w30", 240, 32 },
};

static const struct gen_reg gen_riscv[] = {
	{ "pc", 0, 64 }, { "ra", 8, 64 }, { "sp", 16, 64 }, { "gp", 24, 64 }, { "tp", 32, 64 },
	{ "t0", 40, 64 }, { "t1", 48, 64 }, { "t2", 56, 64 }, { "s0", 64, 64 }, { "fp", 64, 64 },
	{ "s1", 72, 64 }, { "a0", 80, 64 }, { "a1", 88, 64 }, { "a2", 96, 64 }, { "a3", 104, 64 },
	{ "a4", 112, 64 }, { "a5", 120, 64 }, { "a6", 128, 64 }, { "a7", 136, 64 },
	{ "s2", 144, 64 }, { "s3", 152, 64 }, { "s4", 160, 64 }, { "s5", 168, 64 },
	{ "s6", 176, 64 }, { "s7", 184, 64 }, { "s8", 192, 64 }, { "s9", 200, 64 },
	{ "s10", 208, 64 }, { "s11", 216, 64 }, { "t3", 224, 64 }, { "t4", 232, 64 },
	{ "t5", 240, 64 }, { "t6", 248, 64 },
};

static const struct gen_reg gen_x86_portable[] = {
	{ "arg0", 112, 64 }, { "arg1", 104, 64 }, { "arg2", 96, 64 }, { "arg3", 88, 64 },
	{ "arg4", 72, 64 }, { "arg5", 64, 64 }, { "ret", 80, 64 },
};

static const struct gen_reg gen_a64_portable[] = {
	{ "arg0", 0, 64 }, { "arg1", 8, 64 }, { "arg2", 16, 64 }, { "arg3", 24, 64 },
	{ "arg4", 32, 64 }, { "arg5", 40, 64 }, { "ret", 0, 64 },
};

static const struct gen_reg gen_riscv_portable[] = {
	{ "arg0", 80, 64 }, { "arg1", 88, 64 }, { "arg2", 96, 64 }, { "arg3", 104, 64 },
	{ "arg4", 112, 64 }, { "arg5", 120, 64 }, { "ret", 80, 64 },
};

static const struct gen_symbol gen_symbols[] = {
	{ "CheckpointStats", 0x9a0040 }, { "NBuffers", 0x1000 },
	{ "_ZN3foo3barE.lto_priv.0", 0x402000 }, { "far_away", 0x7fffffff0000 }, { "missing", 0 },
};

#define GEN_COUNT(a)	(sizeof(a) / sizeof(*(a)))

static inline uint64_t gen_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static inline uint64_t gen_next(uint64_t *seed)
{
	return gen_mix((*seed)++);
}

static inline unsigned int gen_below(uint64_t *seed, unsigned int n)
{
	return gen_next(seed) % n;
}

/* Read simulated memory: every address has a byte, but some pages are not mapped. */
static inline bool gen_read(uint64_t addr, unsigned int size, uint64_t *value)
{
	*value = 0;
	for (unsigned int i = 0; i < size; i++) {
		uint64_t at = addr + i;

		if (gen_mix(at >> 12) % 7 == 0)
			return false;
		*value |= (gen_mix(at) & 0xff) << 8 * i;
	}
	return true;
}

static inline int gen_find_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr)
{
	(void)arg;
	for (size_t i = 0; i < GEN_COUNT(gen_symbols) - 1; i++) {
		if (strlen(gen_symbols[i].name) == len && !memcmp(gen_symbols[i].name, name, len)) {
			*vaddr = gen_symbols[i].vaddr;
			return 0;
		}
	}
	return -2;
}

__attribute__((format(printf, 2, 3)))
static inline void gen_add(struct gen_spec *g, const char *format, ...)
{
	size_t n = strlen(g->text);
	va_list args;

	va_start(args, format);
	vsnprintf(g->text + n, sizeof(g->text) - n, format, args);
	va_end(args);
}

/* Mostly small numbers, sometimes with all 64 bits. */
static inline uint64_t gen_number(uint64_t *seed)
{
	switch (gen_below(seed, 8)) {
	case 0:
		return 0;
	case 1:
		return gen_next(seed);
	case 2:
		return (uint32_t)gen_next(seed);
	case 3:
		return (uint64_t)(int32_t)gen_next(seed);
	default:
		return (uint64_t)((int64_t)gen_below(seed, 4096) - 1024);
	}
}

static inline const struct gen_reg *gen_pick(uint64_t *seed, const struct gen_reg *regs, size_t n,
					     unsigned int bits)
{
	for (;;) {
		const struct gen_reg *r = &regs[gen_below(seed, (unsigned int)n)];

		if (!bits || r->bits == bits)
			return r;
	}
}

static inline void gen_pick_symbol(uint64_t *seed, struct gen_spec *g)
{
	g->symbol = &gen_symbols[gen_below(seed, GEN_COUNT(gen_symbols))];
	g->bad_symbol = !g->symbol->vaddr;
}

/* A displacement in one of its forms: 8, 0x8, -8, 8+sym, sym-8, or none. */
static inline void gen_displacement(uint64_t *seed, struct gen_spec *g)
{
	g->value = gen_number(seed);
	if (!g->symbol && !g->value)
		return;
	if (!g->symbol && gen_below(seed, 4) == 0)
		gen_add(g, "0x%" PRIx64, g->value);
	else if (!g->symbol)
		gen_add(g, "%" PRId64, (int64_t)g->value);
	else if (!g->value)
		gen_add(g, "%s", g->symbol->name);
	else if (gen_below(seed, 2))
		gen_add(g, "%" PRId64 "+%s", (int64_t)g->value, g->symbol->name);
	else
		gen_add(g, "%s%+" PRId64, g->symbol->name, (int64_t)g->value);
}

/* D(D(REG)) and D(SYM(%ip)) */
static inline void gen_portable(uint64_t *seed, const struct gen_reg *regs, struct gen_spec *g)
{
	g->memory = gen_below(seed, 6) > 0;
	if (!g->memory) {
		g->base = gen_pick(seed, regs, GEN_COUNT(gen_x86_portable), 64);
		gen_add(g, "%%%s", g->base->name);
		return;
	}
	g->nderef = gen_below(seed, 5);
	for (unsigned int i = g->nderef; i-- > 0;) {
		g->deref[i] = gen_number(seed);
		gen_add(g, "%" PRId64 "(", (int64_t)g->deref[i]);
	}
	if (gen_below(seed, 3) == 0)
		gen_pick_symbol(seed, g);
	else
		g->base = gen_pick(seed, regs, GEN_COUNT(gen_x86_portable), 64);
	gen_displacement(seed, g);
	gen_add(g, "(%%%s)", g->symbol ? "ip" : g->base->name);
	for (unsigned int i = 0; i < g->nderef; i++)
		gen_add(g, ")");
}

static inline void gen_x86_memory(uint64_t *seed, struct gen_spec *g)
{
	g->addr32 = gen_below(seed, 10) == 0;
	if (gen_below(seed, 3) == 0)
		gen_pick_symbol(seed, g);
	gen_displacement(seed, g);
	if (g->symbol && gen_below(seed, 2)) {
		g->addr32 = false;
		gen_add(g, "(%%rip)");
		return;
	}
	gen_add(g, "(");
	if (gen_below(seed, 4)) {
		g->base = gen_pick(seed, gen_x86, GEN_COUNT(gen_x86), g->addr32 ? 32 : 64);
		gen_add(g, "%%%s", g->base->name);
	}
	if (!g->base || gen_below(seed, 3) == 0) {
		g->index = gen_pick(seed, gen_x86, GEN_COUNT(gen_x86), g->addr32 ? 32 : 64);
		gen_add(g, ",%%%s", g->index->name);
		if (gen_below(seed, 3)) {
			g->scale = 1 << gen_below(seed, 4);
			gen_add(g, ",%u", g->scale);
		}
	}
	gen_add(g, ")");
}

static inline void gen_a64_memory(uint64_t *seed, struct gen_spec *g)
{
	g->base = gen_pick(seed, gen_a64, GEN_COUNT(gen_a64), 64);
	gen_add(g, "[%s", g->base->name);
	switch (gen_below(seed, 4)) {
	case 0:
		break;
	case 1:
		g->index = gen_pick(seed, gen_a64, GEN_COUNT(gen_a64), 64);
		gen_add(g, ", %s", g->index->name);
		if (gen_below(seed, 2)) {
			g->scale = 1 << gen_below(seed, 4);
			gen_add(g, ", lsl %s%d", gen_below(seed, 2) ? "#" : "",
				__builtin_ctz(g->scale));
		}
		break;
	default:
		g->value = gen_number(seed);
		gen_add(g, ", %s%" PRId64, gen_below(seed, 2) ? "#" : "", (int64_t)g->value);
	}
	gen_add(g, "]");
}

static inline void gen_riscv_memory(uint64_t *seed, struct gen_spec *g)
{
	g->base = gen_pick(seed, gen_riscv, GEN_COUNT(gen_riscv), 64);
	gen_displacement(seed, g);
	gen_add(g, "(%s)", g->base->name);
}

struct gen_machine {
	uint16_t machine;
	const char *immediate, *sigil;	/* of numbers and registers */
	const struct gen_reg *regs;
	size_t nregs;
	const struct gen_reg *portable;
	unsigned int context;		/* bytes */
	void (*memory)(uint64_t *seed, struct gen_spec *g);
};

static const struct gen_machine gen_machines[] = {
	{ EM_X86_64, "$", "%", gen_x86, GEN_COUNT(gen_x86), gen_x86_portable, 168,
	  gen_x86_memory },
	{ EM_AARCH64, "", "", gen_a64, GEN_COUNT(gen_a64), gen_a64_portable, 272,
	  gen_a64_memory },
	{ EM_RISCV, "", "", gen_riscv, GEN_COUNT(gen_riscv), gen_riscv_portable, 256,
	  gen_riscv_memory },
};

static inline const struct gen_machine *gen_machine_of(uint16_t machine)
{
	for (size_t i = 0; i < GEN_COUNT(gen_machines); i++)
		if (gen_machines[i].machine == machine)
			return &gen_machines[i];
	return NULL;
}

/* Return the bytes of the context of programs that run on @machine; 0: they do not. */
static inline unsigned int gen_context(uint16_t machine)
{
	const struct gen_machine *m = gen_machine_of(machine == EM_386 ? EM_X86_64 : machine);

	return m ? m->context : 0;
}

static inline void gen_native(uint64_t *seed, const struct gen_machine *m, struct gen_spec *g)
{
	switch (gen_below(seed, 4)) {
	case 0:
		g->constant = true;
		g->value = gen_number(seed);
		gen_add(g, "%s%" PRId64, m->immediate, (int64_t)g->value);
		return;
	case 1:
		g->base = gen_pick(seed, m->regs, m->nregs, 0);
		gen_add(g, "%s%s", m->sigil, g->base->name);
		return;
	default:
		g->memory = true;
		m->memory(seed, g);
	}
}

static inline void gen_spec(uint64_t *seed, uint16_t machine, struct gen_spec *g)
{
	const struct gen_machine *m = gen_machine_of(machine);

	*g = (struct gen_spec){ .size = 1 << gen_below(seed, 4), .scale = 1 };
	g->is_signed = gen_below(seed, 2);
	if (gen_below(seed, 16) == 0) {
		g->is_signed = false;
		gen_add(g, "%uf@", g->size);
	} else {
		gen_add(g, "%s%u@", g->is_signed ? "-" : "", g->size);
	}
	if (gen_below(seed, 3) == 0)
		gen_portable(seed, m->portable, g);
	else
		gen_native(seed, m, g);
}

static inline uint64_t gen_extend(uint64_t value, unsigned int bits, bool is_signed)
{
	uint64_t sign = 1ULL << (bits - 1);

	if (bits < 64)
		value &= (sign << 1) - 1;
	return is_signed && bits < 64 && (value & sign) ? value - (sign << 1) : value;
}

static inline uint64_t gen_reg_value(const void *regs, const struct gen_reg *reg, bool whole)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)regs + reg->offset, whole ? 8 : reg->bits / 8);
	return value;
}

/* Return the value of the argument. @regs is a struct pt_regs whose pc is at @pc_offset. */
static inline uint64_t gen_expect(const struct gen_spec *g, const void *regs,
				  unsigned int pc_offset)
{
	static const struct gen_reg none = { "", 0, 8 };
	const struct gen_reg pc = { "", pc_offset, 64 };
	uint64_t addr = g->value, value;
	unsigned int bits = g->size * 8;

	if (g->constant)
		return gen_extend(g->value, bits, g->is_signed);
	if (!g->memory) {
		const struct gen_reg *reg = g->base ? g->base : &none;

		if (bits > reg->bits)
			bits = reg->bits;
		return gen_extend(gen_reg_value(regs, reg, false), bits, g->is_signed);
	}
	if (g->base)
		addr += gen_reg_value(regs, g->base, true);
	if (g->index)
		addr += gen_reg_value(regs, g->index, true) * g->scale;
	if (g->symbol)
		addr += gen_reg_value(regs, &pc, true) - GEN_SITE + g->symbol->vaddr;
	if (g->addr32)
		addr &= 0xffffffff;
	for (unsigned int i = 0; i < g->nderef; i++) {
		if (!gen_read(addr, 8, &value))
			return 0;
		addr = value + g->deref[i];
	}
	if (!gen_read(addr, g->size, &value))
		return 0;
	return gen_extend(value, bits, g->is_signed);
}

#endif
